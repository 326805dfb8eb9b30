"""L13: `@limited` for functions, sync and async; L7: waiting for a permit; L15: an empty key is an error."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits import InvalidKey, Limiter, Quota, Throttled
from frontrow.limits.http.decorators import limited
from frontrow.testing.clock import ManualClock


def test_l13_a_function_is_limited_by_key_and_refusals_raise_throttled(clock: ManualClock):
    @limited("2/minute", key=lambda user_id, **_: user_id, clock=clock)
    def buy(user_id: str, seat: str = "A1") -> str:
        """Buys."""
        return f"{user_id} {seat}"

    assert [buy("1"), buy("1", seat="B2"), buy("2")] == ["1 A1", "1 B2", "2 A1"]
    with pytest.raises(Throttled, match=r"the limit of 2 \(buy\) is used up") as caught:
        buy("1")
    assert caught.value.http_status == 429
    assert caught.value.retry_after_s == caught.value.decision.retry_after_s > 0
    assert (buy.__name__, buy.__doc__) == ("buy", "Buys.")
    clock.advance(caught.value.retry_after_s)
    assert buy("1") == "1 A1"


async def test_l13_an_async_function_is_limited_and_stays_async(clock: ManualClock):
    @limited("25/minute", clock=clock)
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    results = await asyncio.gather(*(work(number) for number in range(60)), return_exceptions=True)
    assert sum(isinstance(answer, int) for answer in results) == 25
    assert sum(isinstance(answer, Throttled) for answer in results) == 35


def test_l8_exactly_n_of_60_calls_from_threads_run(clock: ManualClock):
    ran: list[int] = []

    @limited("25/minute", clock=clock)
    def work(number: int) -> None:
        ran.append(number)

    def attempt(number: int) -> bool:
        try:
            work(number)
        except Throttled:
            return False
        return True

    with ThreadPoolExecutor(60) as pool:
        results = list(pool.map(attempt, range(60)))
    assert (results.count(True), len(ran)) == (25, 25)


class SleepingClock(ManualClock):
    """A clock that moves when somebody sleeps on it."""

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)


async def test_l7_with_wait_s_a_call_waits_for_its_permit_or_gives_up():
    clock = SleepingClock()

    @limited("1/10s", algorithm="sliding_log", wait_s=11, clock=clock)
    def slow() -> int:
        return clock.now_us

    @limited("1/10s", algorithm="sliding_log", wait_s=9, clock=clock)
    async def hasty() -> int:
        return clock.now_us

    first = slow()
    assert slow() - first == 10_000_000
    await hasty()
    with pytest.raises(Throttled):
        await hasty()


def test_l7_a_call_may_cost_more_than_one(clock: ManualClock):
    @limited("10/minute", cost=lambda number: number, clock=clock)
    def take(number: int) -> int:
        return number

    assert [take(4), take(6)] == [4, 6]
    with pytest.raises(Throttled):
        take(1)


def test_l1_a_leaky_queue_paces_calls(clock: ManualClock, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("frontrow.limits.http.decorators.time.sleep", slept.append)

    @limited("10/second", algorithm="leaky_queue", clock=clock)
    def send() -> None: ...

    for _ in range(3):
        send()
    assert slept == [0.1, 0.2]


@pytest.mark.parametrize("who", ["", None, 4.5])
def test_l15_an_empty_or_missing_key_is_an_error_and_never_skipped(who, clock: ManualClock):
    ran: list[object] = []
    work = limited("9/minute", key=lambda user: user, clock=clock)(ran.append)
    with pytest.raises(InvalidKey):
        work(who)
    assert ran == []


def test_l15_wrong_options_are_clear_errors():
    with pytest.raises(ConfigError, match="key must be a function of the call's arguments"):
        limited("1/second", key="user")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="wait_s must be from 0 to 31622400 seconds, like 2"):
        limited("1/second", wait_s=-1)
    with pytest.raises(ConfigError, match="a ready Limiter takes no further options"):
        limited(Limiter("1/second"), burst=3)(print)
    with pytest.raises(ConfigError, match="a ready Quota has its algorithm"):
        limited(Quota.parse("1/second"), algorithm="sliding_log")(print)


def test_l5_functions_may_share_a_limiter_and_lambdas_have_names_too(clock: ManualClock):
    shared = Limiter("2/minute", clock=clock)
    one, two = limited(shared)(lambda: 1), limited(shared)(lambda: 2)
    assert [one(), two()] == [1, 2]
    with pytest.raises(Throttled):
        one()
    assert one.limiter is shared  # type: ignore[attr-defined]
    assert limited("1/second")(lambda: 3).limiter.rules[0].name == "f_lambda_"  # type: ignore[attr-defined]
