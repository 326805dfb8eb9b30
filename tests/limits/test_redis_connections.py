"""The limiter's connections to Redis: few, closed with their loop, opened again when lost, waited for within bounds."""

import asyncio
import gc
import logging
import os
import socket
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hiredis
import pytest
import redis
import redis.asyncio

from frontrow.core.errors import ConfigError
from frontrow.limits import Decision, Limiter, Quota, Rule
from frontrow.limits.stats import Stats
from frontrow.limits.stores import blocking_calls, redis_source
from frontrow.limits.stores.protocol import QuotaSlot, StoreRequest
from frontrow.limits.stores.redis import RedisStore
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.testing.clock import ManualClock
from tests.limits.cancellation import cancel_at_every_await
from tests.support.eventually import eventually
from tests.support.servers import Cluster, Sentinel, Valkey, free_port
from tests.support.tls_proxy import TlsProxy

QUOTA = Quota.parse("1000/day")


def connections(server: Valkey) -> int:
    """How many connections the server has, besides the one that asks."""
    return server.command("CLIENT", "LIST").count(b"id=") - 1


def until(true: Callable[[], bool], tries: int = 5_000) -> None:
    """Repeat a question until it is answered yes, a bounded number of times."""
    assert any(true() for _ in range(tries))


# -- how many ----------------------------------------------------------------------------------------------------------


def test_each_asyncio_run_closes_its_connection(own_valkey: Valkey) -> None:
    with Limiter(QUOTA, store=own_valkey.url, deadline_s=5.0) as limiter:
        for _ in range(5):
            assert asyncio.run(limiter.acheck("fan")).source == "store"
        until(lambda: connections(own_valkey) == 0)


def test_a_loop_that_was_closed_without_more_ado_loses_its_connection_to_the_next(own_valkey: Valkey) -> None:
    with Limiter(QUOTA, store=own_valkey.url, deadline_s=5.0) as limiter, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # asyncio's own, about such loops
        for _ in range(3):
            loop = asyncio.new_event_loop()
            assert loop.run_until_complete(limiter.acheck("fan")).source == "store"
            loop.close()
        asyncio.run(limiter.acheck("fan"))
        until(lambda: connections(own_valkey) == 0)
        del loop
        gc.collect()


