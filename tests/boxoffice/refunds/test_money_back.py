"""Money back, to the last cent: cancelled events, returned seats, people inside, refunds that fail (B11, B12, N4)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.payments.simulated import LAPSES, REFUND_FAILS, Fault
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.events import EventCancelled, EventStatus
from frontrow.boxoffice.facts.model import LatePaymentReturned, RefundFailed, RefundPaid, TicketResold, WaitlistEnded
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.organiser.exports import Exports
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.ports import Payee
from frontrow.boxoffice.refunds.event_cancellation import SURE_US
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.refunds.model.ticket_returns import NotReturnable, ReturnState
from frontrow.boxoffice.tickets.model.tickets import TicketRevoked, TicketScanned, TicketState
from frontrow.boxoffice.waitlist.model.waitlist import EntryState, NewEntry
from frontrow.core.errors import FrontrowError
from tests.boxoffice.checkout.office import ADA, Office, an_office, an_office_beside, replace_event
from tests.boxoffice.checkout.till import assert_money
from tests.boxoffice.refunds.market import CARD
from tests.boxoffice.shop import EVENT, sqlite_url
from tests.support.booking_moves import cancel_booking

CANCEL = Query("add_cancellations", [(EVENT, 0)])


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with an_office(sqlite_url(tmp_path)) as one:
        yield one


# H1: returned seats of a cancelled event


@pytest.mark.parametrize("how", ["one seat", "the whole booking", "half given back"])
async def test_a_cancelled_event_refunds_seats_that_were_returned_to_the_pool(office: Office, how: str) -> None:
    """H1: paid 100, and 100 came back; the job says done only then."""
    booking_id, fence = await office.sell("old", 0, 1)
    if how == "half given back":  # the process died between the intent and the list
        await office.ledger.returns.begin_return(booking_id, "old", fence, [0], office.clock())
    else:
        await office.resale.give_back(booking_id, "old", fence, [0] if how == "one seat" else [])
    await office.cancel_event()
    await office.finish_cancelling()
    assert office.given() == 10_000
    states = {one.state for one in await office.ledger.returns.returns_of(booking_id)}
    assert states == ({ReturnState.VOID} if how == "half given back" else {ReturnState.REFUNDED})
    job = await office.ledger.organiser.cancellation(EVENT)
    assert job is not None
    assert job.returned == {"one seat": 1, "the whole booking": 2, "half given back": 0}[how]
    facts = await office.till.facts()
    assert sum(one.amount_minor for one in facts if isinstance(one, RefundPaid)) == 10_000
    assert not [one for one in facts if isinstance(one, TicketResold)], "nobody bought it"
    await office.resale.sweep()
    await office.till.settle()
    assert office.given() == 10_000


async def test_a_cancelled_event_ends_its_waitlist_and_everybody_in_it_is_told_once(office: Office) -> None:
    """Issue 11: entries waited on for ever. The job may die and begin again at any point."""
    for fan in ("ada", "bob", "cyd"):
        new = NewEntry(f"wle_{fan}", EVENT, fan, 1)
        await office.ledger.waitlist.join_waitlist(new, office.clock())
    await office.waiting.worker.sweep()
    assert len(await office.waiting.offered("ada", "bob", "cyd")) == 3
    await office.cancel_event()
    await office.cancelling.work()
    assert await office.waiting.shop.taken() == set()
    await office.finish_cancelling()
    async for _ in office.refunds.cancel_event(EVENT):
        pass
    await office.waiting.worker.sweep()
    assert await office.waiting.offered("ada", "bob", "cyd") == {}
    entries = [await office.ledger.waitlist.entry(f"wle_{fan}") for fan in ("ada", "bob", "cyd")]
    assert [entry.state for entry in entries if entry] == [EntryState.ENDED] * 3
    told = [fact.fan for fact in await office.till.facts() if isinstance(fact, WaitlistEnded)]
    assert sorted(told) == ["ada", "bob", "cyd"]
    job = await office.ledger.organiser.cancellation(EVENT)
    assert job is not None
    assert (job.state, job.failed) == ("done", 0)


# H2: other servers and cancelled events


async def test_a_payment_that_ends_after_the_cancellation_is_not_captured(office: Office) -> None:
    """H2: another server holds and is being paid while the job has gone by already."""
    hold = await office.waiting.shop.hold("late", 3)
    await office.checkout.begin(hold.booking_id, hold.fence)
    event = await office.ledger.catalogue.event(EVENT)
    await office.ledger.catalogue.put_event(replace_event(event, status=EventStatus.CANCELLED), office.clock())
    outcome = await office.pay(hold.booking_id, hold.fence, CARD)
    assert outcome.state is CheckoutState.ENDED
    assert outcome.booking.state is BookingState.CANCELLED
    await office.till.settle()
    assert [one["status"] for one in office.till.provider.objects.values()] == ["canceled"]
    with pytest.raises(EventCancelled):
        await office.waiting.shop.hold("later", 4)
    assert await office.waiting.shop.taken() == set()


async def test_the_job_runs_until_no_hold_can_be_alive(office: Office) -> None:
    """H2: a hold whose transaction was open during the first round is found by a later one."""
    await office.sell("old", 0)
    hold = await office.waiting.shop.hold("slow", 3)
    live = office.ledger.live_bookings
    hidden = iter([True, True])

    async def first_look_misses_it(event_id: str, after: str, limit: int) -> list[Any]:
        page = await live(event_id, after, limit)
        return [one for one in page if one.id != hold.booking_id] if next(hidden, False) else page

    office.ledger.live_bookings = first_look_misses_it  # type: ignore[method-assign]
    await office.cancel_event()
    await office.cancelling.work()
    job = await office.ledger.organiser.cancellation(EVENT)
    assert job is not None
    assert job.state == "running"
    await office.finish_cancelling()
    booking = await office.ledger.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.CANCELLED
    job = await office.ledger.organiser.cancellation(EVENT)
    assert job is not None
    assert office.clock() - job.started_at_us >= SURE_US
    assert (job.refunded, job.released) == (1, 1)


async def test_selling_and_cancelling_at_once_leaves_no_money_behind(postgres_ledger_url: str) -> None:
    """H2: two servers, twelve fans paying while the event is cancelled; on PostgreSQL with two writers."""
    async with an_office(postgres_ledger_url) as office, an_office_beside(postgres_ledger_url, office) as other:
        holds = [await other.waiting.shop.hold(f"fan{seat}", seat) for seat in range(12)]
        await office.ledger.organiser.changed(Change(ADA, "cancel_event", EVENT, office.clock()), CANCEL)

        async def pay(number: int) -> None:
            for _ in range(number % 4):
                await asyncio.sleep(0)
            with contextlib.suppress(FrontrowError):
                await other.pay(holds[number].booking_id, holds[number].fence, CARD)

        async def cancel() -> None:
            async for _ in office.refunds.cancel_event(EVENT):
                pass

        await asyncio.gather(cancel(), *map(pay, range(12)))
        await office.finish_cancelling()
        await other.till.settle(600, 60)
        captured = sum(one["amount_received"] for one in other.till.provider.objects.values())
        assert office.given() == captured
        assert await office.ledger.live_bookings(EVENT, "", 100) == []


# H3: people who are inside


async def test_who_is_inside_gives_nothing_back(office: Office) -> None:
    """H3: neither to the pool, nor for money, by the fan or the organiser, nor is the seat moved."""
    booking_id, fence = await office.sell("old", 0, 1)
    assert await office.scan(booking_id, 0) == []
    for seats in ([0], [0, 1]):
        with pytest.raises(TicketScanned):
            await office.resale.give_back(booking_id, "old", fence, seats)
        with pytest.raises(TicketScanned):
            await office.refunds.refund(booking_id, fence, seats)
        with pytest.raises(TicketScanned):
            await office.refunds.override(booking_id, seats)
    with pytest.raises(TicketScanned):
        await office.reseat(booking_id, 0, 5)
    await office.resale.give_back(booking_id, "old", fence, [1])
    with pytest.raises(TicketRevoked):
        await office.scan(booking_id, 1, "scn_2")
    change = Change(ADA, "undo_scan", EVENT, office.clock())
    (ticket, _) = await office.ledger.tickets.tickets_of(booking_id)
    assert await office.ledger.organiser.undo_admission("scn_1", ticket.id, change)
    await office.refunds.refund(booking_id, fence, [0])
    await office.till.settle()
    await office.balanced()


async def test_a_scan_between_the_intent_and_the_list_keeps_the_ticket(office: Office) -> None:
    """H3: the return is void, and may be asked for again once the admission was taken back."""
    booking_id, fence = await office.sell("old", 0)
    await office.ledger.returns.begin_return(booking_id, "old", fence, [0], office.clock())
    assert await office.scan(booking_id, 0) == []
    await office.resale.sweep()
    assert [one.state for one in await office.ledger.returns.returns_of(booking_id)] == [ReturnState.VOID]
    (ticket,) = await office.ledger.tickets.tickets_of(booking_id)
    assert ticket.state is TicketState.VALID
    await office.ledger.organiser.undo_admission("scn_1", ticket.id, Change(ADA, "undo_scan", EVENT, office.clock()))
    (given,) = await office.resale.give_back(booking_id, "old", fence, [0])
    assert given.state is ReturnState.LISTED


async def test_an_event_that_is_cancelled_during_the_show_refunds_who_is_inside(office: Office) -> None:
    booking_id, _ = await office.sell("old", 0, 1)
    await office.scan(booking_id, 0)
    await office.cancel_event()
    await office.finish_cancelling()
    assert office.given() == 10_000


async def test_an_offline_scan_that_comes_later_is_a_conflict_and_the_money_stays_where_it_is(office: Office) -> None:
    """H3: what the ledger has promised is paid; the gate and the organiser's pages show it."""
    booking_id, fence = await office.sell("old", 0)
    (ticket,) = await office.ledger.tickets.tickets_of(booking_id)
    offline = Scan("gate:1", EVENT, ticket.id, "north", office.clock())
    office.clock.advance(60)
    await office.refunds.refund(booking_id, fence, [0])
    await office.till.settle()
    await office.ledger.tickets.record_scans([offline])
    (seen,) = await office.ledger.tickets.tickets_of(booking_id)
    assert (seen.state, seen.scanned_at_us) == (TicketState.REVOKED, offline.at_us)
    assert await office.ledger.tickets.conflicting_scans(EVENT, 10) == [offline]
    assert office.given() == 5_000


