"""At most n at once: in one process and over servers, whoever dies, in the order of arrival."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import redis.asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.limits import ConcurrencyLimiter, InvalidKey, InvalidQuota, StoreDown, Throttled
from frontrow.limits.stores.permits import COUNT, RELEASE, RENEW, TAKE, WAIT, MemoryPermits, PermitRequest
from frontrow.limits.stores.redis_permits import RedisPermits
from frontrow.testing.clock import ManualClock
from tests.limits.backends import T0_US, S
from tests.support.eventually import eventually

PATIENCE_S = 60.0  # on a loaded machine; nothing here waits this long


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest, redis_url: str) -> str:
    return "memory://" if request.param == "memory" else redis_url


@pytest.fixture
def two(store: str) -> Iterator[ConcurrencyLimiter]:
    with ConcurrencyLimiter("2 at once", name="jobs", store=store, deadline_s=10.0) as limiter:
        yield limiter


def test_the_third_of_two_at_once_gets_none_until_one_is_released(two: ConcurrencyLimiter) -> None:
    first, second = two.try_acquire("user:42"), two.try_acquire("user:42")
    assert first is not None
    assert second is not None
    assert two.try_acquire("user:42") is None
    assert two.try_acquire("user:7") is not None, "each key has its own permits"
    assert two.in_use("user:42") == 2
    first.release()
    first.release()  # repeating it is harmless
    assert (first.is_held, second.is_held, two.in_use("user:42")) == (False, True, 1)
    assert two.try_acquire("user:42") is not None


async def test_your_own_clients_can_hold_the_permits(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as own:
        async with redis.asyncio.Redis.from_url(redis_url) as own_asyncio:
            pair = ConcurrencyLimiter("1 at once", name="own", store=(own, own_asyncio), deadline_s=10.0)
            async with pair, pair.permit("user:42"):
                assert pair.try_acquire("user:42") is None
            assert await own_asyncio.ping(), "the clients are still yours"
        with ConcurrencyLimiter("1 at once", name="own", store=own, deadline_s=10.0) as blocking:
            with blocking.permit("user:42"):
                assert blocking.in_use("user:42") == 1
            with pytest.raises(ConfigError, match="asyncio calls need an asyncio client"):
                await blocking.aacquire("user:42")
        assert own.ping()
        with pytest.raises(ConfigError, match="belongs to the client"):
            ConcurrencyLimiter(1, name="own", store=own, credential_provider=object())


def test_a_store_of_your_own_can_hold_the_permits() -> None:
    mine = MemoryPermits(ManualClock())
    first, second = ConcurrencyLimiter(1, store=mine), ConcurrencyLimiter(1, store=mine)
    with first.permit("user:42"):
        assert second.try_acquire("user:42") is None
    assert len(mine) == 0


@pytest.mark.parametrize("given", [None, 42, (), redis.asyncio.Redis()])
def test_what_is_no_permit_store_is_an_error(given: object) -> None:
    with pytest.raises(ConfigError, match="store"):
        ConcurrencyLimiter(1, name="jobs", store=given)


def test_a_block_gives_its_permit_back_also_after_an_error(two: ConcurrencyLimiter) -> None:
    def fail() -> None:
        with two.permit({"user": "42"}):
            assert two.in_use({"user": "42"}) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert two.in_use({"user": "42"}) == 0


async def test_a_block_of_asyncio_gives_its_permit_back_also_when_cancelled(store: str) -> None:
    async with ConcurrencyLimiter(1, name="jobs", store=store, deadline_s=10.0) as limiter:
        started = asyncio.Event()

        async def work() -> None:
            async with limiter.permit("k") as permit:
                assert permit.is_held
                started.set()
                await asyncio.Event().wait()

        async def wait_in_line() -> None:
            await limiter.aacquire("k")

        worker = asyncio.create_task(work())
        await started.wait()
        waiter = asyncio.create_task(wait_in_line())
        await asyncio.sleep(0)
        for task in (waiter, worker):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await limiter.ain_use("k") == 0
        assert await limiter.atry_acquire("k") is not None, "nobody stands in line any more"


def test_who_waits_too_long_is_throttled_and_leaves_the_line(two: ConcurrencyLimiter) -> None:
    held = [two.acquire("k"), two.acquire("k")]
    with pytest.raises(Throttled, match=r"jobs: at most 2 at once, and no permit became free in time") as caught:
        two.acquire("k", timeout_s=0.01)
    assert (caught.value.decision.rule, caught.value.decision.limit, caught.value.http_status) == ("jobs", 2, 429)
    held[0].release()
    assert two.try_acquire("k") is not None, "the one that gave up does not stand in line any more"


def test_the_line_is_bounded(store: str) -> None:
    with ConcurrencyLimiter(1, name="jobs", store=store, deadline_s=10.0, max_waiting=0) as limiter:
        _held = limiter.acquire("k")
        with pytest.raises(Throttled, match="0 callers are already waiting"):
            limiter.acquire("k", timeout_s=PATIENCE_S)


class Work:
    """Counts how many do it at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.working = self.most = self.done = 0

    def enter(self) -> None:
        with self._lock:
            self.working += 1
            self.most = max(self.most, self.working)

    def leave(self) -> None:
        with self._lock:
            self.working -= 1
            self.done += 1


