"""Refunds of single lines through the real ledger: seats, add-ons, fees and groups, whatever happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.facts.model import BookingPartlyRefunded
from frontrow.boxoffice.gate.model.redemptions import RedeemAnswer, Redeemed, Redemption
from frontrow.boxoffice.holds.model.bookings import BookingState, SeatsNotInBooking
from frontrow.boxoffice.payments.model.payments import PaymentChanged, PaymentState
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, NoneLeft, Reprice
from frontrow.boxoffice.pricing.model.prices import decode_lines, encode_lines
from frontrow.boxoffice.pricing.model.sale_options import Discount
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund, RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import ReturnState
from frontrow.boxoffice.refunds.return_refunds import ReturnRefunds
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    DAY_US,
    HandOver,
    TicketTransferred,
    Transfer,
    TransferState,
)
from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import EVENT, Till, assert_money
from tests.boxoffice.refunds.show_with_choices import CARD, PLAN, SHOW, held
from tests.boxoffice.shop import shop_event


@pytest.fixture
async def till(ledger_url: str) -> AsyncIterator[Till]:
    ledger = await open_ledger(ledger_url)
    try:
        one = Till(ledger, ManualClock())
        await ledger.catalogue.put_event(SHOW, one.clock())
        yield one
    finally:
        await ledger.aclose()


async def sold(till: Till, *seats: int, family: bool = False, **add_ons: int) -> tuple[str, int]:
    booking_id, fence = await held(till, *seats, family=family, **add_ons)
    await till.pay(booking_id, fence, CARD)
    return booking_id, fence


def returned(refund: Refund) -> list[tuple[str, int, int]]:
    return [(line.kind.value, line.quantity, line.amount_minor) for line in decode_refund_lines(refund.lines)]


async def given(till: Till) -> int:
    await till.settle()
    await assert_money(till, at_rest=True)
    return sum(refund["amount"] for refund in till.provider.refunds.values())


async def test_a_refund_of_a_seat_leaves_the_dinner_and_its_price(till: Till) -> None:
    """The finding: two seats and a dinner were paid, all of it came back, and a seat and the dinner were kept."""
    booking_id, fence = await sold(till, 1, 2, dinner=1)
    refund = await till.refunds.refund(booking_id, fence, [1])
    assert returned(refund) == [("seat", 1, 5100)]
    booking = await till.booking(booking_id)
    assert (booking.seats, booking.amount_minor) == ((2,), 5100 + 20_000 + 199)
    assert await given(till) == 5100
    rest = await till.refunds.refund(booking_id, fence)
    assert returned(rest) == [("seat", 1, 5100), ("add_on", 1, 20_000), ("fee", 1, 199)]
    assert await given(till) == 30_399


async def test_an_add_on_goes_back_by_itself_and_can_be_sold_again(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, dinner=3)
    with pytest.raises(NoneLeft):
        await held(till, 3, dinner=1)
    await till.facts()
    refund = await till.refunds.refund(booking_id, fence, add_ons={"dinner": 2})
    assert (refund.seats, returned(refund)) == ((), [("add_on", 2, 40_000)])
    booking = await till.booking(booking_id)
    assert (booking.state, booking.seats) == (BookingState.CONFIRMED, (1, 2))
    (fact,) = [fact for fact in await till.facts() if isinstance(fact, BookingPartlyRefunded)]
    assert (fact.seats, fact.add_ons) == ((), ("2 × Dinner",))
    await held(till, 4, dinner=2)
    with pytest.raises(NoneLeft):
        await held(till, 5, dinner=1)
    assert await given(till) == 40_000


async def test_a_shared_limit_counts_only_the_seats_that_are_kept(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, 3, 4, 5, 6, family=True)
    with pytest.raises(NoneLeft):
        await held(till, 11, 12, 13, family=True)
    await till.refunds.refund(booking_id, fence, [1, 2, 3])
    await held(till, 21, 22, 23, family=True)


async def test_seats_that_are_returned_for_resale_do_not_count_in_a_shared_limit(till: Till) -> None:
    """They counted until the whole booking was returned. So nobody could buy them, and the fan was never refunded."""
    booking_id, fence = await sold(till, 1, 2, 3, 4, 5, 6, family=True, dinner=3)
    await till.refunds.refund(booking_id, fence, add_ons={"dinner": 1})
    fan, now_us = (await till.booking(booking_id)).fan, till.clock()
    await till.ledger.returns.begin_return(booking_id, fan, fence, [1, 2, 3], now_us)
    await till.ledger.returns.list_return(booking_id, [1, 2, 3], now_us)
    await held(till, 1, 2, 3, family=True, dinner=1)
    with pytest.raises(NoneLeft):
        await held(till, 11, 12, 13, family=True)
    with pytest.raises(NoneLeft):
        await held(till, 14, dinner=1)


async def test_seats_that_became_free_on_the_payment_page_can_be_returned_for_resale(till: Till) -> None:
    """The payment that was opened before the code was void, so it was "not through yet" for ever."""
    event = changed(SHOW, fees=(), discounts=(Discount("FREE", 10_000),))
    await till.ledger.catalogue.put_event(event, till.clock())
    hold = await till.hold(1)
    opened = (await till.checkout.begin(hold.booking_id, hold.fence)).booking
    free = await till.checkout.choose(opened, BookingChoice(code="FREE"), event, PLAN)
    await till.checkout.pay(free.id, free.fence, CARD)
    (one,) = await till.ledger.returns.begin_return(free.id, free.fan, free.fence, [1], till.clock())
    assert (one.state, one.price_minor) == (ReturnState.GIVING, 0)


async def test_the_group_is_checked_again_and_the_difference_is_withheld(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, 3, family=True)
    paid = (await till.booking(booking_id)).amount_minor
    quote = await till.refunds.quote(await till.booking(booking_id), [1, 2])
    refund = await till.refunds.refund(booking_id, fence, [1, 2])
    assert returned(refund) == [("seat", 2, 5200), ("group_price", 1, -2500)]
    assert quote.sum.amount_minor == refund.amount_minor == 2700, "as the dialog said"
    assert (await till.booking(booking_id)).amount_minor == 5100 + 199
    await till.refunds.refund(booking_id, fence)
    assert await given(till) == paid


async def test_what_the_policy_keeps_is_a_line_too(till: Till) -> None:
    policy = RefundPolicy(fee_per_seat_minor=250, keeps_seat_fees=True, keeps_booking_fees=True)
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, fees=SHOW.fees, refunds=policy), till.clock())
    booking_id, fence = await sold(till, 1)
    refund = await till.refunds.refund(booking_id, fence)
    kept = [("seat_fees_kept", 1, -100), ("booking_fees_kept", 1, -199), ("refund_fee", 1, -250)]
    assert returned(refund) == [("seat", 1, 5100), ("fee", 1, 199), *kept]
    assert (refund.amount_minor, refund.fee_minor) == (4750, 549)
    assert await given(till) == 4750


async def test_a_refund_of_which_all_is_kept_is_done_at_once(till: Till) -> None:
    policy = RefundPolicy(fee_basis_points=10_000)
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, refunds=policy), till.clock())
    booking_id, fence = await sold(till, 1, 2)
    refund = await till.refunds.refund(booking_id, fence, [1])
    assert (refund.amount_minor, refund.fee_minor, refund.state) == (0, 5100, RefundState.DONE)
    assert await given(till) == 0, "and the fee is in the books"


async def test_many_refunds_at_once_pay_every_line_once(till: Till) -> None:
    """60 callers, each for another line or the same one: nobody is answered with somebody else's refund."""
    booking_id, fence = await sold(till, 1, 2, 3, 4, parking=3)
    wishes = [([seat], {}) for seat in (1, 2, 3)] + [([], {"parking": 3})]
    other = till.restarted()
    done = await asyncio.gather(
        *(
            (till if n % 2 else other).refunds.refund(booking_id, fence, seats or None, extras)
            for n in range(15)
            for seats, extras in wishes
        ),
        return_exceptions=True,
    )
    for n, one in enumerate(done):
        seats, extras = wishes[n % 4]
        if isinstance(one, BaseException):
            assert isinstance(one, (SeatsNotInBooking, InvalidInput, PaymentChanged)), one
        else:
            assert list(one.seats) == seats
            assert add_ons_gone([decode_refund_lines(one.lines)]) == extras
    refunds = await till.ledger.payments.refunds_of(booking_id)
    assert sorted(refund.amount_minor for refund in refunds) == [2499, 5100, 5100, 5100]
    assert (await till.booking(booking_id)).amount_minor == 5100 + 199
    assert await given(till) == 3 * 5100 + 2499


