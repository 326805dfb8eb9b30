"""The contract of the PaymentBook port as plain checks (B6, B7, B12, N4): payments and refunds in the ledger."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from frontrow.boxoffice.events.model.events import EventCancelled, EventStatus
from frontrow.boxoffice.facts.model import PriorityGranted
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.holds.model.bookings import (
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    SeatsNotInBooking,
    StaleFence,
)
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.payments.model.payments import Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import TransferDetails
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketRevoked, TicketScanned, TicketState
from tests.boxoffice.shop import shop_event
from tests.contracts.ledger_contract import CALLERS, TEN_MINUTES_US, Bench, outcomes, refusal
from tests.support.booking_moves import cancel_booking, refund_booking

Check = Callable[[Bench], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def first(bench: Bench, hold: PlacedHold, attempt: int = 1, **more: Any) -> Payment:
    id_ = f"pay_{hold.booking_id[4:]}_{attempt}"
    now_us = bench.now_us
    return Payment(
        id_,
        hold.booking_id,
        attempt,
        "simulated",
        4500 * len(hold.seats),
        "EUR",
        created_at_us=now_us,
        changed_at_us=now_us,
        **more,
    )


async def begun(bench: Bench, *seats: int) -> tuple[PlacedHold, Payment]:
    hold = await bench.hold(*seats, amount_minor=4500 * len(seats), prices_minor=(4500,) * len(seats))
    payment = first(bench, hold, retry_at_us=bench.now_us + 30)
    await bench.one.payments.save_payment(payment, now_us=bench.now_us, move=Move.BEGIN_PAYMENT, fence=hold.fence)
    return hold, payment


async def sold(bench: Bench, *seats: int) -> tuple[PlacedHold, Payment]:
    hold, payment = await begun(bench, *seats)
    asked = payment.moved(PaymentState.AUTHORISING, bench.now_us, ref=f"pi_{hold.booking_id}", method="pm_x")
    await bench.one.payments.save_payment(asked, now_us=bench.now_us)
    taking = asked.moved(PaymentState.CAPTURING, bench.now_us)
    tickets = [NewTicket(f"tkt_{hold.booking_id}_{seat}", seat, "code") for seat in hold.seats]
    await bench.two.payments.save_payment(
        taking, now_us=bench.now_us, move=Move.CONFIRM, fence=hold.fence, tickets=tickets
    )
    return hold, taking


def owed(bench: Bench, payment: Payment, number: int, *seats: int, fee: int = 0) -> Refund:
    return Refund(
        f"rfd_{payment.booking_id[4:]}_{number}",
        payment.booking_id,
        payment.id,
        number,
        4500 * len(seats) - fee,
        "EUR",
        seats,
        fee,
        retry_at_us=bench.now_us,
        created_at_us=bench.now_us,
        changed_at_us=bench.now_us,
    )


@check
async def a_payment_keeps_its_account_and_what_it_was_paid_with(bench: Bench) -> None:
    hold = await bench.hold(1, amount_minor=4500, prices_minor=(4500,))
    new = Payment(
        *("pay_account", hold.booking_id, 1, "bank", 4500, "EUR"),
        account="acct_hall",
        offered="card,ideal",
        fee_minor=112,
        changed_at_us=bench.now_us,
    )
    await bench.one.payments.save_payment(new, now_us=bench.now_us, move=Move.BEGIN_PAYMENT, fence=hold.fence)
    assert await bench.two.payments.payments_of(hold.booking_id) == [new]
    chosen = new.moved(PaymentState.OPEN, bench.now_us, ref="ref_account", paid_with="ideal")
    await bench.two.payments.save_payment(chosen, now_us=bench.now_us)
    assert await bench.one.payments.payment(new.id) == chosen
    found = await bench.one.payments.payment_by_ref("bank", "ref_account")
    assert found is not None
    assert (found.account, found.paid_with) == ("acct_hall", "ideal")
    to = TransferDetails("DE02", "FR-1", "The Hall", "BIC1")
    awaited = chosen.moved(PaymentState.PROCESSING, bench.now_us, transfer=to)
    await bench.one.payments.save_payment(awaited, now_us=bench.now_us)
    assert await bench.two.payments.payment(new.id) == awaited
    reminded = replace(awaited, version=awaited.version + 1, reminded_at_us=bench.now_us)
    await bench.two.payments.save_payment(reminded, now_us=bench.now_us)
    assert await bench.one.payments.payment(new.id) == reminded


@check
async def a_payment_and_the_bookings_move_are_written_together(bench: Bench) -> None:
    hold, payment = await begun(bench, 1)
    booking = await bench.two.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.PAYING
    assert await bench.two.payments.payment(payment.id) == payment
    assert await bench.two.payments.payments_of(hold.booking_id) == [payment]
    assert await bench.two.payments.payment("pay_nobody") is None


@check
async def a_refused_move_leaves_the_payment_as_it_was(bench: Bench) -> None:
    hold, payment = await begun(bench, 1)
    late_us = bench.now_us + TEN_MINUTES_US
    taking = payment.moved(PaymentState.AUTHORISING, late_us).moved(PaymentState.CAPTURING, late_us)
    taking = replace(taking, version=2)
    save = bench.two.payments.save_payment
    await refusal(save(taking, now_us=late_us, move=Move.CONFIRM, fence=hold.fence), HoldEnded)
    await refusal(save(taking, now_us=bench.now_us, move=Move.CONFIRM, fence=hold.fence + 1), StaleFence)
    await refusal(save(taking, now_us=bench.now_us, move=Move.REFUND, fence=hold.fence), MoveRefused)
    assert await bench.one.payments.payment(payment.id) == payment


@check
async def of_many_writers_of_one_version_one_wins(bench: Bench) -> None:
    """N4: compare and set, over two servers."""
    _, payment = await begun(bench, 1)
    tries = [payment.moved(PaymentState.OPEN, bench.now_us, ref=f"pi_{n}") for n in range(CALLERS)]
    won, refused = await outcomes(
        [bench.either(n).payments.save_payment(one, now_us=bench.now_us) for n, one in enumerate(tries)]
    )
    assert (len(won), len(refused)) == (1, CALLERS - 1)
    assert all(isinstance(error, PaymentChanged) for error in refused)
    kept = await bench.one.payments.payment(payment.id)
    assert kept in tries


@check
async def a_booking_has_one_payment_that_is_not_over(bench: Bench) -> None:
    """N4: one_live_payment_per_booking."""
    hold, payment = await begun(bench, 1)
    save = bench.two.payments.save_payment
    second = first(bench, hold, 2)
    await refusal(save(second, now_us=bench.now_us), PaymentChanged)
    await save(payment.moved(PaymentState.VOIDED, bench.now_us), now_us=bench.now_us)
    tries = [first(bench, hold, attempt) for attempt in range(2, CALLERS + 2)]
    won, refused = await outcomes(
        [bench.either(n).payments.save_payment(one, now_us=bench.now_us) for n, one in enumerate(tries)]
    )
    assert (len(won), len(refused)) == (1, CALLERS - 1)
    states = [p.state for p in await bench.one.payments.payments_of(hold.booking_id)]
    assert sorted(states) == [PaymentState.CREATING, PaymentState.VOIDED]


@check
async def the_same_write_again_is_answered_as_the_first_time(bench: Bench) -> None:
    """A lost connection repeats the whole batch."""
    hold, payment = await sold(bench, 1)
    tickets = await bench.one.tickets.tickets_of(hold.booking_id)
    again = await bench.one.payments.save_payment(payment, now_us=bench.now_us, move=Move.CONFIRM, fence=hold.fence)
    assert again is not None
    assert again.state is BookingState.CONFIRMED
    assert await bench.one.tickets.tickets_of(hold.booking_id) == tickets
    assert [type(f).__name__ for f in await bench.facts()].count("BookingConfirmed") == 1


@check
async def facts_are_written_with_the_payment_or_not_at_all(bench: Bench) -> None:
    hold, payment = await begun(bench, 1)
    fact = PriorityGranted(hold.booking_id, bench.event, hold.fan, hold.fence, hold.seats, bench.now_us)
    moved = payment.moved(PaymentState.VOIDED, bench.now_us)
    save = bench.one.payments.save_payment
    await save(moved, now_us=bench.now_us, facts=[fact], move=Move.DECLINE, fence=hold.fence, reason="no_luck")
    other = payment.moved(PaymentState.OPEN, bench.now_us)
    await refusal(save(other, now_us=bench.now_us, facts=[fact]), PaymentChanged)
    facts = await bench.facts()
    assert [type(f).__name__ for f in facts][-2:] == ["PaymentDeclined", "PriorityGranted"]
    assert facts[-2].reason == "no_luck"


@check
async def due_payments_are_claimed_to_one_worker(bench: Bench) -> None:
    wanted = {(await begun(bench, seat))[1].id for seat in range(20)}
    assert not wanted & {
        p.id for p in await bench.one.payments.claim_payments(bench.now_us + 29, bench.now_us + 60, 1000)
    }
    claimed = await asyncio.gather(
        *(bench.either(n).payments.claim_payments(bench.now_us + 30, bench.now_us + 60, 4) for n in range(CALLERS))
    )
    ids = [payment.id for one in claimed for payment in one if payment.id in wanted]
    assert sorted(ids) == sorted(wanted)
    again = await bench.one.payments.claim_payments(bench.now_us + 60, bench.now_us + 90, 1000)
    assert wanted <= {payment.id for payment in again}
    moved = again[0].moved(PaymentState.OPEN, bench.now_us)
    await bench.one.payments.save_payment(moved, now_us=bench.now_us)  # a claim is no change: the version still fits


@check
async def payments_that_an_outage_put_off_are_woken_once_and_claimed_ones_are_not(bench: Bench) -> None:
    """B8: after each number of tries, with a retry that the hold's end makes earlier, over two servers."""
    late_us = bench.now_us + 200_000_000
    ids, put_off = set(), []
    for seat in range(7):
        payment = (await begun(bench, seat))[1]
        for _ in range(min(seat, 5)):
            payment = payment.retry_later(late_us, answered=False)
        payment = replace(payment, version=2, retry_at_us=late_us + 1) if seat == 6 else replace(payment, version=2)
        if seat:
            await bench.one.payments.save_payment(payment, now_us=late_us)
            put_off.append(payment)
        ids.add(payment.id)
    leased_us = put_off[4].retry_at_us  # one has become due, and a driver has it
    untouched = {put_off[4].id}
    await bench.one.payments.save_payment(due := replace(put_off[4], version=3, retry_at_us=late_us), now_us=late_us)
    claim = await bench.two.payments.claim_payments(late_us, leased_us + 30_000_000, 1000)
    assert due.id in {one.id for one in claim}
    assert await bench.one.payments.wake_payments(late_us, 1) == 1
    woken = await asyncio.gather(*(bench.either(n).payments.wake_payments(late_us, 1000) for n in range(CALLERS)))
    assert sum(woken) == 4, "each once, and none that is claimed or met no outage"
    for payment in put_off:
        kept = await bench.two.payments.payment(payment.id)
        assert kept is not None
        if payment.id in untouched:
            assert kept.version == due.version
        else:
            assert (kept.tries, kept.retry_at_us, kept.version) == (1, late_us, payment.version + 1)
    again = await bench.one.payments.claim_payments(late_us, late_us + 30_000_000, 1000)
    assert {one.id for one in put_off} - untouched == {one.id for one in again} & ids
    assert await bench.two.payments.wake_payments(late_us + 1_000_000, 1000) == 0, "they are being driven"


