"""Whoever hangs up, at any await of the public API, leaves usage that one of two servers would agree on: what was asked
was done once or not at all, and nothing is given back twice."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from frontrow.limits import ConcurrencyLimiter, LeasedLimiter, Limiter, Quota, Reservation, Rule, Throttled
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stores.from_url import open_memory_store
from frontrow.limits.stores.permits import MemoryPermits
from frontrow.limits.stores.protocol import QuotaSlot
from frontrow.testing.clock import ManualClock
from tests.limits.backends import S
from tests.limits.cancellation import SlowPermits, SlowStore, cancel_at_every_await, others_ended
from tests.limits.shared_stores import KINDS, url_of_kind

CAPACITY, USED = 100, 40
IN_PROCESS = ("memory", "slow")
STORES = (*IN_PROCESS, *KINDS)
Attempt = Callable[[Limiter], Awaitable[Any]]


async def reserve_and_settle_less(limiter: Limiter) -> None:
    async with await limiter.areserve("fan", 10) as reservation:
        await reservation.asettle(4)


async def reserve_and_settle_more(limiter: Limiter) -> None:
    async with await limiter.areserve("fan", 10) as reservation:
        await reservation.asettle(15)


async def reserve_and_settle_in_a_blocking_block(limiter: Limiter) -> None:
    with await limiter.areserve("fan", 10) as reservation:
        await reservation.asettle(4)


async def reserve_and_fail(limiter: Limiter) -> None:
    try:
        async with await limiter.areserve("fan", 10):
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


async def settle_twice_at_once(limiter: Limiter) -> None:
    async with await limiter.areserve("fan", 10) as reservation:
        await asyncio.gather(reservation.asettle(4), reservation.asettle(4))


async def acquire_in_vain(limiter: Limiter) -> None:
    with pytest.raises(Throttled):
        await limiter.aacquire("fan", 70, timeout_s=1)


ATTEMPTS: dict[str, tuple[Attempt, set[int]]] = {  # what is tried, and by how much usage may then differ
    "check": (lambda limiter: limiter.acheck("fan", 7), {0, 7}),
    "peek": (lambda limiter: limiter.apeek("fan", 7), {0}),
    "refund": (lambda limiter: limiter.arefund("fan", 7), {0, -7}),
    "charge": (lambda limiter: limiter.acharge("fan", 7), {0, 7}),
    "reset": (lambda limiter: limiter.areset("fan"), {0, -USED}),
    "acquire": (lambda limiter: limiter.aacquire("fan", 7, timeout_s=60), {0, 7}),
    "acquire in vain": (acquire_in_vain, {0}),
    "reserve": (lambda limiter: limiter.areserve("fan", 7), {0, 7}),
    "reserve, settle less": (reserve_and_settle_less, {0, 10, 4}),
    "reserve, settle more": (reserve_and_settle_more, {0, 10, 15}),
    "reserve, settle in a blocking block": (reserve_and_settle_in_a_blocking_block, {0, 10, 4}),
    "reserve, fail": (reserve_and_fail, {0, 10}),
    "settle twice at once": (settle_twice_at_once, {0, 10, 4}),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    """The URL of a shared store, or a name of `IN_PROCESS`."""
    return str(request.param) if request.param in IN_PROCESS else url_of_kind(request.param, request)


def open_limiter(store: str, quota: Quota) -> Limiter:
    rule, clock = Rule("a", quota), ManualClock()
    if store not in IN_PROCESS:
        return Limiter(rule, store=store, deadline_s=5.0)
    if store == "memory":
        return Limiter(rule, clock=clock)
    return Limiter(rule, store=SlowStore(open_memory_store([QuotaSlot(rule, "", quota)], clock)), clock=clock)


async def check_attempt(limiter: Limiter, attempt: Attempt, may_differ: set[int]) -> None:
    """Each time, the attempt begins with USED units used."""
    limiter.reset("fan")
    limiter.check("fan", USED)
    async with aclosing(cancel_at_every_await(lambda: attempt(limiter))) as rounds:
        async for k in rounds:
            differs = CAPACITY - limiter.peek("fan").remaining - USED
            assert differs in may_differ, f"{differs} after a cancellation at await {k}"
            assert not len(limiter._lines), "nobody is left in line"
            limiter.reset("fan")
            limiter.check("fan", USED)


CASES = [  # a leaky queue makes `acquire` wait for months besides
    (name, algorithm)
    for name in ATTEMPTS
    for algorithm in ALGORITHMS
    if (name, algorithm) != ("acquire", "leaky_queue")
]


@pytest.mark.parametrize(("name", "algorithm"), CASES)
async def test_a_cancelled_call_was_made_once_or_not_at_all(store: str, name: str, algorithm: str) -> None:
    """A settlement that was cancelled in flight was applied, and then all was refunded once more."""
    attempt, may_differ = ATTEMPTS[name]
    limiter = open_limiter(store, Quota(CAPACITY, 366 * 86_400 * S, algorithm))
    async with limiter:
        await check_attempt(limiter, attempt, may_differ)


async def test_a_cancelled_wait_in_line_leaves_no_place(store: str) -> None:
    """The head waits for its time, the second for the head. Whoever is cancelled, the others are served."""
    limiter = open_limiter(store, Quota(CAPACITY, 366 * 86_400 * S, "token_bucket"))

    async def two_wait() -> None:
        await asyncio.gather(*(limiter.aacquire("fan", 60, timeout_s=60) for _ in range(2)), return_exceptions=True)

    async with limiter:
        limiter.check("fan", 50)
        async for _ in cancel_at_every_await(two_wait):
            assert not len(limiter._lines)
        assert limiter.peek("fan").remaining == 50


# -- permits ---------------------------------------------------------------------------------------------------------


async def hold_permit(limiter: ConcurrencyLimiter) -> None:
    async with limiter.permit("fan", timeout_s=5):
        await asyncio.sleep(0)


async def try_permit(limiter: ConcurrencyLimiter) -> None:
    permit = await limiter.atry_acquire("fan")
    if permit is not None:
        try:
            await asyncio.sleep(0)
        finally:
            await permit.arelease()


async def hold_and_wait(limiter: ConcurrencyLimiter) -> None:
    await asyncio.gather(*(hold_permit(limiter) for _ in range(3)))


@pytest.mark.parametrize("permits", ["memory", "slow", "redis"])
@pytest.mark.parametrize("attempt", [hold_permit, try_permit, hold_and_wait])
async def test_a_cancelled_holder_leaves_no_permit(
    attempt: Callable[[ConcurrencyLimiter], Awaitable[None]], permits: str, request: pytest.FixtureRequest
) -> None:
    store: Any = "memory://"
    if permits == "redis":
        store = request.getfixturevalue("redis_url")
    elif permits == "slow":
        store = SlowPermits(MemoryPermits(ManualClock()))
    async with ConcurrencyLimiter(1, name="uploads", store=store, deadline_s=5.0) as limiter:
        async for k in cancel_at_every_await(lambda: attempt(limiter)):
            assert await limiter.ain_use("fan") == 0, f"held after a cancellation at await {k}"


# -- the leased limiter ----------------------------------------------------------------------------------------------


async def check_and_settle(limiter: LeasedLimiter) -> None:
    for _ in range(8):
        assert limiter.check("fan").allowed
    await limiter.settle()


async def test_a_leased_limiter_charges_all_although_settle_is_cancelled() -> None:
    rule, clock = Rule("a", Quota(10_000, 86_400 * S, "token_bucket")), ManualClock()
    store = SlowStore(open_memory_store([QuotaSlot(rule, "", rule.quota)], clock))
    limiter, rounds = LeasedLimiter(rule, store=store, clock=clock, lease=10), 0
    async for _ in cancel_at_every_await(lambda: check_and_settle(limiter)):
        rounds += 1
        assert limiter.shared.peek("fan").remaining == 10_000 - 8 * rounds
    await limiter.aclose()


# -- canaries --------------------------------------------------------------------------------------------------------


async def test_canary_a_settlement_that_is_repeated_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asettle(self: Reservation, actual: int, now_us: int | None = None) -> Any:
        return (await self._store.adecide(self._correction(actual, now_us))).decision

    monkeypatch.setattr(Reservation, "asettle", asettle)
    limiter = open_limiter("slow", Quota(CAPACITY, 366 * 86_400 * S))
    with pytest.raises(AssertionError, match="after a cancellation at await"):
        await check_attempt(limiter, *ATTEMPTS["reserve, settle less"])
    await others_ended()