async def test_connecting_that_is_cancelled_at_any_moment_leaves_no_connection(
    own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the connection was taken over, while the client that opened it is closed (it may ask Sentinels)."""

    async def close_slowly(client: redis.asyncio.Redis) -> None:
        await asyncio.sleep(0)
        await client.aclose()

    monkeypatch.setattr(redis_source, "disconnect", close_slowly)
    source = RedisSource(own_valkey.url)
    opened: list[asyncio.StreamWriter] = []

    async def connect() -> None:
        writer, _ = await source.open_asyncio(asyncio.BufferedProtocol())
        assert writer is not None
        opened.append(writer)

    async for _ in cancel_at_every_await(connect):
        for writer in opened:
            writer.transport.abort()
        await eventually(lambda: connections(own_valkey) == 0)
    assert len(opened) == 1, "only the last attempt was not cancelled"


def test_more_threads_than_a_pool_has_connections_admit_exactly_the_limit(own_valkey: Valkey) -> None:
    threads, answers = 150, []
    start = threading.Barrier(threads)
    with Limiter(Quota.parse("100/day"), store=own_valkey.url, deadline_s=10.0) as limiter:

        def ask() -> None:
            start.wait(30)
            answers.extend(limiter.check("seats") for _ in range(2))

        asking = [threading.Thread(target=ask) for _ in range(threads)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert connections(own_valkey) == 1
    assert sum(answer.allowed for answer in answers) == 100
    assert {answer.source for answer in answers} == {"store"}
    assert limiter.stats.store_calls <= len(answers)


def ask_from_busy_threads(limiter: Limiter) -> list[Decision]:
    """What 300 threads are told that compute before they ask."""
    threads, answers = 300, []
    start = threading.Barrier(threads)

    def ask() -> None:
        start.wait(60)
        for _ in range(2):
            sum(range(20_000))
            answers.append(limiter.check("seats"))

    asking = [threading.Thread(target=ask) for _ in range(threads)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    return answers


def ask_from_busy_tasks(limiter: Limiter) -> list[Decision]:
    """What 600 tasks are told that compute before they ask, and so keep their event loop busy."""

    async def ask() -> Decision:
        sum(range(20_000))
        return await limiter.acheck("seats")

    async def ask_all() -> list[Decision]:
        return await asyncio.gather(*(ask() for _ in range(600)))

    return asyncio.run(ask_all())


@pytest.mark.parametrize("ask", [ask_from_busy_threads, ask_from_busy_tasks])
def test_a_starved_process_is_not_a_store_that_is_down(
    own_valkey: Valkey, ask: Callable[[Limiter], list[Decision]]
) -> None:
    """They wait for each other far longer than the deadline of 25 ms, and Redis is never late.

    On a loaded machine Redis may be late indeed. Such a run says nothing, and there may be four of them.
    """
    for run in range(5):
        with Limiter("100/day", store=own_valkey.url, prefix=f"run{run}") as limiter:
            answers = ask(limiter)
        if not limiter.stats.store_errors:
            break
    assert limiter.stats.store_errors == 0
    assert sum(answer.allowed for answer in answers) == 100
    assert {answer.source for answer in answers} == {"store"}


@pytest.mark.parametrize(("stretch", "bounds_s"), [(1.5, (0.025, 0.028)), (20.0, (0.5, 0.51))])
def test_waking_a_little_late_does_not_prolong_a_wait(
    monkeypatch: pytest.MonkeyPatch, stretch: float, bounds_s: tuple[float, float]
) -> None:
    """A timer is always a little late. Only a thread that was kept from running for longer has waited less."""
    now_s = 100.0

    def wait(seconds: float) -> bool:
        nonlocal now_s
        now_s += stretch * seconds
        return False

    monkeypatch.setattr(blocking_calls, "time", SimpleNamespace(monotonic=lambda: now_s))
    assert not blocking_calls.wait_running_time(wait, 0.025)
    assert bounds_s[0] <= now_s - 100.0 <= bounds_s[1]


@pytest.mark.parametrize("key", ["user:42", "a b", "Zoë", "", "x" * 300, b"=\x00"])
@pytest.mark.parametrize("algorithm", ["sliding_counter", "token_bucket", "sliding_log"])
def test_the_written_frame_is_the_command(redis_url: str, key: str | bytes, algorithm: str) -> None:
    quotas = [Quota(5, 60_000_000, algorithm), Quota(7, 3_600_000_000, algorithm)]
    slots = [QuotaSlot(Rule(f"r{at}", quota), "", quota) for at, quota in enumerate(quotas)]
    store = RedisStore(redis_url, slots, Stats([]))
    plain = StoreRequest((1,), (key,))
    for requests in ([plain], [plain._replace(cost=2)], [plain, plain], [StoreRequest((0, 1), (key, key))]):
        for with_source in (False, True):
            words = store.command(requests, with_source=with_source)
            assert store.frame(requests, with_source=with_source) == hiredis.pack_command(words)


async def test_limiters_at_one_url_share_their_connections(own_valkey: Valkey) -> None:
    limiters = [Limiter(f"{n}/day", store=own_valkey.url, deadline_s=5.0) for n in range(1, 6)]
    assert [limiter.check("fan").remaining for limiter in limiters] == [0, 1, 2, 3, 4]
    asked = await asyncio.gather(*(limiter.apeek("fan") for limiter in limiters))
    assert [answer.limit for answer in asked] == [1, 2, 3, 4, 5]
    assert connections(own_valkey) == 2, "one for blocking calls and one for this event loop"
    for limiter in limiters[1:]:
        await limiter.aclose()
    assert connections(own_valkey) == 2, "one of them still uses both"
    await limiters[0].aclose()
    until(lambda: connections(own_valkey) == 0)


def test_threads_of_several_limiters_get_their_own_answers(own_valkey: Valkey) -> None:
    answers: dict[int, list[Decision]] = {}
    limiters = [Limiter(f"{n}/day", store=own_valkey.url, deadline_s=5.0) for n in range(1, 6)]

    def ask(number: int) -> None:
        answers[number] = [limiters[number % 5].check(f"fan{number}") for _ in range(6)]

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert connections(own_valkey) == 1
    for limiter in limiters:
        limiter.close()
    for number, given in answers.items():
        assert [answer.allowed for answer in given] == [True] * (number % 5 + 1) + [False] * (5 - number % 5)


def test_threads_that_ask_a_cluster_share_its_client_and_get_their_own_answers(redis_cluster: Cluster) -> None:
    answers: dict[int, Decision] = {}
    with Limiter(QUOTA, store=redis_cluster.url, deadline_s=10.0, prefix="threads") as limiter:

        def ask(number: int) -> None:
            for _ in range(number + 1):
                answers[number] = limiter.check(f"fan{number}")

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
    assert [answers[number].remaining for number in range(20)] == [999 - number for number in range(20)]
    assert {answer.source for answer in answers.values()} == {"store"}


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # as a server that forks its workers
def test_a_forked_child_does_not_use_its_parents_connection(own_valkey: Valkey) -> None:
    with Limiter(QUOTA, store=own_valkey.url, deadline_s=10.0) as limiter:
        assert limiter.check("fan").remaining == 999
        child = os.fork()
        if child == 0:
            answer = limiter.check("fan")
            os._exit(0 if (answer.source, answer.remaining) == ("store", 998) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert limiter.check("fan").remaining == 997


# -- connections that the server closes --------------------------------------------------------------------------------


async def test_idle_connections_that_the_server_closes_are_opened_again(own_valkey: Valkey) -> None:
    async with Limiter(QUOTA, store=own_valkey.url, deadline_s=5.0) as limiter:
        answers: list[Decision] = []
        for _ in range(3):
            answers += [limiter.check("fan"), await limiter.acheck("fan")]
            own_valkey.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert [answer.source for answer in answers] == ["store"] * 6
        assert answers[-1].remaining == 994, "each was counted once"
        assert limiter.stats.store_errors == 0


async def test_a_refund_is_never_sent_twice(own_valkey: Valkey) -> None:
    """Its reply is lost with the connection: it may have been done, and doing it again would admit too many."""
    async with Limiter(QUOTA, store=own_valkey.url, deadline_s=5.0, on_store_down="open") as limiter:
        limiter.check("fan", cost=5)
        await limiter.apeek("fan")
        own_valkey.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        answers = [limiter.refund("fan"), await limiter.arefund("fan")]
        assert {answer.source for answer in answers} == {"open"}
        assert limiter.peek("fan").remaining == 995


# -- the breaker counts calls ------------------------------------------------------------------------------------------


async def test_one_short_pause_of_the_store_is_one_failure_however_many_were_asking(own_valkey: Valkey) -> None:
    clock = ManualClock()  # stands still: an open breaker would stay open
    async with Limiter(QUOTA, store=own_valkey.url, deadline_s=0.25, clock=clock) as limiter:
        await asyncio.gather(*(limiter.acheck(f"fan{n}") for n in range(100)))
        own_valkey.pause()
        try:
            during = await asyncio.gather(*(limiter.acheck(f"fan{n}") for n in range(100)))
        finally:
            own_valkey.resume()
        assert {answer.source for answer in during} == {"local"}
        assert limiter.stats.store_errors <= 2
        await limiter.acheck("first")
        after = await asyncio.gather(*(limiter.acheck(f"fan{n}") for n in range(100)))
        assert {answer.source for answer in after} == {"store"}


# -- why the store is down ---------------------------------------------------------------------------------------------


async def test_a_wrong_password_is_logged_once_and_stands_in_the_statistics(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "frontrow.limits")
    clock = ManualClock()
    with Valkey("--requirepass", "right") as server:
        url = f"redis://:wr0ng@127.0.0.1:{server.port}/0"
        async with Limiter(QUOTA, store=url, deadline_s=5.0, clock=clock) as limiter:
            for _ in range(5):
                clock.advance(1)  # past the breaker's pause
                assert {limiter.check("fan").source, (await limiter.acheck("fan")).source} == {"local"}
            assert "password" in limiter.stats.store_error
            assert limiter.stats.store_errors >= 5
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            assert "password" in caplog.text
            assert "wr0ng" not in caplog.text
            server.command("AUTH", "right")
            with redis.Redis(port=server.port, password="right") as admin:
                admin.config_set("requirepass", "wr0ng")
            clock.advance(1)
            assert limiter.check("fan").source == "store"
            assert limiter.stats.store_error == ""
            assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize(
    "url",
    [
        "redis://fan:hunter2@127.0.0.1:port/0",
        "redis+cluster://fan:hunter2@127.0.0.1:port",
        "redis+sentinel://fan:hunter2@127.0.0.1:26379",
        "rediss+sentinel://fan:hunter2@127.0.0.1:26379/service/db",
        "redis://fan:hunter2@127.0.0.1:6379/x",
        "redis://fan:hunter2@127.0.0.1:6379/-1",
        "rediss://fan:hunter2@127.0.0.1:6379/0/1?ssl_ca_certs=ca.pem",
        "redis+cluster://fan:hunter2@127.0.0.1:6379/1",
        "mysql://fan:hunter2@127.0.0.1/0",
        "redis://127.0.0.1:port/0?password=hunter2",
        "redis:/fan:hunter2@127.0.0.1/0",
        "redis://fan:hun/ter@hunter2@127.0.0.1:port/0",
    ],
)
def test_no_configuration_error_shows_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Limiter(QUOTA, store=url)
    assert "hunter2" not in caught.value.message
    assert "127.0.0.1" in caught.value.message
    assert caught.value.__cause__ is None


def test_a_database_that_is_no_number_is_refused_clearly() -> None:
    with pytest.raises(ConfigError, match=r"the database must be a number, not 'x'; a valid one is redis://"):
        Limiter(QUOTA, store="redis://127.0.0.1:6379/x")
    for good in ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379/", "redis://127.0.0.1:6379/15?protocol=3"):
        Limiter(QUOTA, store=good).close()


# -- connecting --------------------------------------------------------------------------------------------------------


class SlowCredentials(redis.CredentialProvider):
    """Gives credentials when the test allows it."""

    def __init__(self) -> None:
        self.given = threading.Event()
        self.asked = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        self.given.wait(30)
        return "default", "secret"

    async def get_credentials_async(self) -> tuple[str, str]:
        self.asked += 1
        await asyncio.to_thread(self.given.wait, 30)
        return "default", "secret"


async def test_nobody_waits_past_the_deadline_for_a_connection_which_then_serves_later_callers() -> None:
    clock = ManualClock()
    with Valkey("--requirepass", "secret") as server:
        slow = SlowCredentials()
        async with Limiter(QUOTA, store=server.url, credential_provider=slow, clock=clock) as limiter:
            for _ in range(2):
                clock.advance(1)  # past the breaker's pause
                assert {limiter.check("fan").source, (await limiter.acheck("fan")).source} == {"local"}
            assert slow.asked == 2, "later callers wait for the first attempts"
            slow.given.set()
            sources = set()
            for _ in range(200):
                clock.advance(1)
                sources |= {
                    f"blocking {limiter.check('fan').source}",
                    f"asyncio {(await limiter.acheck('fan')).source}",
                }
                if {"blocking store", "asyncio store"} <= sources:
                    break
            assert {"blocking store", "asyncio store"} <= sources


async def test_a_cluster_that_cannot_be_reached_is_a_store_that_is_down(redis_cluster: Cluster, tmp_path: Path) -> None:
    clock = ManualClock()
    port = free_port()
    url = f"redis+cluster://127.0.0.1:{port}"
    async with Limiter(QUOTA, store=url, clock=clock, deadline_s=10.0, prefix="reached") as limiter:
        for _ in range(2):
            assert {limiter.check("fan").source, (await limiter.acheck("fan")).source} == {"local"}
        assert "cannot be connected" in limiter.stats.store_error
        with TlsProxy(tmp_path, redis_cluster.nodes[0].port, port):
            clock.advance(1)
            assert (await limiter.acheck("fan")).source == "store"
            assert limiter.check("fan").source == "store"
    with Limiter(QUOTA, store=url, on_store_down="closed") as limiter:
        assert limiter.check("fan").source == "closed"


# -- TLS ---------------------------------------------------------------------------------------------------------------


async def ask_over_tls(url: str, proxy: TlsProxy) -> None:
    async with Limiter(QUOTA, store=f"{url}?ssl_ca_certs={proxy.certificate}", deadline_s=10.0) as limiter:
        answers = [limiter.check("fan"), await limiter.acheck("fan"), limiter.check("fan")]
        assert [(answer.source, answer.remaining) for answer in answers] == [("store", 999 - n) for n in range(3)]
        assert proxy.tls_connections >= 2


async def test_tls_to_one_server_and_by_sentinels(own_valkey: Valkey, tmp_path: Path) -> None:
    with TlsProxy(tmp_path, own_valkey.port) as proxy:
        await ask_over_tls(f"rediss://127.0.0.1:{proxy.port}/0", proxy)
        sentinel = Sentinel(own_valkey, port=proxy.port, down_after_ms=60_000)
        with sentinel, TlsProxy(tmp_path, sentinel.port) as watched:
            own_valkey.command("FLUSHALL")
            await ask_over_tls(f"rediss+sentinel://127.0.0.1:{watched.port}/frontrow/0", watched)


async def test_tls_to_a_cluster(tmp_path: Path) -> None:
    with TlsProxy(tmp_path) as proxy, Valkey("--cluster-announce-port", str(proxy.port), cluster=True) as node:
        proxy.target = node.port
        node.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: b"cluster_state:ok" in node.command("CLUSTER", "INFO"), tries=50_000)
        await ask_over_tls(f"rediss+cluster://127.0.0.1:{proxy.port}", proxy)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path, own_valkey: Valkey) -> None:
    proxy = TlsProxy(tmp_path, own_valkey.port)
    with proxy, Limiter(QUOTA, store=f"rediss://127.0.0.1:{proxy.port}/0", deadline_s=10.0) as limiter:
        assert limiter.check("fan").source == "local"
        assert "CERTIFICATE_VERIFY_FAILED" in limiter.stats.store_error


# -- your own client ---------------------------------------------------------------------------------------------------


async def test_your_own_clients_can_be_the_store(own_valkey: Valkey) -> None:
    own = redis.Redis(port=own_valkey.port, db=3)
    own_asyncio = redis.asyncio.Redis(port=own_valkey.port, db=3)
    async with own_asyncio:
        with own:
            async with Limiter(QUOTA, store=(own, own_asyncio), deadline_s=5.0) as limiter:
                assert [limiter.check("fan").remaining, (await limiter.acheck("fan")).remaining] == [999, 998]
            assert own.dbsize() == await own_asyncio.dbsize() == 1, "the clients are still yours"
            async with Limiter(QUOTA, store=own, deadline_s=5.0) as limiter:
                assert limiter.check("fan").remaining == 997
                with pytest.raises(ConfigError, match="asyncio calls need an asyncio client"):
                    await limiter.acheck("fan")
            async with Limiter(QUOTA, store=own_asyncio, deadline_s=5.0) as limiter:
                assert (await limiter.acheck("fan")).remaining == 996
                with pytest.raises(ConfigError, match="blocking calls need a blocking client"):
                    limiter.check("fan")


async def test_a_clusters_client_can_be_the_store(redis_cluster: Cluster) -> None:
    port = redis_cluster.nodes[0].port
    own = redis.RedisCluster(host="127.0.0.1", port=port)
    async with redis.asyncio.RedisCluster(host="127.0.0.1", port=port) as own_asyncio:
        async with Limiter(QUOTA, store=[own, own_asyncio], deadline_s=10.0, prefix="own") as limiter:
            assert [limiter.check("fan").remaining, (await limiter.acheck("fan")).remaining] == [999, 998]
        assert await own_asyncio.ping()
    own.close()


@pytest.mark.parametrize("given", [None, 42, (), object(), (redis.Redis(), redis.Redis()), (redis.Redis(), "redis://")])
def test_what_is_no_store_is_an_error_that_says_what_would_be(given: Any) -> None:
    with pytest.raises(ConfigError, match="store must be a URL, a client of redis-py, or a pair of them"):
        Limiter(QUOTA, store=given)


def test_options_of_a_connection_belong_to_your_own_client() -> None:
    with pytest.raises(ConfigError, match="credential_provider belongs to the client"):
        Limiter(QUOTA, store=redis.Redis(), credential_provider=SlowCredentials())
    with pytest.raises(ConfigError, match="'username' and 'password' cannot be passed along with"):
        Limiter(QUOTA, store="redis://a:b@127.0.0.1/0", credential_provider=SlowCredentials())


async def test_the_internals_of_redis_py_that_connections_are_taken_from_are_still_there(redis_url: str) -> None:
    """The names `_sock` and `_writer`. Without them the store would still work, at several times the cost."""
    source = RedisSource(redis_url)
    sock, client = await asyncio.to_thread(source.open_blocking)
    assert isinstance(sock, socket.socket)
    assert client is None
    sock.close()
    ended = asyncio.Event()

    class Watcher(asyncio.Protocol):
        def connection_lost(self, error: Exception | None) -> None:
            ended.set()

    writer, client = await source.open_asyncio(Watcher())
    assert isinstance(writer, asyncio.StreamWriter)
    assert client is None
    writer.transport.abort()
    await ended.wait()