async def test_a_capture_that_lapses_while_the_fan_is_inside_waits_for_a_person(office: Office) -> None:
    """H3: the seat is not sold again; the reconciler says who never paid, until the admission is taken back."""
    office.till.provider.script = lambda operation, *_: Fault.LOST_REQUEST if operation == "capture" else None
    hold = await office.waiting.shop.hold("fan", 0)
    await office.pay(hold.booking_id, hold.fence, LAPSES)
    await office.scan(hold.booking_id, 0)
    office.till.provider.script = lambda *_: None
    await office.till.settle(600, 60)
    booking = await office.ledger.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.CONFIRMED
    report = await office.till.reconciler.run()
    assert report.problems == [f"booking {booking.id}: was let in and never paid"]
    (ticket,) = await office.ledger.tickets.tickets_of(booking.id)
    await office.ledger.organiser.undo_admission("scn_1", ticket.id, Change(ADA, "undo_scan", EVENT, office.clock()))
    assert (await office.till.reconciler.run()).problems == []
    booking = await office.ledger.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.CANCELLED


# H4: refunds that fail


async def test_a_pending_refund_is_not_paid_until_the_bank_says_so(office: Office) -> None:
    """H4."""
    office.till.provider.refund_status = lambda found, known: "pending"
    booking_id, fence = await office.sell("old", 0)
    await office.refunds.refund(booking_id, fence)
    await office.till.settle()
    assert await office.refund_states(booking_id) == [RefundState.PENDING]
    assert not [one for one in await office.till.facts() if isinstance(one, RefundPaid)]
    assert (await office.till.reconciler.run()).difference_minor == {}
    (ref,) = office.till.provider.refunds
    office.till.provider.finish_refund(ref, "succeeded")
    await office.deliver()
    assert await office.refund_states(booking_id) == [RefundState.DONE]
    assert len([one for one in await office.till.facts() if isinstance(one, RefundPaid)]) == 1