def hammer_by_threads(at_once: int, store: str) -> Work:
    work = Work()

    def run(limiter: ConcurrencyLimiter) -> None:
        with limiter.permit("k", timeout_s=PATIENCE_S):
            work.enter()
            time.sleep(0)
            work.leave()

    options = {"name": "jobs", "store": store, "deadline_s": 10.0}
    with ConcurrencyLimiter(at_once, **options) as limiter, ThreadPoolExecutor(50) as pool:
        list(pool.map(lambda _: run(limiter), range(50)))
    return work


def hammer_by_tasks(at_once: int, store: str) -> Work:
    work = Work()

    async def run(limiter: ConcurrencyLimiter) -> None:
        async with limiter.permit("k", timeout_s=PATIENCE_S):
            work.enter()
            await asyncio.sleep(0)
            work.leave()

    async def run_all() -> None:
        async with ConcurrencyLimiter(at_once, name="jobs", store=store, deadline_s=10.0) as limiter:
            await asyncio.gather(*(run(limiter) for _ in range(50)))

    asyncio.run(run_all())
    return work


@pytest.mark.parametrize("hammer", [hammer_by_threads, hammer_by_tasks])
def test_fifty_callers_never_work_more_than_three_at_once_and_all_get_their_turn(
    store: str, hammer: Callable[[int, str], Work]
) -> None:
    work = hammer(3, store)
    assert work.most <= 3
    assert work.done == 50


def test_the_fifty_callers_would_meet_if_they_could() -> None:
    """The canary of the test above."""
    assert hammer_by_tasks(50, "memory://").most > 3


async def test_the_line_is_served_in_the_order_of_arrival(store: str) -> None:
    """Two limiters stand for two servers; a newcomer that only tries does not overtake those who wait."""
    options = {"name": "jobs", "store": store, "deadline_s": 10.0}
    async with ConcurrencyLimiter(1, **options) as here, ConcurrencyLimiter(1, **options) as there:
        servers = [here, there] if store != "memory://" else [here, here]
        first = await here.aacquire("k")
        order: list[int] = []

        async def wait(number: int) -> None:
            async with servers[number % 2].permit("k", timeout_s=PATIENCE_S):
                order.append(number)
                assert await here.atry_acquire("k") is None

        tasks = []
        for number in range(4):
            tasks.append(asyncio.create_task(wait(number)))
            await eventually(lambda: waiting_callers(here), until=lambda count, number=number: count == number + 1)
        await first.arelease()
        await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]


async def waiting_callers(limiter: ConcurrencyLimiter) -> int:
    """How many stand in line: what a newcomer would find ahead."""
    request = limiter._request(TAKE, "k")
    return (await limiter._store.aapply(request)).ahead


