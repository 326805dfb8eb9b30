"""Choices in the ledger, on SQLite and PostgreSQL: the last use has one winner, and a use ends with its booking."""

import asyncio
from typing import Any

import pytest

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, HoldEnded, Move, MoveRefused, StaleFence
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.payments.model.payments import Payment, PaymentChanged
from frontrow.boxoffice.pricing.model.booking_choices import NoneLeft, Reprice, Use
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.core.errors import Overloaded
from tests.boxoffice.adapters.ledger.broken_ledgers import broken
from tests.boxoffice.conftest import opened
from tests.support.booking_moves import decline_booking, refund_booking

NOW_US = 1_800_000_000_000_000
HOLD_US = 600_000_000
CODE = Use("code:evt_1:TEN", 1, 2, "discount", "TEN")
PARKING = Use("add_on:evt_1:parking", 3, 5, "add_on", "Parking")


async def held(ledger: Any, number: int, fan: str = "", at_us: int = NOW_US) -> Booking:
    hold = NewHold(
        f"bkg_{number:026d}",
        "evt_1",
        fan or f"fan_{number}",
        (2 * number, 2 * number + 1),
        at_us,
        at_us + HOLD_US,
        10_000,
        prices_minor=(5_000, 5_000),
    )
    await ledger.place_hold(hold)
    found = await ledger.booking(hold.booking_id)
    assert found is not None
    return found


def asking(booking: Booking, *uses: Use, amount: int = 9_000, now_us: int = NOW_US + 1) -> Reprice:
    half = amount // 2
    return Reprice(booking.id, booking.fence, now_us, booking.seats, (half, amount - half), amount, "[]", uses)


async def test_a_choice_changes_the_price_of_a_hold_and_of_its_seats(ledger: Any) -> None:
    booking = await held(ledger, 1)
    changed = await ledger.reprice(asking(booking, CODE, amount=9_001))
    assert (changed.amount_minor, changed.price_lines, changed.state) == (9_001, "[]", BookingState.HELD)
    assert await ledger.payments.seat_prices(booking.id) == {2: 4_500, 3: 4_501}
    assert await ledger.live_uses([CODE.counter], NOW_US + 1) == {CODE.counter: 1}
    again = await ledger.reprice(asking(booking, CODE))  # a repeated choice uses nothing more
    assert again.amount_minor == 9_000
    assert await ledger.live_uses([CODE.counter], NOW_US + 1) == {CODE.counter: 1}
    await ledger.reprice(asking(booking, amount=10_000))
    assert await ledger.live_uses([CODE.counter], NOW_US + 1) == {}


async def test_of_fifty_who_want_the_last_uses_exactly_so_many_win(ledger: Any) -> None:
    bookings = [await held(ledger, number) for number in range(50)]
    results = await asyncio.gather(
        *(ledger.reprice(asking(booking, CODE)) for booking in bookings), return_exceptions=True
    )
    refused = [one for one in results if isinstance(one, DiscountRefused)]
    assert (len(refused), {one.reason for one in refused}) == (48, {"used_up"})
    assert await ledger.live_uses([CODE.counter], NOW_US + 1) == {CODE.counter: 2}


async def test_all_of_a_choice_is_written_or_nothing(ledger: Any) -> None:
    first, second = await held(ledger, 1), await held(ledger, 2)
    await ledger.reprice(asking(first, PARKING))
    with pytest.raises(NoneLeft) as refused:
        await ledger.reprice(asking(second, CODE, PARKING))
    assert (refused.value.left, refused.value.param) == (2, "add_ons")
    kept = await ledger.booking(second.id)
    assert (kept.amount_minor, kept.price_lines) == (10_000, "")
    assert await ledger.live_uses([CODE.counter, PARKING.counter], NOW_US + 1) == {PARKING.counter: 3}