async def test_a_repeated_request_with_the_number_of_its_quote_refunds_once(till: Till) -> None:
    booking_id, fence = await sold(till, 1, parking=2)
    number = (await till.refunds.quote(await till.booking(booking_id), None, {"parking": 1})).number
    first = await till.refunds.refund(booking_id, fence, add_ons={"parking": 1}, number=number)
    again = await till.refunds.refund(booking_id, fence, add_ons={"parking": 1}, number=number)
    assert (again.id, number) == (first.id, 1)
    with pytest.raises(PaymentChanged):  # another refund has this number: look again
        await till.refunds.refund(booking_id, fence, [1], number=number)
    with pytest.raises(PaymentChanged):
        await till.refunds.refund(booking_id, fence, number=number)
    second = await till.refunds.refund(booking_id, fence, add_ons={"parking": 1})
    assert second.id != first.id, "without a number it is another one"
    with pytest.raises(InvalidInput, match="the booking has 0"):
        await till.refunds.refund(booking_id, fence, add_ons={"parking": 1})
    assert await given(till) == 1666
    last = [await till.refunds.refund(booking_id, fence, number=3) for _ in range(2)]
    assert last[0].id == last[1].id


async def test_a_refund_before_the_capture_waits_for_it(till: Till) -> None:
    booking_id, fence = await held(till, 1, 2, dinner=1)
    await till.checkout.pay(booking_id, fence, CARD)
    assert (await till.driver_payment(booking_id)).state is PaymentState.CAPTURING
    await till.refunds.refund(booking_id, fence, add_ons={"dinner": 1})
    await till.refunds.refund(booking_id, fence, [1])
    await till.refunds.work()
    assert not till.provider.refunds
    assert await given(till) == 25_100


