"""Transaction programs of ticket transfers (see `holds/booking_transactions.py` for what a program is).

Each locks the booking first, so sending, accepting, withdrawing, refunding and reseating happen one after another.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program, booking_of, transferred_seats
from frontrow.boxoffice.facts.model import Fact, TransferAccepted, TransferSent, TransferWithdrawn
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, BookingState
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    DAY_US,
    MAX_RECEIVED_PER_DAY,
    MAX_SENT_PER_DAY,
    MAX_TRANSFERS_OF_SEAT,
    HandOver,
    Transfer,
    TransferNotFound,
    TransferRefused,
    TransferState,
)

OVER = "this transfer is over; ask the sender for a new one"


def transfer_of(row: Row) -> Transfer:
    """A transfer from its columns."""
    booking_id, event_id, seat, ticket_id, fan, email, locale, state = row[1:9]
    return Transfer(row[0], booking_id, event_id, seat, ticket_id, fan, email, locale, TransferState(state), *row[9:14])


def send(new: Transfer, facts: list[Fact]) -> Program[Transfer | BaseException]:
    """Save the transfer, or return the one that is on its way to the same address, or the reason for refusing it."""
    rows = yield Query("lock_bookings", [(new.booking_id,)])
    if not rows:
        return BookingNotFound(new.booking_id)
    booking, now_us = booking_of(rows[0]), new.created_at_us
    others = yield from _transfers_of(new.booking_id)
    waiting = next((one for one in others if one.ticket_id == new.ticket_id and one.state is TransferState.SENT), None)
    if waiting is not None and waiting.open(now_us):
        if waiting.email == new.email:
            return waiting  # a second click
        return TransferRefused("this ticket is on its way to somebody; cancel that first", reason="sent")
    refused = yield from _why_not(new, booking, others)
    if refused is not None:
        return refused
    if waiting is not None:
        yield Query("turn_transfers", [_turned(waiting, TransferState.WITHDRAWN, now_us)])
    row = (new.id, new.booking_id, new.event_id, new.seat_index, new.ticket_id, new.fan, new.email, new.locale)
    yield Query("add_transfers", [(*row, new.from_transfer, now_us, new.expires_at_us)])
    facts.append(TransferSent(*_about(new, booking, now_us), transfer_id=new.id))
    return new


def _why_not(new: Transfer, booking: Booking, others: Sequence[Transfer]) -> Program[TransferRefused | None]:
    ticket = yield from _valid_ticket(booking, new.seat_index)
    if ticket is None or ticket[0] != new.ticket_id or ticket[3] != new.from_transfer:
        return TransferRefused("this ticket is not valid any more, or somebody else has it", reason="not_yours")
    if ticket[2] is not None:
        return TransferRefused("a ticket that was admitted cannot be transferred", reason="used")
    if booking.state is not BookingState.CONFIRMED:
        return TransferRefused("only a paid booking has tickets to transfer", reason="not_paid")
    accepted = [one for one in others if one.state is TransferState.ACCEPTED and one.seat_index == new.seat_index]
    if len(accepted) >= MAX_TRANSFERS_OF_SEAT:
        return TransferRefused(f"a ticket can be transferred {MAX_TRANSFERS_OF_SEAT} times", reason="too_often")
    since_us = new.created_at_us - DAY_US
    received = yield Query("transfers_to_address", params=(new.email, since_us))
    sent = sum(one.created_at_us > since_us for one in others)
    if sent >= MAX_SENT_PER_DAY or received[0][0] >= MAX_RECEIVED_PER_DAY:
        return TransferRefused("too many transfers today; try again tomorrow", reason="too_many")
    return None


def accept(ask: HandOver, facts: list[Fact]) -> Program[Transfer | BaseException]:
    """Revoke the sender's ticket and write the recipient's, or return the reason for refusing it."""
    found = yield from _find(ask.transfer_id)
    if found is None:
        return TransferNotFound(ask.transfer_id)
    rows = yield Query("lock_bookings", [(found.booking_id,)])
    transfer = yield from _find(ask.transfer_id)  # again: it may have changed before the lock
    if transfer is None or not rows:
        return TransferNotFound(ask.transfer_id)
    if transfer.state is TransferState.ACCEPTED:
        return transfer
    if not transfer.open(ask.now_us):
        return TransferRefused(OVER, reason="over")
    booking = booking_of(rows[0])
    old = yield from _valid_ticket(booking, transfer.seat_index)
    row = (transfer.ticket_id, transfer.event_id, ask.ticket.id, ask.ticket.code, transfer.id, ask.now_us)
    moved = (yield Query("hand_over_tickets", [row])) if old is not None else []
    if not moved or old is None:
        return TransferRefused("this ticket is not valid any more", reason="not_valid")
    dead = (transfer.ticket_id, transfer.id, transfer.event_id, transfer.seat_index, old[1], ask.now_us)
    yield Query("add_dead_tickets", [dead])
    done = replace(
        transfer, state=TransferState.ACCEPTED, new_ticket_id=ask.ticket.id, name=ask.name, locale=ask.locale
    )
    yield Query("turn_transfers", [_turned(done, TransferState.ACCEPTED, ask.now_us)])
    facts.append(TransferAccepted(*_about(done, booking, ask.now_us), transfer_id=done.id))
    return done


def withdraw(transfer_id: str, now_us: int, facts: list[Fact]) -> Program[Transfer | BaseException]:
    """End a transfer that was not accepted."""
    found = yield from _find(transfer_id)
    if found is None:
        return TransferNotFound(transfer_id)
    rows = yield Query("lock_bookings", [(found.booking_id,)])
    turned = yield Query("turn_transfers", [_turned(found, TransferState.WITHDRAWN, now_us)])
    transfer = yield from _find(transfer_id)
    assert transfer is not None
    if transfer.state is TransferState.ACCEPTED:
        return TransferRefused("this ticket was accepted; it belongs to the recipient now", reason="accepted")
    if turned:
        facts.append(TransferWithdrawn(*_about(transfer, booking_of(rows[0]), now_us), transfer_id=transfer.id))
    return transfer


def _find(transfer_id: str) -> Program[Transfer | None]:
    rows = yield Query("transfer_by_id", params=(transfer_id,))
    return transfer_of(rows[0]) if rows else None


def _transfers_of(booking_id: str) -> Program[list[Transfer]]:
    return [transfer_of(row) for row in (yield Query("transfers_of_booking", params=(booking_id,)))]


def _valid_ticket(booking: Booking, seat: int) -> Program[tuple[str, str, int | None, str] | None]:
    """(id, code, scanned_at_us, transfer_id) of the seat's valid ticket, kept so until this transaction ends."""
    yield from transferred_seats([booking.id])  # locks the tickets: no gate can admit one meanwhile
    rows = yield Query("tickets_of_bookings", [(booking.id,)])
    found = [row for row in rows if row[3] == seat and row[4] == "valid"]
    return (found[0][0], found[0][5], found[0][8], found[0][9]) if found else None


def _turned(transfer: Transfer, to: TransferState, now_us: int) -> tuple[object, ...]:
    return transfer.id, to.value, transfer.new_ticket_id, transfer.name, transfer.locale, now_us


def _about(transfer: Transfer, booking: Booking, now_us: int) -> tuple[str, str, str, int, tuple[int, ...], int]:
    return booking.id, booking.event_id, booking.fan, booking.fence, (transfer.seat_index,), now_us
