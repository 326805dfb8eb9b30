"""Moves a confirmed booking to other seats in one transaction.

The new seats are taken under the unique index, the old seats are freed, the old tickets are revoked and new ones are
written; or nothing changes. A fan who had returned one of the new seats is owed its price from then on. A seat whose
ticket was scanned cannot be moved.
"""

from collections.abc import Sequence

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    STATES,
    Program,
    booking_of,
    encode_seats,
    end_holds,
    scanned_seats,
)
from frontrow.boxoffice.adapters.ledger.refunds.return_transactions import resell_moved
from frontrow.boxoffice.facts.model import BookingReseated, Fact
from frontrow.boxoffice.holds.model.bookings import (
    Booking,
    BookingNotFound,
    BookingState,
    SeatsNotInBooking,
    StaleFence,
)
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.organiser.model.reseating import Reseat, ReseatRefused
from frontrow.boxoffice.pricing.model.prices import move_lines
from frontrow.boxoffice.tickets.model.tickets import TicketScanned


def reseat(ask: Reseat, note: Query, facts: list[Fact]) -> Program[Booking | BaseException]:
    """The booking with its new seats, or the reason for refusing the move."""
    rows = yield Query("lock_bookings", [(ask.booking_id,)])
    booking = booking_of(rows[0]) if rows else None
    leaving, coming = {old for old, _ in ask.pairs}, {new for _, new in ask.pairs}
    if booking is not None and coming <= set(booking.seats) and leaving.isdisjoint(booking.seats):
        return booking  # already moved: a repeated call
    refused = _why_not(ask, booking, leaving)
    if refused is not None or booking is None:
        return refused or BookingNotFound(ask.booking_id)
    had = yield Query("seats_had", [(booking.id, seat) for seat in sorted(coming)])
    if had:
        return ReseatRefused("the booking had one of these seats before; choose others", param="to")
    inside = (yield from scanned_seats([booking.id])).get(booking.id, set())
    if inside & leaving:
        return TicketScanned(booking.id, sorted(inside & leaving))
    taken = yield from clear_dead_holds(booking.event_id, sorted(coming), ask.now_us, facts)
    if taken:
        return SeatsTaken(booking.event_id, taken)
    yield from _move(ask, booking, facts)
    left = sorted((set(booking.seats) - leaving) | coming)
    row = (booking.id, len(left), encode_seats(left), booking.amount_minor, ask.now_us)
    yield Query("set_price_lines", [(booking.id, move_lines(booking.price_lines, ask.pairs))])
    moved = yield Query("shrink_bookings", [row])
    yield from resell_moved(booking.event_id, sorted(coming), booking.id, ask.now_us, facts)
    yield note
    facts.append(
        BookingReseated(
            booking.id,
            booking.event_id,
            booking.fan,
            booking.fence,
            tuple(sorted(coming)),
            ask.now_us,
            left=tuple(sorted(leaving)),
        )
    )
    return booking_of(moved[0])


def _why_not(ask: Reseat, booking: Booking | None, leaving: set[int]) -> BaseException | None:
    if booking is None:
        return BookingNotFound(ask.booking_id)
    if booking.fence != ask.fence:
        return StaleFence(ask.booking_id, ask.fence)
    if booking.state is not BookingState.CONFIRMED:
        return ReseatRefused(f"a booking that is {booking.state.value} has no seats to move", state=booking.state.value)
    missing = sorted(leaving - set(booking.seats))
    return SeatsNotInBooking(booking.id, missing) if missing else None


def clear_dead_holds(event_id: str, seats: Sequence[int], now_us: int, facts: list[Fact]) -> Program[list[int]]:
    """End dead holds on these seats. Returns the seats that somebody has."""
    there = yield Query("seats_in_the_way", [(event_id, seat) for seat in seats])
    live = [row for row in there if STATES[row[3]] is BookingState.CONFIRMED or row[4] > now_us]
    if live:
        return sorted(int(row[1]) for row in live)
    dead = {row[2]: STATES[row[3]] for row in there}
    if dead:
        yield from end_holds(dict.fromkeys(dead, now_us), dead, facts)
    return []


def _move(ask: Reseat, booking: Booking, facts: list[Fact]) -> Program[None]:
    paid = {row[1]: row[2] for row in (yield Query("seat_prices_of", [(booking.id,)]))}
    yield Query("free_some_seats", [(booking.id, old) for old, _ in sorted(ask.pairs)])
    rows = sorted((booking.event_id, new, booking.id, paid[old]) for old, new in ask.pairs)
    got = yield Query("take_seats", rows)
    if len(got) < len(rows):  # another writer was faster: the exception rolls everything back
        raise SeatsTaken(booking.event_id, sorted({row[1] for row in rows} - {row[1] for row in got}))
    yield Query("revoke_tickets", [(booking.id, old, ask.now_us) for old, _ in sorted(ask.pairs)])
    tickets = [(one.id, booking.id, booking.event_id, one.seat_index, one.code, ask.now_us) for one in ask.tickets]
    yield Query("add_tickets", sorted(tickets, key=lambda row: row[3]))
