"""The contract of the TicketBook port and of tickets in `Ledger.confirm`, as plain checks over a Bench."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from frontrow.boxoffice.gate.model.scans import Scan, Way
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketState
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from tests.contracts.ledger_contract import CALLERS, Bench, outcomes, refusal
from tests.contracts.payment_book import owed, sold
from tests.support.booking_moves import cancel_booking, refund_booking

Check = Callable[[Bench], Coroutine[Any, Any, None]]


def tickets_for(booking_id: str, *seats: int) -> tuple[NewTicket, ...]:
    return tuple(NewTicket(f"tkt_{booking_id}_{seat}", seat, f"code {booking_id} {seat}") for seat in seats)


async def confirmed(bench: Bench, *seats: int) -> tuple[str, int]:
    hold = await bench.paid(*seats)
    await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us, tickets_for(hold.booking_id, *seats))
    return hold.booking_id, hold.fence


async def tickets_are_written_by_the_confirm_that_wins_and_by_no_other(bench: Bench) -> None:
    hold = await bench.paid(1, 2)
    fence = hold.fence
    wrong = tickets_for("wrong", 1, 2)
    refused = [bench.one.confirm(hold.booking_id, fence + 1, bench.now_us, wrong)]
    refused += [bench.two.confirm(hold.booking_id, fence, hold.expires_at_us, wrong)]
    assert len((await outcomes(refused))[1]) == 2
    assert await bench.one.tickets.tickets_of(hold.booking_id) == []
    right = tickets_for(hold.booking_id, 1, 2)
    calls = [bench.either(n).confirm(hold.booking_id, fence, bench.now_us, right) for n in range(CALLERS)]
    assert len((await outcomes(calls))[0]) == CALLERS
    found = await bench.two.tickets.tickets_of(hold.booking_id)
    assert [(one.id, one.seat_index, one.code, one.state) for one in found] == [
        (one.id, one.seat_index, one.code, TicketState.VALID) for one in right
    ]
    assert await bench.two.tickets.ticket(right[0].id) == found[0]
    assert await bench.two.tickets.ticket("tkt_nobody") is None


async def a_booking_that_ends_revokes_its_tickets_and_the_seat_gets_a_new_one(bench: Bench) -> None:
    for end in (refund_booking, cancel_booking):
        booking, fence = await confirmed(bench, 7)
        bench.clock.advance(us=1)
        await end(bench.one, booking, fence, bench.now_us)
        assert [one.state for one in await bench.one.tickets.tickets_of(booking)] == [TicketState.REVOKED]
        await end(bench.one, booking, fence, bench.now_us + 5)
        assert (await bench.one.tickets.revoked_tickets(bench.event))[-1] == (f"tkt_{booking}_7", bench.now_us)
    again, _ = await confirmed(bench, 7)
    assert [one.state for one in await bench.one.tickets.tickets_of(again)] == [TicketState.VALID]


async def a_partial_refund_revokes_the_tickets_of_its_seats_in_its_transaction(bench: Bench) -> None:
    """B12: of 60 who ask for the same seat's refund one gets it; the ticket is dead once, the others live."""
    hold, payment = await sold(bench, 1, 2, 3)
    bench.clock.advance(us=1)
    asked = [owed(bench, payment, number, 2) for number in range(1, CALLERS + 1)]
    calls = [
        bench.either(n).payments.ask_refund(one, fence=hold.fence, now_us=bench.now_us) for n, one in enumerate(asked)
    ]
    assert len((await outcomes(calls))[0]) == 1
    valid, revoked = TicketState.VALID, TicketState.REVOKED
    assert [one.state for one in await bench.two.tickets.tickets_of(hold.booking_id)] == [valid, revoked, valid]
    assert await bench.two.tickets.revoked_tickets(bench.event) == [(f"tkt_{hold.booking_id}_2", bench.now_us)]
    again, _ = await confirmed(bench, 2)
    assert [one.state for one in await bench.one.tickets.tickets_of(again)] == [valid]


async def a_returned_ticket_is_dead_from_the_moment_it_is_given_back(bench: Bench) -> None:
    """B11, ADR 0073: revoked in the transaction that frees the seat, long before it is resold; one seat, then all."""
    hold, payment = await sold(bench, 1, 2)
    await bench.one.payments.save_payment(payment.moved(PaymentState.CAPTURED, bench.now_us), now_us=bench.now_us)
    booking = await bench.one.booking(hold.booking_id)
    assert booking is not None
    valid, revoked = TicketState.VALID, TicketState.REVOKED
    for seat, left in ((1, [revoked, valid]), (2, [revoked, revoked])):
        bench.clock.advance(us=1)
        await bench.one.returns.begin_return(hold.booking_id, booking.fan, hold.fence, [seat], bench.now_us)
        (listed,) = await bench.two.returns.list_return(hold.booking_id, [seat], bench.now_us)
        assert (listed.seat_index, listed.fan) == (seat, booking.fan)
        assert [one.state for one in await bench.one.tickets.tickets_of(hold.booking_id)] == left
        assert (await bench.one.tickets.revoked_tickets(bench.event))[-1] == (
            f"tkt_{hold.booking_id}_{seat}",
            bench.now_us,
        )
        assert seat not in await bench.seats(), "free in the same moment"


