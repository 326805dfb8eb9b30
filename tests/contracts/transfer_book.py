"""The contract of the TransferBook port: the old code dies when the new one lives, once, whoever else writes."""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.payments.model.payments import BY_FAN, PaymentState
from frontrow.boxoffice.refunds.model.ticket_returns import NotReturnable, ReturnState
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    DAY_US,
    MAX_RECEIVED_PER_DAY,
    MAX_SENT_PER_DAY,
    MAX_TRANSFERS_OF_SEAT,
    HandOver,
    TicketTransferred,
    Transfer,
    TransferNotFound,
    TransferRefused,
    TransferState,
)
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketState
from frontrow.core.errors import FrontrowError
from tests.contracts.ledger_contract import CALLERS, Bench, outcomes, refusal
from tests.contracts.payment_book import owed, sold

Check = Callable[[Bench], Coroutine[Any, Any, None]]


def parcel(bench: Bench, booking_id: str, seat: int, name: str = "1", **changes: Any) -> Transfer:
    new = Transfer(
        f"trf_{booking_id}_{seat}_{name}",
        booking_id,
        bench.event,
        seat,
        f"tkt_{booking_id}_{seat}",
        "fan",
        "grace@example.org",
        "en",
        TransferState.SENT,
        bench.now_us,
        bench.now_us + DAY_US,
    )
    return replace(new, **changes)


def taking(bench: Bench, transfer: Transfer, number: int = 0) -> HandOver:
    ticket = NewTicket(f"tkt_{transfer.id}_{number}", transfer.seat_index, f"code {transfer.id} {number}")
    return HandOver(transfer.id, ticket, "Grace", "de", bench.now_us)


async def one_of_many_who_accept_makes_the_new_ticket_and_the_old_one_is_dead(bench: Bench) -> None:
    hold, _ = await sold(bench, 1, 2)
    new = parcel(bench, hold.booking_id, 1)
    sent, none = await outcomes([bench.either(n).transfers.send(replace(new, id=f"{new.id}{n}")) for n in range(20)])
    assert not none
    assert len({one.id for one in sent}) == 1  # two clicks send one mail
    transfer = sent[0]
    bench.clock.advance(us=1)
    calls = [bench.either(n).transfers.accept(taking(bench, transfer, n)) for n in range(CALLERS)]
    answers, refused = await outcomes(calls)
    assert not refused
    assert len({one.new_ticket_id for one in answers}) == 1
    first, second = await bench.one.tickets.tickets_of(hold.booking_id)
    assert (first.id, first.transfer_id, first.state) == (answers[0].new_ticket_id, transfer.id, TicketState.VALID)
    assert (second.id, second.transfer_id) == (f"tkt_{hold.booking_id}_2", "")
    old = await bench.two.tickets.ticket(new.ticket_id)
    assert old is not None
    assert (old.state, old.code) == (TicketState.REVOKED, "code")
    assert await bench.one.tickets.revoked_tickets(bench.event) == [(new.ticket_id, bench.now_us)]
    told = [type(fact).__name__ for fact in await bench.facts()]
    assert (told.count("TransferSent"), told.count("TransferAccepted")) == (1, 1)
    assert await bench.one.transfers.received("grace@example.org") == [answers[0]]
    assert (await refusal(bench.one.transfers.withdraw(transfer.id, bench.now_us), TransferRefused)).code


async def a_transfer_and_a_refund_of_the_same_ticket_do_not_both_happen(bench: Bench) -> None:
    """B12: the buyer has the money or the recipient has the ticket, whatever comes first."""
    for number in range(6):
        hold, payment = await sold(bench, 10 + number)
        transfer = await bench.one.transfers.send(parcel(bench, hold.booking_id, 10 + number, email=f"{number}@x.org"))
        refund = replace(owed(bench, payment, 1, 10 + number), reason=BY_FAN)
        asks: list[Any] = [
            bench.two.payments.ask_refund(refund, fence=hold.fence, now_us=bench.now_us),
            bench.one.transfers.accept(taking(bench, transfer)),
        ]
        answers, refused = await outcomes(asks if number % 2 else asks[::-1])
        assert (len(answers), len(refused)) == (1, 1)
        valid = [one for one in await bench.one.tickets.tickets_of(hold.booking_id) if one.state is TicketState.VALID]
        assert len(valid) == int(isinstance(answers[0], Transfer))
    hold, payment = await sold(bench, 20)
    transfer = await bench.one.transfers.send(parcel(bench, hold.booking_id, 20, email="z@x.org"))
    await bench.one.transfers.accept(taking(bench, transfer))
    refund = replace(owed(bench, payment, 1, 20), reason=BY_FAN)
    await refusal(bench.one.payments.ask_refund(refund, fence=hold.fence, now_us=bench.now_us), TicketTransferred)
    booking = await bench.one.booking(hold.booking_id)
    assert booking is not None
    giving = bench.one.returns.begin_return(booking.id, booking.fan, hold.fence, (20,), bench.now_us)
    assert isinstance(await refusal(giving, FrontrowError), TicketTransferred | NotReturnable)
    by_organiser = replace(refund, reason="event_cancelled")  # whoever paid gets the money of a cancelled event
    await bench.one.payments.ask_refund(by_organiser, fence=hold.fence, now_us=bench.now_us)
    assert [one.state for one in await bench.one.tickets.tickets_of(hold.booking_id)] == [TicketState.REVOKED]


