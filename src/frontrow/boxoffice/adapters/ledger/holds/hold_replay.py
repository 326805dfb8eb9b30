"""Answers a repeated hold request whose booking is already in the ledger: the same hold, or why it has ended."""

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program, booking_of
from frontrow.boxoffice.holds.model.bookings import ACTIVE_STATES, Booking, BookingState, HoldEnded, Move, MoveRefused
from frontrow.boxoffice.holds.model.holds import IdempotencyMismatch, NewHold, PlacedHold

Placed = PlacedHold | BaseException


def bookings_named(ids: set[str]) -> Program[dict[str, Booking]]:
    """The bookings that exist, by id."""
    if not ids:
        return {}
    rows = yield Query("bookings_by_id", [(booking_id,) for booking_id in sorted(ids)])
    return {row[0]: booking_of(row) for row in rows}


def repeated(wish: NewHold, booking: Booking, *, same_request: bool = False) -> Placed:
    """The answer to a request whose booking exists: the same hold while it is live.

    `same_request`: an idempotency key proves that it is the same request, even if other seats were the best this time.
    """
    same = (booking.event_id, booking.fan) == (wish.event_id, wish.fan)
    other_seats = booking.id == wish.booking_id and booking.seats != tuple(sorted(wish.seats))
    if not same or (other_seats and not same_request):
        return IdempotencyMismatch(wish.booking_id)
    if booking.state not in ACTIVE_STATES:
        if booking.state is BookingState.EXPIRED:
            return HoldEnded(booking.id, booking.hold_expires_at_us)
        return MoveRefused(booking.id, booking.state, Move.HOLD)
    if not booking.live(wish.now_us):
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    return PlacedHold(
        booking.id,
        booking.event_id,
        booking.fan,
        booking.seats,
        booking.fence,
        booking.hold_expires_at_us,
        booking.state,
        repeated=True,
        amount_minor=booking.amount_minor,
        price_lines=booking.price_lines,
    )