async def test_a_refund_that_was_worked_out_before_a_return_is_worked_out_again(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, 3, parking=1)
    booking = await till.booking(booking_id)
    refund = Refund("rfd_stale", booking_id, (await till.driver_payment(booking_id)).id, 1, 833, "EUR", (), lines="[]")
    ask = till.ledger.payments.ask_refund
    await till.ledger.returns.begin_return(booking_id, booking.fan, fence, [1], till.clock())
    await till.ledger.returns.list_return(booking_id, [1], till.clock())
    with pytest.raises(PaymentChanged):
        await ask(refund, fence=fence, now_us=till.clock(), seen=BookingSeen(booking.amount_minor))
    await till.refunds.refund(booking_id, fence, [2])
    assert (await till.booking(booking_id)).amount_minor == 5100 + 833 + 199


async def test_returned_seats_bring_back_their_own_price_and_the_last_one_the_rest(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, dinner=1)
    fan, returns = (await till.booking(booking_id)).fan, till.ledger.returns
    for seat in (1, 2):
        await returns.begin_return(booking_id, fan, fence, [seat], till.clock())
        await returns.list_return(booking_id, [seat], till.clock())
    listed = await returns.returns_of(booking_id)
    assert [(one.state, one.price_minor) for one in listed] == [
        (ReturnState.LISTED, 5100),
        (ReturnState.LISTED, 5100 + 20_000 + 199),
    ]
    for one in listed:
        await ReturnRefunds(till.ledger).refund_return(one, till.clock())
    await till.settle()
    assert sum(refund["amount"] for refund in till.provider.refunds.values()) == 30_399