@check
async def a_payment_is_found_by_the_providers_name(bench: Bench) -> None:
    hold, payment = await sold(bench, 1)
    assert await bench.two.payments.payment_by_ref("simulated", f"pi_{hold.booking_id}") == payment
    assert await bench.two.payments.payment_by_ref("stripe", f"pi_{hold.booking_id}") is None


@check
async def a_full_refund_ends_the_booking_its_tickets_and_frees_its_seats(bench: Bench) -> None:
    hold, payment = await sold(bench, 1, 2)
    refund = owed(bench, payment, 1, 1, 2)
    assert await bench.one.payments.ask_refund(refund, fence=hold.fence, now_us=bench.now_us) == refund
    assert await bench.two.payments.ask_refund(refund, fence=hold.fence, now_us=bench.now_us) == refund
    booking = await bench.two.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.REFUNDED
    assert {t.state for t in await bench.one.tickets.tickets_of(hold.booking_id)} == {TicketState.REVOKED}
    assert await bench.seats() == {}
    await bench.hold(1, 2)
    await refusal(
        bench.one.payments.ask_refund(owed(bench, payment, 2, 1), fence=hold.fence, now_us=bench.now_us), MoveRefused
    )


@check
async def a_partial_refund_shrinks_the_booking(bench: Bench) -> None:
    hold, payment = await sold(bench, 1, 2, 3)
    await refusal(
        bench.one.payments.ask_refund(owed(bench, payment, 1, 4), fence=hold.fence, now_us=bench.now_us),
        SeatsNotInBooking,
    )
    await bench.one.payments.ask_refund(owed(bench, payment, 1, 2, fee=500), fence=hold.fence, now_us=bench.now_us)
    booking = await bench.two.booking(hold.booking_id)
    assert booking is not None
    assert (booking.seats, booking.amount_minor, booking.state) == ((1, 3), 9000, BookingState.CONFIRMED)
    assert await bench.two.payments.seat_prices(hold.booking_id) == {1: 4500, 3: 4500}
    valid = [t.seat_index for t in await bench.one.tickets.tickets_of(hold.booking_id) if t.state is TicketState.VALID]
    assert valid == [1, 3]
    await bench.hold(2)


