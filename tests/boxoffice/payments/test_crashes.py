"""F5: the process dies at every crash point, simulated; the next one finds the right end within 60 s by itself."""

import contextlib
from pathlib import Path

import msgspec
import pytest

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.payment_rules import DAY_US, PaymentRules
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, assert_money, open_till
from tests.boxoffice.payments.crashes import (
    CARD,
    ENDS,
    LATE_S,
    METHODS,
    POINTS,
    STEPS,
    UNTOUCHED,
    Crash,
    Fuse,
    FusedLedger,
    FusedProvider,
    at_bank,
    pay_although_void,
    play,
)
from tests.boxoffice.shop import shop_event

WITH_FEE = RefundPolicy(fee_per_seat_minor=1000)


async def begun(till: Till, scenario: str) -> tuple[str, int]:
    """A hold; with its payment page open, or sold, where the scenario begins there."""
    hold = await till.hold(1, 2)
    if scenario == "sold in two calls":  # a provider that authorises no card with the creation
        create = till.provider.create
        till.provider.create = lambda new: create(msgspec.structs.replace(new, method=""))  # type: ignore[method-assign]
    if scenario == "given back before the capture":  # the organiser keeps a fee, so the money is taken
        await till.ledger.catalogue.put_event(shop_event(id=EVENT, refunds=WITH_FEE), till.clock())
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    if "refunded" in scenario:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        await till.pay(hold.booking_id, hold.fence, CARD)
    if scenario in METHODS:
        rules, starts_at_us = PaymentRules(pay_days=5), till.clock() + 60 * DAY_US
        event = shop_event(id=EVENT, card_tries=1, payments=rules, starts_at_us=starts_at_us)
        await till.ledger.catalogue.put_event(event, till.clock())
    if scenario == "money for a payment that was cancelled":  # the fan went back to the shop, and paid at the bank
        asked = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
        assert asked.payment is not None
        await till.checkout.step_back(hold.booking_id, hold.fence)
        pay_although_void(till.provider, asked.payment.ref)
    if scenario in ("paid in the browser", "given back"):
        await till.checkout.begin(hold.booking_id, hold.fence)
    if scenario == "paid in the browser":
        till.provider.confirm_in_browser((await till.driver_payment(hold.booking_id)).ref, CARD)
    return hold.booking_id, hold.fence


async def finish_at_bank(till: Till, scenario: str, booking_id: str, fence: int) -> None:
    """What the fan and the bank still do after the crash, each in its time."""
    if METHODS[scenario] in ("sepa_debit", "bank_transfer"):
        at_bank(till.provider, agree=True)
    with contextlib.suppress(FrontrowError):
        await till.checkout.check(booking_id, fence)
    left_s = (await till.booking(booking_id)).hold_expires_at_us - till.clock()
    if scenario in LATE_S and left_s > 0:
        till.clock.advance(left_s // 1_000_000)
    at_bank(till.provider, agree=True, pays=True, fails=scenario == "direct debit that fails")
    with contextlib.suppress(FrontrowError):
        await till.checkout.check(booking_id, fence)
    await till.reconciler.run()


async def run_until_crash(till: Till, scenario: str, booking_id: str, fence: int, fuse: Fuse) -> None:
    ledger, provider = FusedLedger(till.ledger, fuse), FusedProvider(till.provider, fuse)
    checkout = Checkout(ledger, provider, till.clock, issuer=ISSUER)  # type: ignore[arg-type]
    refunds = Refunds(ledger, provider, till.clock)  # type: ignore[arg-type]
    await play(scenario, checkout, refunds, booking_id, fence, lambda: till.clock.advance(600), till.sweeper.sweep)


@pytest.mark.parametrize("scenario", STEPS)
async def test_the_table_of_crash_points_is_complete(scenario: str, tmp_path: Path) -> None:
    """Every call and every commit of the scenario is a row of the table, in order."""
    async with open_till(tmp_path) as till:
        fuse = Fuse()
        await run_until_crash(till, scenario, *await begun(till, scenario), fuse)
        assert fuse.trace == STEPS[scenario]
        await till.turn()
        await assert_money(till, at_rest=True)


@pytest.mark.parametrize(("scenario", "number", "when", "step"), POINTS)
async def test_a_crash_is_survived(scenario: str, number: int, when: str, step: str, tmp_path: Path) -> None:
    """F5, N4, B14."""
    async with open_till(tmp_path) as till:
        booking_id, fence = await begun(till, scenario)
        with pytest.raises(Crash):
            await run_until_crash(till, scenario, booking_id, fence, Fuse(number, when))
        await assert_money(till)
        new = till.restarted()
        if scenario in METHODS:
            await new.settle(for_s=40, step_s=10)  # whatever the process had begun goes on
            await finish_at_bank(new, scenario, booking_id, fence)
        await new.settle(for_s=60, step_s=10)
        if scenario == "money for a payment that was cancelled":
            await new.reconciler.run()  # the notice may be lost with the process
        booking = await new.booking(booking_id)
        untouched = number == 0 and when == "before"
        assert booking.state in ({UNTOUCHED[scenario]} if untouched else ENDS[scenario])
        await assert_money(new, at_rest=True)
        if booking.state is BookingState.HELD:
            outcome = await new.pay(booking_id, fence, CARD)
            assert outcome.booking.state is BookingState.CONFIRMED
        assert (await new.reconciler.run()).difference_minor == {}


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_card_reserved_by_a_call_nobody_heard_of_is_released_when_the_fan_gives_up(
    when: str, tmp_path: Path
) -> None:
    """The process dies around the call that creates the object and authorises its card; the ledger knows no object."""
    async with open_till(tmp_path) as till:
        booking_id, fence = await begun(till, "sold")
        with pytest.raises(Crash):
            await run_until_crash(till, "sold", booking_id, fence, Fuse(1, when))
        new = till.restarted()
        assert (await new.checkout.release(booking_id, fence)).state is BookingState.CANCELLED
        await assert_money(new, at_rest=True)
        assert [found["status"] for found in new.provider.objects.values()] == ["canceled"]
