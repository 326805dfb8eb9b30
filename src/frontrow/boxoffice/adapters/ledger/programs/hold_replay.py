"""Wishes for a hold whose booking is in the ledger already: the same hold while it stands, or why it does not."""

from frontrow.boxoffice.adapters.ledger.programs.bookings import Program, booking_of
from frontrow.boxoffice.model.bookings import ACTIVE_STATES, Booking, BookingState, HoldEnded, Move, MoveRefused
from frontrow.boxoffice.model.holds import IdempotencyMismatch, NewHold, PlacedHold
from frontrow.boxoffice.ports.queries import Query

Placed = PlacedHold | BaseException


def bookings_named(ids: set[str]) -> Program[dict[str, Booking]]:
    """Those of the bookings that there are, by id."""
    if not ids:
        return {}
    rows = yield Query("bookings_by_id", [(booking_id,) for booking_id in sorted(ids)])
    return {row[0]: booking_of(row) for row in rows}


def repeated(wish: NewHold, booking: Booking, *, same_request: bool = False) -> Placed:
    """The answer to a wish whose booking is there already: the same hold while it stands.

    `same_request`: a key proves that it was the same wish, even if this time other seats were the best.
    """
    same = (booking.event_id, booking.fan) == (wish.event_id, wish.fan)
    other_seats = booking.id == wish.booking_id and booking.seats != tuple(sorted(wish.seats))
    if not same or (other_seats and not same_request):
        return IdempotencyMismatch(wish.booking_id)
    if booking.state not in ACTIVE_STATES:
        ended = booking.state is BookingState.EXPIRED
        return HoldEnded(booking.id, booking.hold_expires_at_us) if ended else MoveRefused(
            booking.id, booking.state, Move.HOLD
        )  # fmt: skip
    if not booking.live(wish.now_us):
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    return PlacedHold(
        booking.id, booking.event_id, booking.fan, booking.seats, booking.fence, booking.hold_expires_at_us,
        booking.state, repeated=True,
    )  # fmt: skip