@check
async def of_many_refunds_of_one_seat_one_is_written(bench: Bench) -> None:
    """N4."""
    hold, payment = await sold(bench, 1, 2)
    won, refused = await outcomes(
        [
            bench.either(n).payments.ask_refund(owed(bench, payment, n + 1, 1), fence=hold.fence, now_us=bench.now_us)
            for n in range(CALLERS)
        ]
    )
    assert (len(won), len(refused)) == (1, CALLERS - 1)
    assert all(isinstance(error, SeatsNotInBooking) for error in refused)
    assert len(await bench.one.payments.refunds_of(hold.booking_id)) == 1


@check
async def refunds_are_claimed_and_change_by_version(bench: Bench) -> None:
    hold, payment = await sold(bench, 1)
    refund = await bench.one.payments.ask_refund(owed(bench, payment, 1, 1), fence=hold.fence, now_us=bench.now_us)
    claimed = [
        r
        for r in await bench.two.payments.claim_refunds(bench.now_us, bench.now_us + 9, 1000)
        if r.booking_id == hold.booking_id
    ]
    assert [r.id for r in claimed] == [refund.id]
    assert refund.id not in [
        r.id for r in await bench.one.payments.claim_refunds(bench.now_us + 8, bench.now_us + 9, 1000)
    ]
    done = claimed[0].moved(RefundState.DONE, bench.now_us, ref="re_1")
    await bench.one.payments.save_refund(done, now_us=bench.now_us)
    await bench.two.payments.save_refund(done, now_us=bench.now_us)
    await refusal(bench.two.payments.save_refund(replace(done, ref="re_2"), now_us=bench.now_us), PaymentChanged)
    assert await bench.one.payments.refunds_of(hold.booking_id) == [done]