@pytest.mark.parametrize("end", ["released", "declined", "expired", "seen to be dead", "refunded"])
async def test_a_use_comes_back_when_its_booking_ends(ledger: Any, end: str) -> None:
    one = Use(CODE.counter, 1, 1, "discount", "TEN")
    first = await ledger.reprice(asking(await held(ledger, 1), one))
    now_us = NOW_US + 2
    match end:
        case "released":
            await ledger.release_hold(first.id, first.fence, now_us)
        case "declined":
            await ledger.begin_payment(first.id, first.fence, now_us)
            await decline_booking(ledger, first.id, first.fence, now_us)
        case "expired":
            now_us = NOW_US + HOLD_US
            assert len(await ledger.expire_due(now_us, 10)) == 1
        case "seen to be dead":
            now_us = NOW_US + HOLD_US
        case _:
            await ledger.begin_payment(first.id, first.fence, now_us)
            await ledger.confirm(first.id, first.fence, now_us)
            second = await held(ledger, 3, at_us=now_us)
            with pytest.raises(DiscountRefused):
                await ledger.reprice(asking(second, one, now_us=now_us))
            await refund_booking(ledger, first.id, first.fence, now_us)
    second = await held(ledger, 2, at_us=now_us)
    assert (await ledger.reprice(asking(second, one, now_us=now_us))).amount_minor == 9_000
    assert await ledger.live_uses([one.counter], now_us) == {one.counter: 1}
    gone = await ledger.booking(first.id)
    assert gone.state not in (BookingState.HELD, BookingState.PAYING)


async def test_a_limit_per_person_counts_the_bookings_of_one_fan(ledger: Any) -> None:
    once = Use(CODE.counter, 1, 10, "discount", "TEN", 1)
    first, second = await held(ledger, 1, "fan_a"), await held(ledger, 2, "fan_a")
    await ledger.reprice(asking(first, once))
    with pytest.raises(DiscountRefused) as refused:
        await ledger.reprice(asking(second, once))
    assert refused.value.reason == "used_by_you"
    await ledger.reprice(asking(await held(ledger, 3, "fan_b"), once))


async def test_only_a_live_hold_of_this_fence_changes_its_price(ledger: Any) -> None:
    booking = await held(ledger, 1)
    with pytest.raises(StaleFence):
        await ledger.reprice(Reprice(booking.id, booking.fence + 1, NOW_US, booking.seats, (1, 1), 2, "", ()))
    with pytest.raises(HoldEnded):
        await ledger.reprice(asking(booking, now_us=NOW_US + HOLD_US))
    await ledger.begin_payment(booking.id, booking.fence, NOW_US + 1)
    with pytest.raises(MoveRefused):
        await ledger.reprice(asking(booking))
    await ledger.confirm(booking.id, booking.fence, NOW_US + 2)
    with pytest.raises(MoveRefused):
        await ledger.reprice(asking(booking))


async def test_counting_at_an_old_price_changes_nothing(ledger: Any) -> None:
    """Two tabs: one begins to pay with the price it read, the other chose another one meanwhile."""
    read = await held(ledger, 1)
    await ledger.reprice(asking(read, amount=9_000))
    count_only = Reprice(read.id, read.fence, NOW_US + 2, read.seats, (), read.amount_minor, read.price_lines, (CODE,))
    with pytest.raises(Overloaded):
        await ledger.reprice(count_only)
    now = await ledger.booking(read.id)
    assert (now.amount_minor, await ledger.live_uses([CODE.counter], NOW_US + 3)) == (9_000, {})


async def test_nothing_is_paid_with_an_amount_that_the_choice_has_changed(ledger: Any) -> None:
    booking = await held(ledger, 1)
    await ledger.reprice(asking(booking, amount=9_000))
    stale = Payment(f"pay_{booking.id}_1", booking.id, 1, "simulated", 10_000, "EUR", created_at_us=NOW_US)
    with pytest.raises(PaymentChanged):
        await ledger.payments.save_payment(
            stale, now_us=NOW_US + 2, move=Move.BEGIN_PAYMENT, fence=booking.fence, facts=(), reason="", tickets=()
        )
    assert (await ledger.booking(booking.id)).state is BookingState.HELD
    assert await ledger.payments.payments_of(booking.id) == []
    with pytest.raises(MoveRefused):  # nor sold for nothing
        await ledger.confirm_free(booking.id, booking.fence, NOW_US + 3)
    await ledger.reprice(asking(booking, amount=0))
    sold = await ledger.confirm_free(booking.id, booking.fence, NOW_US + 4)
    assert sold.state is BookingState.CONFIRMED
    assert await ledger.confirm_free(booking.id, booking.fence, NOW_US + 5) == sold


async def test_the_canary_without_a_count_lets_too_many_win(ledger_url: str) -> None:
    sql = broken(ledger_url, "set_use_counters", ("SET taken = r.taken", "SET taken = 0"))
    async with opened(ledger_url, sql=sql) as ledger:
        with pytest.raises(AssertionError):
            await test_of_fifty_who_want_the_last_uses_exactly_so_many_win(ledger)