async def test_seats_that_leave_a_group_to_the_pool_bring_back_less(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, 3, family=True)
    fan, returns = (await till.booking(booking_id)).fan, till.ledger.returns
    shown = await till.refunds.quote_return(await till.booking(booking_id), [1, 2])
    await returns.begin_return(booking_id, fan, fence, [1, 2], till.clock())
    listed = await returns.list_return(booking_id, [1, 2], till.clock())
    owed = [one.price_minor for one in await returns.returns_of(booking_id)]
    assert (len(listed), sum(owed)) == (2, shown.amount_minor) == (2, 2700)
    assert [one.price_minor for one in listed] == owed
    assert (await till.booking(booking_id)).amount_minor == 5100 + 199


async def test_a_transferred_ticket_stays_and_the_dinner_goes_back(till: Till) -> None:
    booking_id, fence = await sold(till, 1, 2, dinner=1)
    ticket = next(one for one in await till.ledger.tickets.tickets_of(booking_id) if one.seat_index == 1)
    now_us = till.clock()
    parcel = Transfer(
        "trf_1",
        booking_id,
        EVENT,
        1,
        ticket.id,
        "fan",
        "g@x.org",
        "en",
        TransferState.SENT,
        now_us,
        now_us + DAY_US,
    )
    await till.ledger.transfers.send(parcel)
    await till.ledger.transfers.accept(HandOver("trf_1", NewTicket("tkt_new", 1, "code"), "Grace", "de", now_us))
    with pytest.raises(TicketTransferred):
        await till.refunds.refund(booking_id, fence)
    refund = await till.refunds.refund(booking_id, fence, [2], {"dinner": 1})
    assert refund.amount_minor == 25_100
    assert (await till.booking(booking_id)).seats == (1,)


async def test_a_cancelled_event_pays_exactly_what_is_left(till: Till) -> None:
    """After a partial refund with a fee, an add-on, a group that fell apart, and a returned seat."""
    policy = RefundPolicy(fee_per_seat_minor=250)
    await till.ledger.catalogue.put_event(changed(SHOW, refunds=policy), till.clock())
    first, fence = await sold(till, 1, 2, dinner=1)
    kept = (await till.refunds.refund(first, fence, [1])).fee_minor
    await till.refunds.refund(first, fence, add_ons={"dinner": 1})
    group, group_fence = await sold(till, 11, 12, 13, family=True)
    kept += (await till.refunds.refund(group, group_fence, [11, 12])).fee_minor
    third, third_fence = await sold(till, 21, 22, parking=1)
    fan = (await till.booking(third)).fan
    await till.ledger.returns.begin_return(third, fan, third_fence, [21], till.clock())
    await till.ledger.returns.list_return(third, [21], till.clock())
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    assert kept == 750
    captured = sum(one["amount_received"] for one in till.provider.objects.values())
    await till.settle()
    assert sum(refund["amount"] for refund in till.provider.refunds.values()) == captured - kept


async def test_an_older_server_beside_this_one_refunds_seats_without_lines(till: Till) -> None:
    """It writes no lines, pays the seats' own prices, and all that is left with the last seat."""
    booking_id, fence = await sold(till, 1, 2, dinner=1)
    payment = await till.driver_payment(booking_id)
    older = Refund("rfd_old", booking_id, payment.id, 1, 5100, "EUR", (1,), retry_at_us=till.clock())
    await till.ledger.payments.ask_refund(older, fence=fence, now_us=till.clock())
    assert (await till.booking(booking_id)).amount_minor == 5100 + 20_000 + 199
    rest = await till.refunds.refund(booking_id, fence, add_ons={"dinner": 1})
    assert rest.amount_minor == 20_000
    assert await given(till) == 25_100