async def only_a_valid_unused_ticket_of_the_sender_can_be_sent(bench: Bench) -> None:
    hold, _ = await sold(bench, 30, 31, 32)
    book = bench.one.transfers
    await bench.one.organiser.admit(Scan("s1", bench.event, f"tkt_{hold.booking_id}_30", "g", bench.now_us))

    async def reason(transfer: Transfer) -> object:
        return (await refusal(book.send(transfer), TransferRefused)).about["reason"]

    assert await reason(parcel(bench, hold.booking_id, 30)) == "used"
    assert await reason(parcel(bench, hold.booking_id, 31, ticket_id="tkt_other")) == "not_yours"
    assert await reason(parcel(bench, hold.booking_id, 31, from_transfer="trf_other")) == "not_yours"
    waiting = await book.send(parcel(bench, hold.booking_id, 31))
    assert await reason(parcel(bench, hold.booking_id, 31, "2", email="other@example.org")) == "sent"
    await bench.one.organiser.admit(Scan("s2", bench.event, waiting.ticket_id, "g", bench.now_us))
    late = await refusal(book.accept(taking(bench, waiting)), TransferRefused)
    assert late.about["reason"] == "not_valid"  # it was used before it was accepted
    ends = await book.send(parcel(bench, hold.booking_id, 32))
    assert (await book.withdraw(ends.id, bench.now_us)).state is TransferState.WITHDRAWN
    assert (await book.withdraw(ends.id, bench.now_us)).state is TransferState.WITHDRAWN
    for over in (ends, await book.send(parcel(bench, hold.booking_id, 32, "3"))):
        bench.clock.advance(us=DAY_US)
        assert (await refusal(book.accept(taking(bench, over)), TransferRefused)).about["reason"] == "over"
    await refusal(book.accept(taking(bench, replace(ends, id="trf_none"))), TransferNotFound)
    assert await book.transfer("trf_none") is None


async def transfers_have_bounds(bench: Bench) -> None:
    hold, _ = await sold(bench, 40, 41)
    book, ticket, holder = bench.one.transfers, f"tkt_{hold.booking_id}_40", ""
    for number in range(MAX_TRANSFERS_OF_SEAT):
        wish = parcel(bench, hold.booking_id, 40, str(number), ticket_id=ticket, from_transfer=holder)
        got = await book.accept(taking(bench, await book.send(wish)))
        ticket, holder = got.new_ticket_id, got.id
    again = parcel(bench, hold.booking_id, 40, "last", ticket_id=ticket, from_transfer=holder)
    assert (await refusal(book.send(again), TransferRefused)).about["reason"] == "too_often"
    for number in range(MAX_SENT_PER_DAY - MAX_TRANSFERS_OF_SEAT):
        await book.withdraw((await book.send(parcel(bench, hold.booking_id, 41, f"m{number}"))).id, bench.now_us)
    many = parcel(bench, hold.booking_id, 41, "one more")
    assert (await refusal(book.send(many), TransferRefused)).about["reason"] == "too_many"
    bench.clock.advance(us=DAY_US + 1)
    await book.send(parcel(bench, hold.booking_id, 41, "next day"))
    address = {"email": f"{bench.event}@x.org"}
    for first in range(60, 60 + MAX_RECEIVED_PER_DAY, MAX_SENT_PER_DAY):
        seats = range(first, first + MAX_SENT_PER_DAY)
        many, _ = await sold(bench, *seats)
        for seat in seats:
            await book.send(parcel(bench, many.booking_id, seat, **address))
    last, _ = await sold(bench, 99)
    refused = await refusal(book.send(parcel(bench, last.booking_id, 99, **address)), TransferRefused)
    assert refused.about["reason"] == "too_many", "an address gets only so many mails, whoever sends them"


async def a_return_that_was_not_finished_does_not_take_the_recipients_ticket(bench: Bench) -> None:
    """The buyer began to give the seat back; before the seat was freed, the recipient accepted it."""
    hold, payment = await sold(bench, 50)
    await bench.one.payments.save_payment(payment.moved(PaymentState.CAPTURED, bench.now_us), now_us=bench.now_us)
    transfer = await bench.one.transfers.send(parcel(bench, hold.booking_id, 50, email="half@x.org"))
    begun = await bench.one.returns.begin_return(hold.booking_id, hold.fan, hold.fence, (50,), bench.now_us)
    assert [one.state for one in begun] == [ReturnState.GIVING]
    got = await bench.two.transfers.accept(taking(bench, transfer))
    assert await bench.one.returns.list_return(hold.booking_id, (50,), bench.now_us) == []
    assert [one.state for one in await bench.one.returns.returns_of(hold.booking_id)] == [ReturnState.VOID]
    (ticket,) = await bench.one.tickets.tickets_of(hold.booking_id)
    assert (ticket.id, ticket.state) == (got.new_ticket_id, TicketState.VALID)
    assert list(await bench.seats()) == [50]


CHECKS: list[Check] = [
    a_return_that_was_not_finished_does_not_take_the_recipients_ticket,
    one_of_many_who_accept_makes_the_new_ticket_and_the_old_one_is_dead,
    a_transfer_and_a_refund_of_the_same_ticket_do_not_both_happen,
    only_a_valid_unused_ticket_of_the_sender_can_be_sent,
    transfers_have_bounds,
]