CHILD = """
import sys, time
from frontrow.limits import ConcurrencyLimiter
with ConcurrencyLimiter(2, name="jobs", store=sys.argv[1], ttl_s=0.6, deadline_s=10.0) as limiter:
    for line in sys.stdin:
        held = limiter.acquire("k", timeout_s=60)
        print("held", flush=True)
        sys.stdin.readline()
        held.release()
        print("released", flush=True)
"""


class Holder:
    """A process that takes a permit when told to."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def test_a_killed_process_gives_its_permit_back_and_a_living_one_keeps_its_own(redis_url: str) -> None:
    """Renewed while its holder lives, far beyond its time to live; gone soon after the holder was killed."""
    holders = [Holder(redis_url), Holder(redis_url)]
    try:
        with ConcurrencyLimiter(2, name="jobs", store=redis_url, deadline_s=10.0) as limiter:
            assert [holder.tell() for holder in holders] == ["held", "held"]
            assert limiter.try_acquire("k") is None
            holders[0].process.send_signal(signal.SIGKILL)
            mine = limiter.acquire("k", timeout_s=PATIENCE_S)  # waits until the killed one's permit has ended
            assert limiter.in_use("k") == 2, "the living one was renewed meanwhile, and nobody exceeded two"
            assert limiter.try_acquire("k") is None
            assert holders[1].tell() == "released"
            assert limiter.in_use("k") == 1
            mine.release()
    finally:
        for holder in holders:
            holder.close()


def test_a_permit_is_renewed_while_it_is_held_but_no_longer_than_allowed() -> None:
    clock = ManualClock()
    with ConcurrencyLimiter(1, ttl_s=30, max_hold_s=70, clock=clock) as limiter:
        permit = limiter.acquire("k")
        for _ in range(4):
            clock.advance(15)
            limiter._renewals.renew_all()
            assert permit.is_held
        clock.advance(9.999_999)
        assert permit.is_held
        assert limiter.try_acquire("k") is None
        clock.advance(us=1)
        assert not permit.is_held
        limiter._renewals.renew_all()
        assert limiter.try_acquire("k") is not None


def test_a_permit_that_ended_is_not_revived() -> None:
    clock = ManualClock()
    with ConcurrencyLimiter(1, ttl_s=30, clock=clock) as limiter:
        late = limiter.acquire("k")
        clock.advance(30)  # the process was stopped for too long
        other = limiter.try_acquire("k")
        assert other is not None
        limiter._renewals.renew_all()
        assert (late.is_held, other.is_held) == (False, True)
        late.release()
        assert limiter.in_use("k") == 1, "releasing late takes nothing from the other"


def test_a_permit_that_nobody_refers_to_any_more_ends() -> None:
    clock = ManualClock()
    with ConcurrencyLimiter(1, ttl_s=30, clock=clock) as limiter:
        limiter.acquire("k")
        gc.collect()
        clock.advance(29)
        assert not limiter._renewals.renew_all()
        clock.advance(1)
        assert limiter.try_acquire("k") is not None


def test_a_forked_child_neither_releases_nor_renews_its_parents_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    with ConcurrencyLimiter(1, ttl_s=30, clock=clock) as limiter:
        permit = limiter.acquire("k")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        permit.release()
        assert limiter.in_use("k") == 1
        limiter._renewals.add(permit)
        limiter._renewals.renew_all()
        assert not limiter._renewals.renew_all()


@pytest.mark.parametrize(("policy", "allowed"), [("local", [True, False]), ("open", [True, True])])
def test_when_the_store_is_down_the_policy_decides(policy: str, allowed: list[bool]) -> None:
    nobody = "redis://127.0.0.1:1/0"
    with ConcurrencyLimiter(1, name="jobs", store=nobody, on_store_down=policy) as limiter:
        permits = [limiter.try_acquire("k") for _ in range(2)]
        assert [permit is not None for permit in permits] == allowed
        for permit in permits:
            if permit is not None:
                permit.release()
        assert limiter.in_use("k") == 0
    with ConcurrencyLimiter(1, name="jobs", store=nobody) as limiter, pytest.raises(StoreDown):
        limiter.acquire("k")


def test_event_loops_that_end_leave_no_connections(redis_url: str) -> None:
    """Also without `aclose`: every `asyncio.run` closes what it opened."""
    limiter = ConcurrencyLimiter(1, name="jobs", store=redis_url, deadline_s=10.0)

    async def work() -> None:
        async with limiter.permit("k"):
            pass

    with redis.Redis.from_url(redis_url) as client:
        before = len(client.client_list())
        for _ in range(5):
            asyncio.run(work())
        assert limiter.in_use("k") == 0
        wait_until(lambda: len(client.client_list()) <= before + 1)  # the limiter's blocking connection
    limiter.close()


def wait_until(condition: Callable[[], bool]) -> None:
    """Until the server has noticed. Bounded, for a loaded machine."""
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("it did not happen")


def test_idle_keys_take_no_memory() -> None:
    clock = ManualClock()
    permits = MemoryPermits(clock)
    for number in range(100):
        permits.apply(PermitRequest(TAKE, f"k{number}", "p", 1, S))
    assert len(permits) == 100
    clock.advance(1)
    for _ in range(100):
        permits.apply(PermitRequest(COUNT, "other", "p", 1, S))
    assert len(permits) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"at_once": 0}, InvalidQuota, '"10 at once"'),
        ({"at_once": "10/minute"}, InvalidQuota, '"10 at once"'),
        ({"at_once": True}, InvalidQuota, '"10 at once"'),
        ({"at_once": 1, "ttl_s": 0}, ConfigError, "ttl_s must be from 0.1"),
        ({"at_once": 1, "max_hold_s": "long"}, ConfigError, "max_hold_s must be from"),
        ({"at_once": 1, "max_waiting": -1}, ConfigError, "max_waiting must be a whole number"),
        ({"at_once": 1, "store": "redis://127.0.0.1:1/0"}, ConfigError, "needs a name"),
        ({"at_once": 1, "name": "no spaces"}, InvalidQuota, "name is 1 to 64 letters"),
        ({"at_once": 1, "store": "mongo://x"}, ConfigError, "memory://, redis://"),
        ({"at_once": 1, "on_store_down": "pray"}, ConfigError, "open, closed, local"),
        ({"at_once": 1, "tll_s": 5}, ConfigError, "no option 'tll_s'; did you mean 'ttl_s'?"),
        ({"at_once": 1, "colour": "red"}, ConfigError, "no option 'colour'; it has at_once, clock, "),
    ],
)
def test_a_wrong_argument_is_named_with_a_valid_example(arguments: dict, error: type, said: str) -> None:
    with pytest.raises(error) as caught:
        ConcurrencyLimiter(**arguments)
    assert said in str(caught.value)


def test_a_wrong_key_or_timeout_is_an_error(two: ConcurrencyLimiter) -> None:
    with pytest.raises(InvalidKey):
        two.try_acquire("")
    with pytest.raises(InvalidInput, match="timeout_s must be 0 or more"):
        two.acquire("k", timeout_s=-1)


steps = st.tuples(
    st.sampled_from([TAKE, WAIT, WAIT, RENEW, RELEASE, COUNT]),
    st.sampled_from("abcde"),
    st.sampled_from([0, 0, 1, S // 2, S, 2 * S, 3 * S]),
)


@settings(max_examples=40)
@given(limit=st.integers(1, 3), max_waiting=st.integers(0, 3), history=st.lists(steps, max_size=40))
def test_memory_and_redis_give_the_same_answers(
    every_redis_url: str, limit: int, max_waiting: int, history: list[tuple[int, str, int]]
) -> None:
    memory, shared = MemoryPermits(ManualClock()), RedisPermits(every_redis_url, "same", deadline_s=10.0)
    shared._script.client().flushdb()
    now_us = T0_US
    try:
        for op, permit, step_us in history:
            now_us += step_us
            request = PermitRequest(op, "k", permit, limit, S, max_waiting, now_us)
            answer = memory.apply(request)
            assert shared.apply(request) == answer
            assert answer.in_use <= limit
    finally:
        shared.close()
