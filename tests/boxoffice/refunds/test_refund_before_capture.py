"""Tickets given back before the worker has taken the money: the organiser keeps the fee (B12, ADR 0183)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.simulated import AUTHORISATION_LIFETIME_US, LAPSES, Fault
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent
from frontrow.boxoffice.pricing.model.booking_choices import Reprice
from frontrow.boxoffice.pricing.model.prices import encode_lines, quote
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.clock import US_PER_S
from tests.boxoffice.checkout.till import EVENT, Till, assert_money, open_till
from tests.boxoffice.shop import shop_event, shop_plan
from tests.boxoffice.tickets.samples import KEYS

CARD = "pm_card_visa"


async def put_policy(till: Till, **policy: int) -> None:
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, refunds=RefundPolicy(**policy)), till.clock())


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        await put_policy(one, fee_per_seat_minor=1000)
        yield one


async def sold(till: Till, *seats: int, card: str = CARD) -> tuple[str, int]:
    """Sold, and not yet captured."""
    hold = await till.hold(*seats)
    await till.checkout.pay(hold.booking_id, hold.fence, card)
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURING
    return hold.booking_id, hold.fence


def taken(till: Till) -> list[tuple[int, int]]:
    """What was captured and what was given back, per object of the provider."""
    given = till.provider.refunds.values()
    return [
        (one["amount_received"], sum(back["amount"] for back in given if back["payment_intent"] == one["id"]))
        for one in till.provider.objects.values()
    ]


async def test_whoever_cancels_before_the_capture_pays_the_fee(till: Till) -> None:
    """Of ten who cancelled within the half second, ten paid nothing."""
    bookings = [await sold(till, 2 * number, 2 * number + 1) for number in range(10)]
    for booking_id, fence in bookings:
        await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert taken(till) == [(10_000, 8_000)] * 10
    for booking_id, _ in bookings:
        [refund] = await till.ledger.payments.refunds_of(booking_id)
        assert (refund.state, refund.amount_minor, refund.fee_minor) == (RefundState.DONE, 8_000, 2_000)
    await assert_money(till, at_rest=True)
    assert (await till.reconciler.run()).difference_minor == {}


async def test_without_a_fee_nothing_is_charged(till: Till) -> None:
    await put_policy(till)
    booking_id, fence = await sold(till, 1)
    await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert taken(till) == [(0, 0)]
    assert (await till.driver_payment(booking_id)).state is PaymentState.VOIDED
    await assert_money(till, at_rest=True)


async def test_a_cancelled_event_keeps_no_fee(till: Till) -> None:
    await sold(till, 1)
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    await till.settle()
    assert taken(till) == [(0, 0)]
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("fee", [1000, 0])
async def test_cancelled_while_the_capture_is_under_way(till: Till, fee: int) -> None:
    """Whoever is first at the provider: what was taken is given back, less the fee."""
    await put_policy(till, fee_per_seat_minor=fee)
    booking_id, fence = await sold(till, 1)
    asked, go = asyncio.Event(), asyncio.Event()
    capture = till.provider.capture

    async def slow(ref: str, key: str) -> Intent:
        asked.set()
        await go.wait()
        return await capture(ref, key)

    till.provider.capture = slow  # type: ignore[method-assign]
    working = asyncio.create_task(till.checkout.work())
    await asked.wait()
    await till.refunds.refund(booking_id, fence)
    till.provider.capture = capture  # type: ignore[method-assign]
    other = till.restarted()
    till.clock.advance(31)  # the claim of the first worker has ended: a second one drives the same payment
    await other.checkout.work()
    go.set()
    await working
    await till.settle()
    assert taken(till) == ([(5_000, 4_000)] if fee else [(0, 0)])
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_fault_of_the_capture_keeps_the_fee_once(tmp_path: Path, fault: Fault) -> None:
    faults = iter([fault])

    def script(asked: str, key: str, number: int) -> Fault | None:
        return next(faults, None) if asked == "capture" else None

    async with open_till(tmp_path, script=script) as till:
        await put_policy(till, fee_per_seat_minor=1000)
        booking_id, fence = await sold(till, 1)
        await till.refunds.refund(booking_id, fence)
        await till.settle(200)
        assert taken(till) == [(5_000, 4_000)]
        await assert_money(till, at_rest=True)


async def test_seats_given_back_one_by_one_before_the_capture(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2)
    await till.refunds.refund(booking_id, fence, [1])
    await till.refunds.override(booking_id)  # the rest, without a fee: that of the first seat is still kept
    await till.settle()
    assert taken(till) == [(10_000, 9_000)]
    await assert_money(till, at_rest=True)


async def test_a_fee_as_high_as_the_price_is_taken_and_nothing_is_given_back(till: Till) -> None:
    await put_policy(till, fee_basis_points=10_000)
    booking_id, fence = await sold(till, 1)
    refund = await till.refunds.refund(booking_id, fence)
    assert (refund.amount_minor, refund.fee_minor) == (0, 5_000)
    await till.settle()
    assert taken(till) == [(5_000, 0)]
    assert (await till.ledger.payments.refunds_of(booking_id))[0].state is RefundState.DONE
    await assert_money(till, at_rest=True)


async def test_a_fee_as_high_as_the_price_is_not_kept_of_a_reservation_that_the_bank_dropped(till: Till) -> None:
    """It was noted as kept when the fan asked, and stayed in the figures, although nothing was taken."""
    await put_policy(till, fee_basis_points=10_000)
    booking_id, fence = await sold(till, 1, card=LAPSES)
    await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert taken(till) == [(0, 0)]
    [refund] = await till.ledger.payments.refunds_of(booking_id)
    assert refund.state is RefundState.MOOT
    await assert_money(till, at_rest=True)


async def test_a_reservation_that_the_bank_dropped_keeps_no_fee_and_is_not_tried_again(till: Till) -> None:
    booking_id, fence = await sold(till, 1, card=LAPSES)
    await till.refunds.refund(booking_id, fence)
    await till.settle()
    assert taken(till) == [(0, 0)]
    assert (await till.booking(booking_id)).state is BookingState.REFUNDED
    [payment] = await till.ledger.payments.payments_of(booking_id)
    assert payment.state is PaymentState.LAPSED
    [refund] = await till.ledger.payments.refunds_of(booking_id)
    assert refund.state is RefundState.MOOT
    await assert_money(till, at_rest=True)


async def test_an_outage_delays_capture_and_refund(till: Till) -> None:
    booking_id, fence = await sold(till, 1)
    till.provider.down = True
    await till.refunds.refund(booking_id, fence)
    await till.settle(300)
    till.provider.down = False
    await till.settle(300)
    assert taken(till) == [(5_000, 4_000)]
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("fee", [0, 1000])
async def test_the_receipt_of_a_second_payment_adds_up_to_it(till: Till, fee: int) -> None:
    """A seat goes back, the bank drops the reservation, and the card is charged for the rest only. The receipt and the
    invoice listed both seats above the price of one."""
    await put_policy(till, fee_per_seat_minor=fee)
    hold = await till.hold(1, 2)
    quoted = quote(shop_plan(), shop_event(id=EVENT), hold.seats)
    await till.ledger.reprice(
        Reprice(
            hold.booking_id,
            hold.fence,
            till.clock(),
            hold.seats,
            quoted.seat_totals_minor,
            quoted.total_minor,
            encode_lines(quoted.lines),
            (),
        )
    )
    await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    await till.refunds.refund(hold.booking_id, hold.fence, [1])
    till.clock.advance(AUTHORISATION_LIFETIME_US // US_PER_S + 1)
    await till.settle()
    assert taken(till) == [(0, 0), (5_000, 0)]
    receipt = await Receipts(till.ledger, TicketRenderer(till.ledger, KEYS)).of(hold.booking_id)
    assert receipt is not None
    assert receipt.total.minor == sum(line.amount.minor for line in receipt.lines) == 5_000
    assert [line.amount.minor for line in receipt.lines] == [10_000, -5_000]
    assert receipt.refunds == ()
    await assert_money(till, at_rest=True)