@check
async def late_money_is_owed_only_for_a_booking_that_is_over(bench: Bench) -> None:
    """F4."""
    hold, payment = await begun(bench, 1)
    refund = owed(bench, payment, 0, 1)
    ask = bench.one.payments.ask_refund
    await refusal(ask(refund, fence=hold.fence, now_us=bench.now_us, late=True), MoveRefused)
    await bench.one.expire_due(bench.now_us + TEN_MINUTES_US, 1000)
    assert await ask(refund, fence=hold.fence, now_us=bench.now_us, late=True) == refund


@check
async def a_new_attempt_is_for_what_the_booking_costs_now(bench: Bench) -> None:
    """A refund between a lapsed capture and the next authorisation: nobody pays for what was given back."""
    hold, payment = await sold(bench, 1, 2)
    await bench.one.payments.save_payment(payment.moved(PaymentState.LAPSED, bench.now_us), now_us=bench.now_us)
    stale = first(bench, hold, 2)
    await bench.two.payments.ask_refund(owed(bench, payment, 1, 1), fence=hold.fence, now_us=bench.now_us)
    await refusal(bench.one.payments.save_payment(stale, now_us=bench.now_us), PaymentChanged)
    right = replace(stale, amount_minor=4500)
    await bench.one.payments.save_payment(right, now_us=bench.now_us)
    await bench.two.payments.save_payment(right, now_us=bench.now_us)
    whole = owed(bench, right, 2, 2)
    await bench.two.payments.ask_refund(whole, fence=hold.fence, now_us=bench.now_us)
    await bench.one.payments.save_payment(right.moved(PaymentState.VOIDED, bench.now_us), now_us=bench.now_us)
    await refusal(bench.one.payments.save_payment(first(bench, hold, 3), now_us=bench.now_us), PaymentChanged)


@check
async def a_refund_names_the_newest_payment(bench: Bench) -> None:
    """Counted before a lapsed payment was replaced, a refund would wait for money that never comes."""
    hold, payment = await sold(bench, 1, 2)
    await bench.one.payments.save_payment(payment.moved(PaymentState.LAPSED, bench.now_us), now_us=bench.now_us)
    newer = first(bench, hold, 2)
    await bench.one.payments.save_payment(newer, now_us=bench.now_us)
    ask = bench.two.payments.ask_refund
    await refusal(ask(owed(bench, payment, 1, 1), fence=hold.fence, now_us=bench.now_us), PaymentChanged)
    refund = owed(bench, newer, 1, 1)
    assert await ask(refund, fence=hold.fence, now_us=bench.now_us) == refund


