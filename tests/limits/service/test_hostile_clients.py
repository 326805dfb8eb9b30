"""Clients that mean harm: what they send is bounded in time and memory, and others are answered meanwhile."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest

from frontrow.limits_service import envoy_messages as messages
from frontrow.limits_service import envoy_service, http_connection
from frontrow.limits_service.http_connection import Connections, Request, Response
from tests.limits.service.support import METHOD, RULES, config_of, running
from tests.support.eventually import eventually

HEAD = b"POST /v1/check HTTP/1.1\r\ncontent-type: application/json\r\n"


@asynccontextmanager
async def listening(
    answer: bytes = b"{}", max_body_bytes: int = 1 << 20
) -> AsyncIterator[tuple[Connections, str, int]]:
    """A listener that gives every request the same answer, at once."""

    def handle(_request: Request) -> Response:
        return Response(200, answer, ())

    connections = Connections(handle, max_body_bytes=max_body_bytes, max_connections=1000)
    server = await asyncio.get_running_loop().create_server(connections.connect, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield connections, host, port


async def test_a_client_that_does_not_read_gets_no_more_answers_than_fit() -> None:
    """256 KiB of requests, sent at once, were all answered into memory: 25 MB for each connection."""
    answer = b"x" * 30_000
    async with listening(answer) as (connections, host, port):
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 1000)
        [connection] = await eventually(lambda: connections.open)
        await eventually(lambda: connection._reads_slowly)
        await asyncio.sleep(0)
        assert connection._transport.get_write_buffer_size() < 65_536 + 2 * len(answer)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
        answered = await asyncio.wait_for(reader.read(), 20)
        assert answered.count(b"HTTP/1.1 200") == 1001, "nothing is lost when it does read"
        writer.close()


async def test_the_bodies_of_all_connections_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand connections could hold a body of 1 MiB each."""
    monkeypatch.setattr(http_connection, "MAX_HELD_BYTES", 0)  # two bodies of the largest size
    async with listening(max_body_bytes=10_000) as (connections, host, port):
        opened = [await asyncio.open_connection(host, port) for _ in range(3)]
        for _, writer in opened[:2]:
            writer.write(HEAD + b"content-length: 10000\r\n\r\n" + b" " * 9_999)
        await eventually(lambda: connections.held_bytes == 19_998)
        opened[2][1].write(HEAD + b"content-length: 10000\r\n\r\n" + b" " * 9_999)
        assert (await asyncio.wait_for(opened[2][0].read(), 20)).startswith(b"HTTP/1.1 503")
        opened[0][1].write(b" ")
        assert (await asyncio.wait_for(opened[0][0].readline(), 20)).startswith(b"HTTP/1.1 200")
        assert connections.held_bytes == 9_999
        for _, writer in opened:
            writer.close()
        await eventually(lambda: connections.held_bytes == 0)


@pytest.mark.parametrize(("size", "status"), [(2, b"400"), (100, b"200")])
async def test_a_body_in_very_many_small_chunks_is_refused(size: int, status: bytes) -> None:
    """1 MiB in chunks of two bytes took as long to read as half a million requests, and 28 MB."""
    chunk = b"%x\r\n%b\r\n" % (size, b" " * size)
    async with listening() as (connections, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunk * (900_000 // size // 4) + b"0\r\n\r\n")
        assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 " + status)
        writer.close()
        await eventually(lambda: not connections.open)
        assert connections.held_bytes == 0


async def test_bytes_that_are_no_message_are_an_invalid_argument_and_no_traceback(
    tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each was logged with a traceback by gRPC, so anybody could fill the log."""
    caplog.set_level(logging.DEBUG)
    async with running(config_of(tmp_path, RULES)) as service:
        call = service.channel.unary_unary(METHOD)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(b"\xff" * 64, timeout=20)
        assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert failed.value.details().startswith("these bytes are no RateLimitRequest")
        assert messages.RateLimitResponse.FromString(
            await call(
                messages.RateLimitRequest(domain="a", descriptors=[{"entries": [{"key": "b"}]}]).SerializeToString()
            )
        )
    assert "Traceback" not in caplog.text


async def test_those_who_watch_its_health_take_no_calls_away(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them was one of the calls that may be open at once, for ever and without a token."""
    monkeypatch.setattr(envoy_service, "MAX_WATCHING", 3)
    async with running(config_of(tmp_path, RULES)) as service:
        watch = service.channel.unary_stream(
            f"/{messages.HEALTH_SERVICE}/Watch",
            messages.HealthCheckRequest.SerializeToString,
            messages.HealthCheckResponse.FromString,
        )
        calls = [watch(messages.HealthCheckRequest()) for _ in range(3)]
        assert [(await call.read()).status for call in calls] == [messages.SERVING] * 3
        one_more = watch(messages.HealthCheckRequest())
        with pytest.raises(grpc.aio.AioRpcError, match="3 callers watch already; use Check"):
            await one_more.read()
        calls[0].cancel()

        async def watches_again() -> bool:
            with contextlib.suppress(grpc.aio.AioRpcError):
                return (await watch(messages.HealthCheckRequest()).read()).status == messages.SERVING
            return False

        assert await eventually(watches_again)
        for call in calls:
            call.cancel()
