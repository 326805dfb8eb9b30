"""The breaker in front of Redis: three failures in a row, "busy, try again in 10 s", one probe at a time."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from redis.exceptions import ConnectionError, ReadOnlyError, ResponseError

from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import call, connect, disconnect
from frontrow.shared.redis_breaker import RedisBreaker
from frontrow.testing.clock import ManualClock
from tests.support.servers import Valkey


class Redis:
    """Counts its calls and answers, or raises what it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None

    async def send(self) -> str:
        self.calls += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return "PONG"


async def test_three_failures_in_a_row_spare_redis_and_a_probe_finds_out_that_it_is_back() -> None:
    clock, redis = ManualClock(), Redis()
    breaker = RedisBreaker("the store", clock)
    redis.error = ConnectionError("gone")
    for _ in range(3):
        clock.advance(0.1)
        with pytest.raises(ConnectionError):
            await breaker.call(redis.send)
    for _ in range(5):
        with pytest.raises(Unavailable, match="busy; try again in 10 s") as raised:
            await breaker.call(redis.send)
        assert raised.value.retry_after_s == 10
    assert (redis.calls, breaker.is_open) == (3, True)
    clock.advance(1.5)
    outcomes = await asyncio.gather(*(breaker.call(redis.send) for _ in range(20)), return_exceptions=True)
    assert [type(one) for one in outcomes].count(ConnectionError) == 1, "one probe"
    redis.error = None
    clock.advance(1.5)
    assert await breaker.call(redis.send) == "PONG"
    assert await breaker.call(redis.send) == "PONG"
    assert not breaker.is_open


async def test_calls_that_failed_together_count_once_and_an_error_of_a_script_not_at_all() -> None:
    clock, redis = ManualClock(), Redis()
    breaker = RedisBreaker("the store", clock)
    redis.error = ConnectionError("reset")
    await asyncio.gather(*(breaker.call(redis.send) for _ in range(50)), return_exceptions=True)
    assert not breaker.is_open
    redis.error = ResponseError("no such room")
    for _ in range(5):
        clock.advance(0.1)
        with pytest.raises(ResponseError):
            await breaker.call(redis.send)
    redis.error = ReadOnlyError("a standby")
    for _ in range(3):
        clock.advance(0.1)
        with pytest.raises(ReadOnlyError):
            await breaker.call(redis.send)
    with pytest.raises(Unavailable):
        await breaker.call(redis.send)


@pytest.mark.parametrize("cluster", [False, True], ids=["one server", "Cluster"])
def test_a_connection_that_was_reset_is_redis_own_error_on_uvloop_too(
    cluster: bool, own_valkey: Valkey, request: pytest.FixtureRequest
) -> None:
    """uvloop raises RuntimeError when a closed transport is written to: fans got 500 instead of 503."""
    server = request.getfixturevalue("redis_cluster").nodes[0] if cluster else own_valkey

    async def write_to_closed() -> None:
        url = f"redis+cluster://127.0.0.1:{server.port}" if cluster else server.url
        client = connect(url)
        await client.ping()
        if cluster:
            connection = client.get_node(port=server.port, host="127.0.0.1").acquire_connection()
        else:
            connection = await client.connection_pool.get_connection()
        await connection.connect()
        connection._writer.transport.abort()  # what a reset by the other side does
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError):
            await connection.send_packed_command([b"PING\r\n"], check_health=False)
        await connection.disconnect()
        await disconnect(client)

    uvloop.run(write_to_closed())


@pytest.mark.parametrize("shape", ["packed in C", "packed by redis-py"])
async def test_a_command_costs_no_task(shape: str, redis_url: str) -> None:
    """redis-py writes within a task of its own, because that has a timeout; the reply has one anyway."""
    made: list[object] = []
    loop = asyncio.get_running_loop()
    client = connect(redis_url)

    def count(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> "asyncio.Task[Any]":
        made.append(work)
        return asyncio.Task(work, loop=loop, **more)

    try:
        await client.ping()  # connects
        loop.set_task_factory(count)  # type: ignore[arg-type]
        answer = await call(client, "PING") if shape == "packed in C" else await client.execute_command("PING")
        assert (answer in (b"PONG", True), made) == (True, [])
    finally:
        loop.set_task_factory(None)
        await disconnect(client)