@pytest.mark.parametrize("who_tells", ["webhook", "worker", "reconciler"])
@pytest.mark.parametrize("before", ["pending", "succeeded"])
async def test_a_refund_that_fails_later_is_owed_again(office: Office, who_tells: str, before: str) -> None:
    """H4: after `pending` and even after `succeeded`; a person tries again, under a new key, and it is paid once."""
    office.till.provider.refund_status = lambda found, known: "succeeded" if known else before
    booking_id, fence = await office.sell("old", 0)
    await office.refunds.refund(booking_id, fence)
    await office.till.settle()
    await office.deliver()
    (ref,) = office.till.provider.refunds
    office.till.provider.finish_refund(ref, "failed")
    if who_tells == "webhook":
        await office.deliver()
    elif who_tells == "worker" and before == "pending":
        office.clock.advance(3_600)
        await office.till.turn()
    else:
        await office.till.reconciler.run()
    assert await office.refund_states(booking_id) == [RefundState.FAILED]
    (refund,) = await office.ledger.payments.refunds_of(booking_id)
    assert refund.failure == "lost_or_stolen_card"
    assert [one.reason for one in await office.till.facts() if isinstance(one, RefundFailed)] == ["lost_or_stolen_card"]
    assert "failed at the provider" in (await office.till.reconciler.run()).problems[0]
    again = await office.refunds.retry(booking_id, refund.id, office.note)
    assert (again.state, again.key() != refund.key()) == (RefundState.ASKED, True)
    assert (await office.refunds.retry(booking_id, refund.id, office.note)).id == refund.id
    await office.till.settle()
    assert await office.refund_states(booking_id) == [RefundState.DONE]
    assert office.given() == 5_000
    report = await office.till.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