@check
async def a_ticket_that_was_let_in_is_not_refunded(bench: Bench) -> None:
    """H3; of a cancelled event it is: nobody else will come with this seat."""
    await bench.one.catalogue.put_event(shop_event(id=bench.event), bench.now_us)
    hold, payment = await sold(bench, 1, 2)
    assert await bench.one.organiser.admit(scan_of(bench, hold, 1)) == []
    ask = bench.two.payments.ask_refund
    for seats in ((1,), (1, 2)):
        error = await refusal(
            ask(owed(bench, payment, 1, *seats), fence=hold.fence, now_us=bench.now_us), TicketScanned
        )
        assert error.seats == (1,)
    for move in (cancel_booking, refund_booking):
        await refusal(move(bench.one, hold.booking_id, hold.fence, bench.now_us), TicketScanned)
    refund = owed(bench, payment, 1, 2)
    assert await ask(refund, fence=hold.fence, now_us=bench.now_us) == refund
    await refusal(bench.one.organiser.admit(scan_of(bench, hold, 2)), TicketRevoked)
    await bench.one.catalogue.put_event(shop_event(id=bench.event, status=EventStatus.CANCELLED), bench.now_us)
    last = owed(bench, payment, 2, 1)
    assert await ask(last, fence=hold.fence, now_us=bench.now_us) == last


@check
async def of_a_gate_and_a_refund_at_once_one_wins(bench: Bench) -> None:
    """H3: whoever comes first; never both, never neither."""
    for round_ in range(12):
        hold, payment = await sold(bench, round_)
        refund = bench.one.payments.ask_refund(owed(bench, payment, 1, round_), fence=hold.fence, now_us=bench.now_us)
        scan = bench.two.organiser.admit(scan_of(bench, hold, round_))
        (given, entry) = await asyncio.gather(refund, scan, return_exceptions=True)
        wins = [not isinstance(given, BaseException), entry == []]
        assert wins.count(True) == 1, (given, entry)


@check
async def nothing_of_a_cancelled_event_is_held_or_sold(bench: Bench) -> None:
    """H2: whatever a server believes of the event."""
    await bench.one.catalogue.put_event(shop_event(id=bench.event), bench.now_us)
    hold, payment = await begun(bench, 1)
    free = await bench.paid(5)
    await bench.two.catalogue.put_event(shop_event(id=bench.event, status=EventStatus.CANCELLED), bench.now_us)
    taking = replace(payment, state=PaymentState.CAPTURING, version=2)
    save = bench.one.payments.save_payment
    await refusal(save(taking, now_us=bench.now_us, move=Move.CONFIRM, fence=hold.fence), EventCancelled)
    await refusal(bench.one.confirm(free.booking_id, free.fence, bench.now_us), EventCancelled)
    assert await bench.two.payments.payment(payment.id) == payment
    await refusal(bench.hold(2), EventCancelled)
    other = bench.event
    bench.event = f"{other}_other"
    both = [bench.wish(3), bench.wish(4)]
    both[0] = replace(both[0], event_id=other)
    won, refused = await outcomes([bench.one.place_hold(wish) for wish in both])
    assert ([one.seats for one in won], [type(one) for one in refused]) == ([(4,)], [EventCancelled])
    bench.event = other
    assert await bench.seats() == {1: ("paying", hold.booking_id), 5: ("paying", free.booking_id)}


def scan_of(bench: Bench, hold: PlacedHold, seat: int) -> Scan:
    return Scan(f"scn_{hold.booking_id}_{seat}", bench.event, f"tkt_{hold.booking_id}_{seat}", "north", bench.now_us)


@check
async def live_bookings_come_in_pages(bench: Bench) -> None:
    ids = sorted([(await begun(bench, seat))[0].booking_id for seat in range(5)])
    page = await bench.two.live_bookings(bench.event, "", 3)
    rest = await bench.two.live_bookings(bench.event, page[-1].id, 3)
    assert [booking.id for booking in page + rest] == ids


@check
async def a_message_is_remembered_once(bench: Bench) -> None:
    message = f"evt_{bench.event}"
    assert not await bench.one.messages.noticed("stripe", message)
    heard = await asyncio.gather(
        *(bench.either(n).messages.seen_before("stripe", message, bench.now_us) for n in range(CALLERS))
    )
    assert heard.count(False) == 1
    assert await bench.two.messages.noticed("stripe", message)
