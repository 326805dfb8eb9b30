"""B8, F2, F8: a provider that accepts and never answers keeps no fan waiting, and the payment goes on without them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import CheckoutResult, CheckoutState
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.payments import fan_wait
from frontrow.boxoffice.payments.fan_wait import FAN_WAITS_S, FanWait
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent, ProviderNotCalled, ProviderUnknown
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import Till, assert_money, open_till
from tests.support.eventually import eventually

CARD = "pm_card_visa"
SOON_S = 0.02


class SilentProvider(SimulatedProvider):
    """While it is `silent`, it takes every call and answers none. It carries them out or not (`does_it`)."""

    silent, does_it, asked = False, False, 0

    async def _silence(self) -> None:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()

    async def create(self, new: NewIntent) -> Intent:
        if not self.does_it:
            await self._silence()
        intent = await super().create(new)
        if self.does_it:
            await self._silence()
        return intent

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        await self._silence()
        return await super().authorise(ref, method, key)

    async def void(self, ref: str, key: str) -> Intent:
        await self._silence()
        return await super().void(ref, key)

    async def read(self, ref: str) -> Intent:
        await self._silence()
        return await super().read(ref)


def silent(till: Till) -> SilentProvider:
    assert isinstance(till.provider, SilentProvider)
    return till.provider


@pytest.fixture
async def till(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Till]:
    monkeypatch.setattr(fan_wait, "FAN_WAITS_S", SOON_S)
    async with open_till(tmp_path) as one:
        yield Till(one.ledger, one.clock, SilentProvider(one.clock))


def test_the_wait_leaves_time_for_the_rest_of_the_answer() -> None:
    """F8: nobody waits longer than ten seconds."""
    assert 5 < FAN_WAITS_S <= 8


@pytest.mark.parametrize("does_it", [False, True], ids=["lost", "done, answer lost"])
async def test_a_fan_hears_that_it_takes_longer_and_the_worker_sells_the_seats(till: Till, does_it: bool) -> None:
    hold, provider = await till.hold(), silent(till)
    provider.silent, provider.does_it = True, does_it
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    assert outcome.state is CheckoutState.RETRYING
    assert outcome.retry_at_us > till.clock(), "the answer says when to ask again"
    provider.silent = False
    await till.settle()
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    assert len(provider.objects) == 1, "the same key: one payment"
    await assert_money(till, at_rest=True)


async def begin(till: Till, hold: PlacedHold) -> CheckoutResult:
    return await till.checkout.begin(hold.booking_id, hold.fence)


async def check(till: Till, hold: PlacedHold) -> CheckoutResult:
    return await till.checkout.check(hold.booking_id, hold.fence)


async def pay(till: Till, hold: PlacedHold) -> CheckoutResult:
    return await till.checkout.pay(hold.booking_id, hold.fence, CARD)


async def release(till: Till, hold: PlacedHold) -> Booking:
    return await till.checkout.release(hold.booking_id, hold.fence)


async def step_back(till: Till, hold: PlacedHold) -> Booking:
    return await till.checkout.step_back(hold.booking_id, hold.fence)


@pytest.mark.parametrize("act", [begin, check, pay, release, step_back])
@pytest.mark.parametrize("opened", [False, True], ids=["nothing open", "page open"])
async def test_nothing_that_a_fan_does_waits_for_a_silent_provider(
    till: Till, act: Callable[[Till, PlacedHold], Awaitable[object]], opened: bool
) -> None:
    """The test's own time limit ends it otherwise: the provider never answers."""
    hold = await till.hold()
    if opened:
        await begin(till, hold)
    silent(till).silent = True
    await act(till, hold)
    silent(till).silent = False
    await till.settle(700)
    await assert_money(till, at_rest=True)


async def test_all_calls_of_one_request_share_the_time(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that reads and then authorises would wait for both."""
    begun: list[float] = []

    class Counted(FanWait):
        __slots__ = ()

        def __enter__(self) -> None:
            super().__enter__()
            ends_s = fan_wait.fan_wait_ends_s()
            assert ends_s is not None
            begun.append(ends_s)

    with Counted():
        with Counted():
            pass
        assert fan_wait.fan_wait_ends_s() == begun[0] == begun[1], (
            "an inner wait neither extends nor ends the outer one"
        )
        guarded = till.guarded
        await eventually(lambda: asyncio.get_running_loop().time() >= begun[0])
        with pytest.raises(ProviderNotCalled):
            await guarded.read("pi_x")
    assert fan_wait.fan_wait_ends_s() is None
    assert silent(till).asked == 0, "a call that nobody waits for is not begun"
    assert not guarded.breaker.is_open


async def test_a_worker_gives_a_slow_provider_its_whole_time(till: Till) -> None:
    """The answer that no fan waited for is heard by the worker, also if it takes longer than a fan waits."""
    hold, provider = await till.hold(), silent(till)
    provider.silent = True
    await pay(till, hold)
    till.clock.advance(6)
    answered = asyncio.Event()

    async def late() -> None:
        provider.asked += 1
        await answered.wait()

    provider._silence = late  # type: ignore[method-assign]
    working = asyncio.create_task(till.checkout.work())
    ends_s = asyncio.get_running_loop().time() + 2 * SOON_S
    await eventually(lambda: asyncio.get_running_loop().time() > ends_s)
    assert not working.done()
    answered.set()
    await working
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED


async def test_a_fan_who_leaves_while_the_provider_is_silent_changes_nothing(till: Till) -> None:
    """The request is cancelled while it waits: the payment is in the ledger, and the next worker finds it."""
    hold, provider = await till.hold(), silent(till)
    provider.silent = True
    paying = asyncio.create_task(pay(till, hold))
    await eventually(lambda: provider.asked)
    paying.cancel()
    await asyncio.gather(paying, return_exceptions=True)
    assert till.guarded.cap.in_flight == 0
    provider.silent = False
    other = till.restarted()
    await other.settle()
    assert (await other.booking(hold.booking_id)).state is BookingState.CONFIRMED
    await assert_money(other, at_rest=True)


async def test_a_second_click_after_the_wait_pays_once(till: Till) -> None:
    hold, provider = await till.hold(), silent(till)
    provider.silent, provider.does_it = True, True
    await pay(till, hold)
    assert (await pay(till, hold)).state is CheckoutState.RETRYING
    provider.silent = False
    await till.settle()
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    assert len(provider.objects) == 1
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED


async def test_calls_that_hung_while_it_was_away_do_not_open_the_breaker_once_it_is_back(clock: ManualClock) -> None:
    """Selling began again 20 s after a provider was back: calls of the outage failed then, five in a row."""
    provider = SilentProvider(clock)
    guarded = GuardedProvider(provider, clock, deadline_s=SOON_S)
    provider.silent = True
    hung = [asyncio.create_task(guarded.read("pi_x")) for _ in range(20)]
    await eventually(lambda: provider.asked == 20)
    provider.silent = False
    with pytest.raises(Exception, match="pi_x"):  # a definite answer: there is no such object
        await guarded.read("pi_x")
    done = await asyncio.gather(*hung, return_exceptions=True)
    assert {type(one) for one in done} == {ProviderUnknown}
    assert not guarded.breaker.is_open
    provider.silent = True
    done = await asyncio.gather(*(guarded.read("pi_x") for _ in range(5)), return_exceptions=True)
    assert guarded.breaker.is_open, "the canary: five calls that began after the last answer do open it"
