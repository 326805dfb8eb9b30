"""L7: `acquire` waits within its timeout, first come, first served among the callers of one key."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.limits import ConcurrencyLimiter, Decision, Limiter, Quota, Rule, Throttled, waiting_line
from frontrow.testing.clock import ManualClock
from tests.limits.backends import Backend
from tests.support.eventually import eventually, eventually_sync


def test_l7_a_queue_whose_turn_comes_too_late_is_refused_at_once_and_returned(
    backend: Backend, clock: ManualClock
) -> None:
    """`acquire(timeout_s=1)` once waited six seconds for a slot of a `leaky_queue`."""
    shaper = backend.limiter(Quota.parse("1/100s burst 10 leaky_queue"), clock)
    for _ in range(7):
        shaper.check("mail")
    began_us = clock()
    with pytest.raises(Throttled, match=r"turn comes \d+\.\d+ s too late") as caught:
        shaper.acquire("mail", timeout_s=100)
    refused = caught.value.decision
    assert clock() == began_us, "it did not wait"
    assert (refused.allowed, refused.delay_us, refused.remaining) == (False, 0, 3), "and it returned its slot"
    assert 550 < refused.retry_after_s <= 600
    assert shaper.acquire("mail", timeout_s=2000).allowed
    assert 650_000_000 < clock() - began_us <= 700_000_000


class RecordedClock(ManualClock):
    """A clock on which a test lets sleepers go on one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.sleepers: list[tuple[asyncio.Future[None], float]] = []

    def sleep(self, seconds: float) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.sleepers.append((future, seconds))
        return future

    def wake_all(self) -> None:
        sleepers, self.sleepers = self.sleepers, []
        self.advance(max(seconds for _, seconds in sleepers))
        for future, _ in sleepers:
            if not future.done():
                future.set_result(None)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_l7_tasks_of_one_key_are_served_in_the_order_they_came() -> None:
    """One permit per second and fifty tasks: the order of arrival is the order of service."""
    clock = RecordedClock()
    limiter = Limiter(Quota.parse("1/s sliding_log"), clock=clock)
    limiter.check("fan")
    served: list[int] = []

    async def work(number: int) -> None:
        await limiter.aacquire("fan")
        served.append(number)

    tasks = []
    for number in range(50):
        tasks.append(asyncio.create_task(work(number)))
        await settle()
        if number == 20:
            clock.wake_all()  # somebody is served while others still arrive
            await settle()
    assert len(clock.sleepers) == 1, "only the head of the line waits for the store"
    while clock.sleepers:
        clock.wake_all()
        await settle()
    await asyncio.gather(*tasks)
    assert served == list(range(50))


async def test_l7_a_caller_that_comes_late_does_not_overtake() -> None:
    clock = RecordedClock()
    limiter = Limiter(Quota.parse("1/s sliding_log"), clock=clock)
    limiter.check("fan")
    first = asyncio.create_task(limiter.aacquire("fan"))
    await settle()
    clock.advance(5)  # free again, but the first has not noticed yet
    second = asyncio.create_task(limiter.aacquire("fan"))
    other = asyncio.create_task(limiter.aacquire("another fan"))
    await settle()
    assert not second.done()
    assert (await other).allowed, "every key has its own line"
    clock.wake_all()
    await settle()
    assert first.done()
    assert not second.done()
    clock.wake_all()
    assert (await second).allowed


async def test_l7_a_cancelled_head_passes_its_turn_on() -> None:
    clock = RecordedClock()
    limiter = Limiter(Quota.parse("1/s sliding_log"), clock=clock)
    limiter.check("fan")
    tasks = [asyncio.create_task(limiter.aacquire("fan")) for _ in range(3)]
    await settle()
    tasks[0].cancel()
    tasks[1].cancel()
    await settle()
    while clock.sleepers:
        clock.wake_all()
        await settle()
    assert (await tasks[2]).allowed
    assert limiter.check("fan", now_us=clock() + 1_000_000).allowed, "nothing was charged for those who left"
    assert not limiter._lines._lines


