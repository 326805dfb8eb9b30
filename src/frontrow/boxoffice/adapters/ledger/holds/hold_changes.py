"""Changes the seats of a live hold in one transaction.

Seats in both choices are kept, new ones are taken under the unique index, the others are free; or nothing changes. The
hold's end stays as it is, so that changing a hold never keeps seats from others for longer. Its price is that of the
new seats; ticket types, add-ons and codes are chosen again.
"""

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program, booking_of, encode_seats
from frontrow.boxoffice.adapters.ledger.organiser.reseating import clear_dead_holds
from frontrow.boxoffice.facts.model import Fact, HoldChanged
from frontrow.boxoffice.holds.model.bookings import (
    Booking,
    BookingNotFound,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    StaleFence,
)
from frontrow.boxoffice.holds.model.holds import CapExceeded, ChangedHold, NewHold, SeatsTaken


def change_hold(wish: NewHold, fence: int, facts: list[Fact]) -> Program[ChangedHold | BaseException]:
    """The hold with the seats of `wish`, or the reason for refusing the change. The fan's lock is taken."""
    rows = yield Query("lock_bookings", [(wish.booking_id,)])
    booking = booking_of(rows[0]) if rows else None
    refused = _why_not(wish, fence, booking)
    if refused is not None or booking is None:
        return refused or BookingNotFound(wish.booking_id)
    before, after = set(booking.seats), set(wish.seats)
    if before == after:
        return ChangedHold(booking)
    over = yield from _over_cap(wish, len(before))
    if over is not None:
        return over
    coming, leaving = sorted(after - before), sorted(before - after)
    taken = (yield from clear_dead_holds(wish.event_id, coming, wish.now_us, facts)) if coming else []
    if not taken:
        taken = yield from _take(wish, coming)
    if taken:
        return SeatsTaken(wish.event_id, taken)
    if leaving:
        yield Query("drop_seats", [(booking.event_id, booking.id, seat) for seat in leaving])
    prices = _prices(wish)
    kept = [(booking.id, seat, prices[seat]) for seat in sorted(before & after)]
    if kept:
        yield Query("set_seat_prices", kept)
    yield Query("drop_uses_of_bookings", [(booking.id,)])  # types, add-ons and codes are chosen again at checkout
    yield Query("set_price_lines", [(booking.id, wish.price_lines)])
    row = (booking.id, len(after), encode_seats(sorted(after)), wish.amount_minor, wish.now_us)
    changed = booking_of((yield Query("shrink_bookings", [row]))[0])
    facts.append(
        HoldChanged(
            booking.id, booking.event_id, booking.fan, booking.fence, changed.seats, wish.now_us, left=tuple(leaving)
        )
    )
    return ChangedHold(changed, tuple(leaving))


def _why_not(wish: NewHold, fence: int, booking: Booking | None) -> BaseException | None:
    if booking is None or (booking.event_id, booking.fan) != (wish.event_id, wish.fan):
        return BookingNotFound(wish.booking_id)
    if booking.fence != fence:
        return StaleFence(booking.id, fence)
    if booking.state is BookingState.EXPIRED or (booking.state is BookingState.HELD and not booking.live(wish.now_us)):
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    return None if booking.state is BookingState.HELD else MoveRefused(booking.id, booking.state, Move.HOLD)


def _over_cap(wish: NewHold, own: int) -> Program[CapExceeded | None]:
    if wish.cap is None:
        return None
    rows = yield Query("active_counts", [(wish.event_id, wish.fan, wish.now_us)])
    others = (int(rows[0][2]) if rows else 0) - own
    if others + len(wish.seats) <= wish.cap:
        return None
    return CapExceeded(wish.event_id, wish.fan, wish.cap, others, len(wish.seats))


def _prices(wish: NewHold) -> dict[int, int]:
    return dict(zip(wish.seats, wish.prices_minor or (0,) * len(wish.seats), strict=True))


def _take(wish: NewHold, coming: list[int]) -> Program[list[int]]:
    """Take the new seats. Returns those that somebody else has; then none is taken."""
    prices = _prices(wish)
    rows = [(wish.event_id, seat, wish.booking_id, prices[seat]) for seat in coming]
    got = {int(row[1]) for row in (yield Query("take_seats", rows))} if rows else set()
    missing = [seat for seat in coming if seat not in got]
    if missing and got:
        yield Query("drop_seats", [(wish.event_id, wish.booking_id, seat) for seat in sorted(got)])
    return missing