async def test_a_refund_that_fails_at_once_is_logged_listed_and_tried_again(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    """H4: the organiser sees it, the log has it, and trying again is noted."""
    event = replace_event(await office.ledger.catalogue.event(EVENT), organiser_id="org_hall")
    await office.ledger.catalogue.put_event(event, office.clock())
    hold = await office.waiting.shop.hold("old", 0)
    await office.pay(hold.booking_id, hold.fence, REFUND_FAILS)
    refund = await office.refunds.refund(hold.booking_id, hold.fence)
    with caplog.at_level(logging.ERROR, "frontrow.money"):
        await office.till.settle()
    told = [one.__dict__ for one in caplog.records]
    assert [(one["action"], one["refund_id"], one["booking_id"], one["reason"]) for one in told] == [
        ("refund_failed", refund.id, hold.booking_id, "lost_or_stolen_card")
    ]
    assert await office.refund_states(hold.booking_id) == [RefundState.FAILED]
    assert [one.id for _, one in await office.ledger.organiser.failed_refunds("org_hall", "", 10)] == [refund.id]
    assert await office.ledger.organiser.failed_refunds("org_other", "", 10) == []
    await office.refunds.retry(hold.booking_id, refund.id, office.note)
    await office.till.settle()
    assert await office.refund_states(hold.booking_id) == [RefundState.DONE]
    assert [one.act for one in await office.ledger.organiser.changes("org_hall", EVENT, 0, 5)] == ["retry_refund"]
    await assert_money(office.till, at_rest=True)


async def test_sixty_retries_of_a_failed_refund_pay_once(office: Office) -> None:
    """H4, N4."""
    hold = await office.waiting.shop.hold("old", 0)
    await office.pay(hold.booking_id, hold.fence, REFUND_FAILS)
    refund = await office.refunds.refund(hold.booking_id, hold.fence)
    await office.till.settle()
    await asyncio.gather(
        *(office.refunds.retry(hold.booking_id, refund.id, office.note) for _ in range(60)), return_exceptions=True
    )
    await office.till.settle()
    assert office.given() == 5_000
    assert await office.refund_states(hold.booking_id) == [RefundState.DONE]


# M3: moved onto a returned seat


async def test_who_is_moved_to_a_returned_seat_pays_its_returner(office: Office) -> None:
    """M3: the moved booking is the older one; it may even be over before anybody looked."""
    older, _ = await office.sell("older", 3)
    booking_id, fence = await office.sell("old", 0)
    await office.resale.give_back(booking_id, "old", fence)
    await office.reseat(older, 3, 0)
    await office.refunds.override(older)
    await office.resale.sweep()
    await office.till.settle()
    assert [one.state for one in await office.ledger.returns.returns_of(booking_id)] == [ReturnState.REFUNDED]
    assert office.given() == 10_000
    (fact,) = [one for one in await office.till.facts() if isinstance(one, TicketResold)]
    assert (fact.fan, fact.resold_booking_id, fact.amount_minor) == ("old", older, 5_000)


async def test_a_seat_that_somebody_had_before_is_not_resold_by_that(office: Office) -> None:
    """M3, the other way: moved onto a seat of a later booking that was refunded, and returned: paid when it is sold."""
    older, fence = await office.sell("older", 3)
    later, _ = await office.sell("later", 0)
    await office.refunds.override(later)
    await office.reseat(older, 3, 0)
    office.clock.advance(120)
    await office.resale.give_back(older, "older", fence)
    await office.resale.sweep()
    assert [one.state for one in await office.ledger.returns.returns_of(older)] == [ReturnState.LISTED]
    await office.sell("new", 0)
    await office.resale.sweep()
    await office.till.settle()
    assert [one.state for one in await office.ledger.returns.returns_of(older)] == [ReturnState.REFUNDED]


# looked into


@pytest.mark.parametrize("seats", [[0], [0, 1]], ids=["some", "all"])
@pytest.mark.parametrize("when", ["before the new attempt", "after it", "in between"])
async def test_a_refund_while_a_lapsed_capture_is_authorised_again(office: Office, seats: list[int], when: str) -> None:
    """Charged for what is kept, or given back: never charged for what was refunded."""
    hold = await office.waiting.shop.hold("fan", 0, 1)
    office.till.provider.script = lambda operation, *_: Fault.LOST_REQUEST if operation == "capture" else None
    await office.pay(hold.booking_id, hold.fence, LAPSES)
    payment = await office.checkout.records.latest_payment(hold.booking_id)
    assert payment is not None
    lapsed = payment.moved(PaymentState.LAPSED, office.clock(), retry_at_us=office.clock(), method=CARD)
    await office.ledger.payments.save_payment(lapsed, now_us=office.clock())
    office.till.provider.script = lambda *_: None
    office.till.provider.objects[payment.ref].update(status="canceled", amount_capturable=0)
    if when == "before the new attempt":
        await office.refunds.refund(hold.booking_id, hold.fence, seats)
    elif when == "after it":
        booking = await office.checkout.records.load_booking(hold.booking_id)
        await office.checkout.driver.new_attempt(booking, 2, CARD, Payee("simulated"))
        await office.refunds.refund(hold.booking_id, hold.fence, seats)
    else:  # the driver has read the booking, the refund has counted the payments; then both write
        attempt = office.ledger.payments.save_payment

        async def refunded_first(new: Any, **more: Any) -> Any:
            office.ledger.payments.save_payment = attempt  # type: ignore[method-assign]
            await office.refunds.refund(hold.booking_id, hold.fence, seats)
            return await attempt(new, **more)

        office.ledger.payments.save_payment = refunded_first  # type: ignore[method-assign]
    await office.till.settle(600, 60)
    captured = sum(one["amount_received"] for one in office.till.provider.objects.values())
    assert captured - office.given() == 10_000 - 5_000 * len(seats)
    assert not [one for one in office.till.provider.objects.values() if one["amount_capturable"]]
    await assert_money(office.till, at_rest=True)


async def test_a_return_waits_until_its_capture_is_through(office: Office) -> None:
    """A whole booking given back while its capture is pending would be voided, and then sold as if it were owed."""
    office.till.provider.script = lambda operation, *_: Fault.LOST_REPLY if operation == "capture" else None
    hold = await office.waiting.shop.hold("fan", 0, 1)
    await office.pay(hold.booking_id, hold.fence, CARD)
    with pytest.raises(NotReturnable, match="not through yet"):
        await office.resale.give_back(hold.booking_id, "fan", hold.fence)
    office.till.provider.script = lambda *_: None
    await office.till.settle()
    await office.resale.give_back(hold.booking_id, "fan", hold.fence)
    await office.till.settle()
    assert office.given() == 0, "paid when it is resold"
    for seat in (0, 1):
        await office.sell(f"new{seat}", seat)
    await office.resale.sweep()
    await office.till.settle()
    assert office.given() == 10_000


async def test_money_that_comes_for_a_booking_that_is_over_goes_back_once(office: Office) -> None:
    """`_return`: a moot refund of an earlier attempt gave nothing, a failed one and a return are on their way."""
    booking_id, fence = await office.sell("fan", 0, 1, 2)
    payment = await office.checkout.records.latest_payment(booking_id)
    assert payment is not None
    await office.resale.give_back(booking_id, "fan", fence, [0])
    office.till.provider.refund_status = lambda found, known: "succeeded" if known else "failed"
    failed = await office.refunds.refund(booking_id, fence, [1])
    await office.till.settle()
    moot = replace(failed, id="rfd_moot", payment_id="pay_before", number=9, state=RefundState.MOOT, retry_at_us=0)
    await cancel_booking(office.ledger, booking_id, fence, office.clock())
    await office.ledger.payments.ask_refund(moot, fence=fence, now_us=office.clock(), late=True)
    waiting = replace(payment, version=payment.version + 1, retry_at_us=office.clock())
    await office.ledger.payments.save_payment(waiting, now_us=office.clock())
    await office.till.settle()
    assert office.given() == 5_000, "seat 2; seat 1 is tried again, seat 0 waits for its buyer"
    (late,) = [one for one in await office.till.facts() if isinstance(one, LatePaymentReturned)]
    assert late.amount_minor == 5_000
    await office.refunds.retry(booking_id, failed.id, office.note)
    await office.sell("new", 0)
    await office.resale.sweep()
    await office.till.settle()
    assert office.given() == 15_000


async def test_a_partial_refund_and_a_return_of_the_same_seat_pay_once(postgres_ledger_url: str) -> None:
    """On PostgreSQL with two servers: whoever comes first; the other seat goes on."""
    async with an_office(postgres_ledger_url) as office, an_office_beside(postgres_ledger_url, office) as other:
        for round_ in range(7):
            seats = (2 * round_, 2 * round_ + 1)
            booking_id, fence = await office.sell(f"fan{round_}", *seats)
            await asyncio.gather(
                office.refunds.refund(booking_id, fence, seats[:1]),
                other.resale.give_back(booking_id, f"fan{round_}", fence, seats if round_ % 2 else seats[:1]),
                return_exceptions=True,
            )
            for _ in range(2):
                await office.resale.sweep()
                await office.till.settle(120, 60)
            returns = {one.seat_index: one.state for one in await office.ledger.returns.returns_of(booking_id)}
            refunded = {seat for one in await office.ledger.payments.refunds_of(booking_id) for seat in one.seats}
            twice = {seat for seat in refunded if returns.get(seat, ReturnState.VOID) is not ReturnState.VOID}
            assert not twice, (returns, refunded)
            await office.balanced()


async def test_the_revenue_export_has_every_booking_that_took_money(office: Office) -> None:
    """CANCELLED ones too: returned to the pool, captured, not resold yet."""
    booking_id, fence = await office.sell("fan", 0)
    await office.resale.give_back(booking_id, "fan", fence)
    await office.waiting.shop.hold("held", 5)
    event = await office.ledger.catalogue.event(EVENT)
    names = office.waiting.shop.plan.seat_ids
    revenue = "".join([part async for part in Exports(office.ledger).table("revenue", event, names)])
    (row,) = revenue.splitlines()[1:]
    assert (row.split(",")[0], row.split(",")[3:7]) == (booking_id, ["50.00", "0.00", "0.00", "50.00"])
    tickets = "".join([part async for part in Exports(office.ledger).table("tickets", event, names)])
    assert len(tickets.splitlines()) == 2


def test_every_cell_of_the_refunds_table_is_decided() -> None:
    """A step that the table does not have is a bug."""
    refund = Refund("rfd_1", "bkg_1", "pay_1", 1, 5000, "EUR", (1,))
    allowed = {
        "asked": {"pending", "done", "moot", "failed"},
        "pending": {"done", "failed"},
        "done": {"failed"},
        "moot": set(),
        "failed": {"asked", "pending", "done"},
    }
    for was in RefundState:
        for to in RefundState:
            known = replace(refund, state=was)
            if to is was or to.value in allowed[was.value]:
                assert known.moved(to, 1).state is to
            else:
                with pytest.raises(AssertionError):
                    known.moved(to, 1)