async def test_l7_a_wait_behind_others_ends_at_its_own_timeout() -> None:
    limiter = Limiter(Quota.parse("1/hour sliding_log"))
    limiter.check("fan")
    head = asyncio.create_task(limiter.aacquire("fan"))
    await settle()
    with pytest.raises(Throttled) as caught:
        await limiter.aacquire("fan", timeout_s=0.01)
    assert caught.value.decision.retry_after_s > 3000, "known at once: the head itself is not served in time"
    head.cancel()
    await asyncio.gather(head, return_exceptions=True)

    soon = Limiter(Quota.parse("1/5s sliding_log"))
    soon.check("fan")
    line = [asyncio.create_task(soon.aacquire("fan", timeout_s=60)) for _ in range(2)]
    await settle()
    waits_for = next(iter(soon._lines._lines.values()))
    waits_for.opens_at_us = 0  # as if the head was to be served at any moment
    with pytest.raises(Throttled):
        await soon.aacquire("fan", timeout_s=0.02)
    assert len(waits_for.turns) == 2, "who gave up has left the line"
    for task in line:
        task.cancel()
    await asyncio.gather(*line, return_exceptions=True)


def test_l7_threads_are_served_in_the_order_they_came() -> None:
    """On a clock that stands still until all are in the line: a slow machine must not serve the first one at once."""
    clock = HeldClock()
    limiter = Limiter(Quota.parse("1/20ms sliding_log"), clock=clock)
    limiter.check("fan")

    def waiting() -> int:
        return sum(len(line.turns) for line in limiter._lines._lines.values())

    threads = [threading.Thread(target=limiter.acquire, args=("fan",), name=str(number)) for number in range(20)]
    for number, thread in enumerate(threads):
        thread.start()
        while waiting() < number + 1 and thread.is_alive():
            clock.hold.wait(0.001)
        assert waiting() == number + 1
    clock.hold.set()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert clock.slept == [str(number) for number in range(20)], "each waited once, as the head of the line"