async def test_a_booking_from_before_lines_were_separate_keeps_its_dinner(till: Till) -> None:
    """Its seats' prices contain shares of the dinner: 125.00 each instead of 25.00."""
    booking_id, fence = await held(till, 1, 2, dinner=1)
    booking = await till.booking(booking_id)
    paid, now_us = booking.amount_minor, till.clock()
    lines = encode_lines([replace(line, terms=None) for line in decode_lines(booking.price_lines)])
    old = Reprice(booking_id, fence, now_us, (1, 2), (paid - paid // 2, paid // 2), paid, lines, ())
    await till.ledger.reprice(old)
    await till.pay(booking_id, fence, CARD)
    refund = await till.refunds.refund(booking_id, fence, [1])
    assert returned(refund) == [("seat", 1, 5100)]
    assert (await till.refunds.refund(booking_id, fence, add_ons={"dinner": 1})).amount_minor == 20_000
    assert (await till.refunds.refund(booking_id, fence)).amount_minor == 5299
    assert await given(till) == 30_399


async def test_the_organiser_gives_an_add_on_back_in_full(till: Till) -> None:
    policy = RefundPolicy(allowed=False, fee_basis_points=5_000)
    await till.ledger.catalogue.put_event(changed(SHOW, refunds=policy), till.clock())
    booking_id, _ = await sold(till, 1, 2, 3, family=True, dinner=1)
    refund = await till.refunds.override(booking_id, [1], {"dinner": 1})
    assert returned(refund) == [("seat", 1, 2600), ("add_on", 1, 20_000)]
    less = await till.refunds.override(booking_id, [2], free_of_fee=False)
    assert returned(less) == [("seat", 1, 2600), ("group_price", 1, -2500), ("refund_fee", 1, -50)]


async def redeemed(till: Till, booking_id: str, quantity: int = 1, name: str = "r1") -> Redeemed:
    redemption = Redemption(
        f"{booking_id}:{name}", EVENT, booking_id, "parking", quantity, "north", "stf_1", till.clock()
    )
    return await till.ledger.redemptions.redeem(redemption)


async def test_a_redeemed_add_on_is_not_refunded_and_stays_paid_when_the_booking_ends(till: Till) -> None:
    """Refund in part × redeemed add-on."""
    booking_id, fence = await sold(till, 1, 2, parking=2)
    await redeemed(till, booking_id)
    with pytest.raises(InvalidInput, match="the booking has 1 of 'parking', not 2"):
        await till.refunds.refund(booking_id, fence, add_ons={"parking": 2})
    assert returned(await till.refunds.refund(booking_id, fence, [1], {"parking": 1})) == [
        ("seat", 1, 5100),
        ("add_on", 1, 833),
    ]
    assert (await redeemed(till, booking_id, name="r2")).answer is RedeemAnswer.USED_UP  # the other one was refunded
    rest = await till.refunds.refund(booking_id, fence)
    assert returned(rest) == [("seat", 1, 5100), ("fee", 1, 199)]
    assert rest.fee_minor == 833
    assert (await till.booking(booking_id)).state is BookingState.REFUNDED
    assert await given(till) == 2 * 5100 + 833 + 199


async def test_a_refund_that_was_worked_out_before_a_redemption_is_worked_out_again(till: Till) -> None:
    booking_id, fence = await sold(till, 1, parking=1)
    ask = till.ledger.payments.ask_refund
    seen: list[BookingSeen | None] = []

    async def late(refund: Refund, **more: Any) -> Refund:
        if not seen:
            await redeemed(till, booking_id)
        seen.append(more["seen"])
        return await ask(refund, **more)

    till.ledger.payments.ask_refund = late  # type: ignore[method-assign]
    refund = await till.refunds.refund(booking_id, fence)
    assert [one.used for one in seen if one] == [(), (("parking", 1),)]
    assert (refund.amount_minor, refund.fee_minor) == (5299, 833)


async def test_a_cancelled_event_gives_redeemed_add_ons_back_too(till: Till) -> None:
    booking_id, _ = await sold(till, 1, parking=1)
    await redeemed(till, booking_id)
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    assert await given(till) == 5100 + 199 + 833


async def test_a_redeemed_add_on_brings_nothing_back_when_the_last_seat_is_resold(till: Till) -> None:
    booking_id, fence = await sold(till, 1, parking=1)
    await redeemed(till, booking_id)
    booking = await till.booking(booking_id)
    assert (await till.refunds.quote_return(booking, [1])).amount_minor == 5100 + 199
    await till.ledger.returns.begin_return(booking_id, booking.fan, fence, [1], till.clock())
    (listed,) = await till.ledger.returns.list_return(booking_id, [1], till.clock())
    assert listed.price_minor == 5100 + 199