async def the_revocation_list_is_read_in_pages(bench: Bench) -> None:
    gone = []
    for seat in range(5):
        booking, fence = await confirmed(bench, seat)
        await refund_booking(bench.one, booking, fence, bench.now_us + seat // 3)
        gone.append((f"tkt_{booking}_{seat}", bench.now_us + seat // 3))
    await confirmed(bench, 9)
    read: list[tuple[str, int]] = []
    after = (-1, "")
    while page := await bench.two.tickets.revoked_tickets(bench.event, after, 2):
        assert len(page) <= 2
        read += page
        after = (page[-1][1], page[-1][0])
    assert sorted(read) == sorted(gone)
    assert [at for _, at in read] == sorted(at for _, at in gone)


async def scans_of_many_gates_are_taken_in_once_and_duplicates_flagged(bench: Bench) -> None:
    booking, _ = await confirmed(bench, 1, 2)
    twice, once = (one.id for one in await bench.one.tickets.tickets_of(booking))
    scans = [
        Scan(f"g1:{twice}", bench.event, twice, "g1", bench.now_us + 5),
        Scan(f"g2:{twice}", bench.event, twice, "g2", bench.now_us + 3),
        Scan(f"g1:{once}", bench.event, once, "g1", bench.now_us + 4),
    ]
    assert await bench.one.tickets.record_scans(scans[:1]) == []
    answers = await asyncio.gather(*(bench.either(n).tickets.record_scans(scans) for n in range(CALLERS)))
    assert {tuple(one.ticket_id for one in found) for found in answers} == {(twice,)}
    found = await bench.one.tickets.duplicate_scans(bench.event)
    assert [[scan.gate for scan in one.scans] for one in found] == [["g2", "g1"]]
    ticket = await bench.one.tickets.ticket(twice)
    assert ticket is not None
    assert ticket.scanned_at_us == bench.now_us + 3
    assert await bench.one.tickets.record_scans([]) == []
    assert (await refusal(bench.one.tickets.record_scans(scans * 400), FrontrowError)).param == "scans"


async def a_ticket_leaves_once_and_comes_back_once_however_many_gates_ask(bench: Bench) -> None:
    booking, _ = await confirmed(bench, 1)
    (ticket,) = (one.id for one in await bench.one.tickets.tickets_of(booking))

    def scan(name: str, after_s: int, way: Way = Way.IN) -> Scan:
        return Scan(f"{name}:{ticket}", bench.event, ticket, name, bench.now_us + after_s * US_PER_S, way=way)

    assert not await bench.one.organiser.let_out(scan("early", 0, Way.OUT)), "who is not inside cannot leave"
    assert await bench.one.organiser.admit(scan("in", 1)) == []
    outs = [bench.either(n).organiser.let_out(scan(f"out{n}", 2, Way.OUT)) for n in range(CALLERS)]
    assert sum(await asyncio.gather(*outs)) == 1
    assert len(await bench.two.organiser.admit(scan("never", 3))) == 1, "without re-entry it was used"
    backs = [bench.either(n).organiser.admit(scan(f"back{n}", 4), again=True) for n in range(CALLERS)]
    assert sum(before == [] for before in await asyncio.gather(*backs)) == 1
    kept = await bench.two.tickets.ticket(ticket)
    assert kept is not None
    assert (kept.scanned_at_us, kept.inside) == (bench.now_us + US_PER_S, True)
    assert await bench.one.tickets.duplicate_scans(bench.event) == []
    assert await bench.one.organiser.gate_totals(bench.event) == (1, 1, 0)
    late = scan("late", 9, Way.OUT)  # of a gate that was offline
    assert await bench.one.tickets.record_scans([late]) == []
    assert await bench.two.organiser.gate_totals(bench.event) == (1, 0, 1)
    assert await bench.one.organiser.admit(scan("slow", 7), again=True) == [], (
        "a gate's clock was ahead of the server's"
    )
    assert await bench.two.tickets.record_scans([late]) == []
    assert await bench.two.organiser.gate_totals(bench.event) == (1, 1, 0)
    (twice,) = await bench.one.tickets.record_scans([scan("meanwhile", 5)])
    assert [one.gate for one in twice.scans if one.gate in ("in", "meanwhile")] == ["in", "meanwhile"]
    assert [one.ticket_id for one in await bench.two.tickets.duplicate_scans(bench.event)] == [ticket]


CHECKS: list[Check] = [
    tickets_are_written_by_the_confirm_that_wins_and_by_no_other,
    a_booking_that_ends_revokes_its_tickets_and_the_seat_gets_a_new_one,
    a_partial_refund_revokes_the_tickets_of_its_seats_in_its_transaction,
    a_returned_ticket_is_dead_from_the_moment_it_is_given_back,
    the_revocation_list_is_read_in_pages,
    scans_of_many_gates_are_taken_in_once_and_duplicates_flagged,
    a_ticket_leaves_once_and_comes_back_once_however_many_gates_ask,
]