class HeldClock(ManualClock):
    """Sleepers sleep until the test lets them go. Then their time passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.hold = threading.Event()
        self.slept: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(threading.current_thread().name)
        self.hold.wait()
        super().sleep(seconds)


async def test_l7_a_line_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_line, "MAX_WAITING", 2)
    limiter = Limiter("1/hour")
    limiter.check("fan")
    tasks = [asyncio.create_task(limiter.aacquire("fan")) for _ in range(2)]
    await settle()
    with pytest.raises(Throttled, match="2 callers of this limiter wait already"):
        await limiter.aacquire("fan")
    assert (await limiter.aacquire("another fan")).allowed, "who need not wait is served"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not limiter._lines._lines


def test_a_caller_whose_event_loop_is_gone_does_not_block_the_line() -> None:
    lines = waiting_line.WaitingLines()
    loop = asyncio.new_event_loop()

    async def make_turn() -> waiting_line.TaskTurn:
        return waiting_line.TaskTurn()

    gone = loop.run_until_complete(make_turn())
    loop.close()
    first, last = waiting_line.ThreadTurn(), waiting_line.ThreadTurn()
    for turn in (first, gone, last):
        lines.join("fan", turn)
    lines.leave("fan", first)
    assert lines.is_head("fan", last)
    lines.leave("fan", gone)
    lines.leave("fan", last)
    assert "fan" not in lines


# -- refunds and resets ----------------------------------------------------------------------------------------------


def give_back(limiter: Limiter, how: str) -> None:
    match how:
        case "refund":
            limiter.refund("fan", 3)
        case "reset":
            limiter.reset("fan")
        case "settle":
            limiter.reservation.settle(0)  # type: ignore[attr-defined]


async def agive_back(limiter: Limiter, how: str) -> None:
    match how:
        case "refund":
            await limiter.arefund("fan", 3)
        case "reset":
            await limiter.areset("fan")
        case "settle":
            await limiter.reservation.asettle(0)  # type: ignore[attr-defined]


def use_up(url: str) -> Limiter:
    options: dict[str, Any] = {} if url == "memory://" else {"deadline_s": 5.0}
    limiter = Limiter("4/day token_bucket", store=url, **options)
    limiter.check("fan")
    limiter.reservation = limiter.reserve("fan", 3)  # type: ignore[attr-defined]
    return limiter


@pytest.mark.parametrize("how", ["refund", "reset", "settle"])
@pytest.mark.parametrize("place", ["memory", "redis"])
def test_threads_that_wait_are_woken_when_units_are_given_back(redis_url: str, place: str, how: str) -> None:
    """They would have slept for six hours. Who is first in line is served first."""
    with use_up("memory://" if place == "memory" else redis_url) as limiter:
        served: list[int] = []

        def work(number: int) -> None:
            limiter.acquire("fan")
            served.append(number)

        for number in range(3):
            threading.Thread(target=work, args=(number,), daemon=True).start()
            eventually_sync(lambda wanted=number + 1: limiter._lines._waiting == wanted)  # type: ignore[misc]
        give_back(limiter, how)
        eventually_sync(lambda: len(served) == 3 and not len(limiter._lines))
        assert served == [0, 1, 2]


@pytest.mark.parametrize("how", ["refund", "reset", "settle"])
@pytest.mark.parametrize("place", ["memory", "redis"])
async def test_tasks_that_wait_are_woken_when_units_are_given_back(redis_url: str, place: str, how: str) -> None:
    async with use_up("memory://" if place == "memory" else redis_url) as limiter:
        waiting = [asyncio.create_task(limiter.aacquire("fan")) for _ in range(3)]
        await eventually(lambda: limiter._lines._waiting == 3)
        await agive_back(limiter, how)
        async with asyncio.timeout(20):
            assert all(decision.allowed for decision in await asyncio.gather(*waiting))


async def test_a_refund_of_one_key_wakes_those_who_share_a_rule_with_it() -> None:
    limiter = Limiter([Rule("all", Quota.parse("2/day"), per=()), Rule("user", Quota.parse("5/day"), per=("user",))])
    limiter.check({"user": "ann"}, 2)
    waiting = asyncio.create_task(limiter.aacquire({"user": "bob"}))
    await eventually(lambda: len(limiter._lines))
    await limiter.arefund({"user": "ann"})
    async with asyncio.timeout(20):
        assert (await waiting).allowed


async def test_units_given_back_between_the_refusal_and_the_line_are_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter = Limiter("1/day token_bucket")
    limiter.check("fan")
    join = limiter._lines.join

    def refund_and_join(*args: Any) -> Any:
        limiter.refund("fan")
        return join(*args)

    monkeypatch.setattr(limiter._lines, "join", refund_and_join)
    async with asyncio.timeout(20):
        assert (await limiter.aacquire("fan")).allowed


def refunding_in_line(limiter: Limiter) -> Callable[..., Decision]:
    """`check` of a limiter. The unit comes back just after its second call, the first one in line."""
    calls, check = itertools.count(1), limiter.check

    def refuse_then_refund(key: str, cost: int = 1) -> Decision:
        decision = check(key, cost)
        if next(calls) == 2:
            limiter.refund(key)
        return decision

    return refuse_then_refund


def test_a_thread_does_not_miss_units_given_back_between_a_refusal_in_line_and_its_nap() -> None:
    limiter, told = Limiter("1/day token_bucket"), list[Decision]()
    limiter.check("fan")
    limiter.check = refunding_in_line(limiter)  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: told.append(limiter.acquire("fan")), daemon=True)
    thread.start()
    thread.join(20)
    assert [decision.allowed for decision in told] == [True]


async def test_a_task_does_not_miss_units_given_back_between_a_refusal_in_line_and_its_nap() -> None:
    limiter = Limiter("1/day token_bucket")
    limiter.check("fan")
    check = refunding_in_line(limiter)

    async def acheck(key: str, cost: int = 1) -> Decision:
        return check(key, cost)

    limiter.acheck = acheck  # type: ignore[method-assign, assignment]
    async with asyncio.timeout(20):
        assert (await limiter.aacquire("fan")).allowed


# -- what cannot be a timeout ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_s", [float("nan"), "5", True, [1], -1, -0.001, float("-inf")])
async def test_a_wrong_timeout_is_named(timeout_s: Any) -> None:
    limiter, permits = Limiter("1/day"), ConcurrencyLimiter(1)
    for call in (limiter.acquire, permits.acquire):
        with pytest.raises(InvalidInput, match=r"timeout_s must be 0 or more seconds, like 2\.5, or None"):
            call("fan", timeout_s=timeout_s)
    for acall in (limiter.aacquire, permits.aacquire):
        with pytest.raises(InvalidInput, match=r"timeout_s must be 0 or more seconds, like 2\.5, or None"):
            await acall("fan", timeout_s=timeout_s)
    assert limiter.peek("fan").remaining == 1, "and nothing was charged"


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e15])
async def test_an_endless_timeout_is_none(timeout_s: float) -> None:
    limiter = Limiter("2/day token_bucket")
    limiter.check("fan", 2)
    task = asyncio.create_task(limiter.aacquire("fan", timeout_s=timeout_s))
    await eventually(lambda: limiter._lines._waiting == 1)
    thread = asyncio.create_task(asyncio.to_thread(limiter.acquire, "fan", 1, timeout_s))
    await eventually(lambda: limiter._lines._waiting == 2)
    limiter.reset("fan")
    async with asyncio.timeout(20):
        assert all(decision.allowed for decision in await asyncio.gather(task, thread))
