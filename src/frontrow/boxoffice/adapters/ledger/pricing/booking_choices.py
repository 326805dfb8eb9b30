"""Writes what a fan chose for a hold: its new price, and the uses of codes, stocks and limits, all or nothing.

A counter's `taken` is never below what is really used. A choice that fits under it is written at once. One that does
not fit looks at every use of the counter: uses of bookings that are over are dropped and dead holds are ended, and what
is left decides. So a use comes back when its booking ends for whatever reason, and ending a booking costs nothing more.

The counters are locked before the booking, in the order of their names.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    STATES,
    MakeMove,
    Program,
    booking_of,
    end_holds,
    make_moves,
)
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.holds.model.bookings import (
    ACTIVE_STATES,
    Booking,
    BookingNotFound,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    StaleFence,
)
from frontrow.boxoffice.pricing.model.booking_choices import NO_LIMIT, NoneLeft, Reprice, Use
from frontrow.boxoffice.pricing.model.discounts import DiscountRefused
from frontrow.core.errors import Overloaded

PARAMS = {"discount": "code", "add_on": "add_ons", "limit": "types"}


def reprice(ask: Reprice, facts: list[Fact]) -> Program[Booking | BaseException]:
    """The booking with its new price, or why it keeps the old one."""
    before = {row[0]: int(row[1]) for row in (yield Query("uses_of_booking", [(ask.booking_id,)]))}
    names = sorted({*before, *(use.counter for use in ask.uses)})
    taken: dict[str, int] = {}
    if names:
        yield Query("add_use_counters", [(name,) for name in names])
        taken = {row[0]: int(row[1]) for row in (yield Query("lock_use_counters", [(name,) for name in names]))}
    rows = yield Query("lock_bookings", [(ask.booking_id,)])
    booking = booking_of(rows[0]) if rows else None
    refused = _why_not(ask, booking)
    if refused is not None or booking is None:
        return refused or BookingNotFound(ask.booking_id)
    own = {row[0]: int(row[1]) for row in (yield Query("uses_of_booking", [(ask.booking_id,)]))}
    if not own.keys() <= taken.keys():  # another request changed the choice in between
        return _changed_meanwhile(ask.booking_id)
    for name, quantity in own.items():
        taken[name] -= quantity
    for use in ask.uses:
        refusal = yield from _count(use, booking, taken, ask.now_us, facts)
        if refusal is not None:
            return refusal
        taken[use.counter] += use.quantity
    return (yield from _write(ask, booking.event_id, own, taken))


def confirm_free(ask: MakeMove, facts: list[Fact]) -> Program[Booking | BaseException]:
    """Sell a booking that costs nothing, in one step: nobody can make it cost something in between."""
    rows = yield Query("lock_bookings", [(ask.booking_id,)])
    booking = booking_of(rows[0]) if rows else None
    if booking is not None and booking.amount_minor and booking.state is not BookingState.CONFIRMED:
        return MoveRefused(booking.id, booking.state, Move.CONFIRM)
    if booking is not None and booking.state is BookingState.HELD:
        (begun,) = yield from make_moves([replace(ask, move=Move.BEGIN_PAYMENT, tickets=())], facts)
        if isinstance(begun, BaseException):
            return begun
    (sold,) = yield from make_moves([ask], facts)
    return sold


def _why_not(ask: Reprice, booking: Booking | None) -> BaseException | None:
    if booking is None:
        return BookingNotFound(ask.booking_id)
    if booking.fence != ask.fence:
        return StaleFence(ask.booking_id, ask.fence)
    if booking.state is BookingState.EXPIRED or not booking.live(ask.now_us):
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    if booking.state is not BookingState.HELD or booking.seats != ask.seats:
        return MoveRefused(booking.id, booking.state, Move.HOLD)
    if not ask.seat_totals and booking.amount_minor != ask.amount_minor:  # the price is not the one that was read
        return _changed_meanwhile(booking.id)
    return None


def _changed_meanwhile(booking_id: str) -> Overloaded:
    return Overloaded(f"booking {booking_id} is being changed by another request; try again", retry_after_s=0.1)


def _count(
    use: Use, booking: Booking, taken: dict[str, int], now_us: int, facts: list[Fact]
) -> Program[BaseException | None]:
    """Check one use against its limits. `taken` is corrected if it was too high."""
    full = use.most != NO_LIMIT and taken[use.counter] + use.quantity > use.most
    if not full and not use.most_per_person:
        return None
    rows = yield Query("uses_of_counter", params=(use.counter,))
    others = [row for row in rows if row[0] != booking.id]
    dead = {
        row[0]: STATES[row[3]]
        for row in others
        if STATES[row[3]] in (BookingState.HELD, BookingState.PAYING) and row[4] <= now_us
    }
    ended = {one.booking_id for one in (yield from end_holds(dict.fromkeys(dead, now_us), dead, facts))} if dead else ()
    over = [row for row in others if row[0] in ended or STATES[row[3]] not in ACTIVE_STATES]
    if over:
        yield Query("drop_uses", [(row[0], use.counter) for row in over])
    live = [row for row in others if row not in over]
    taken[use.counter] = sum(int(row[1]) for row in live)
    if use.most_per_person and sum(row[2] == booking.fan for row in live) >= use.most_per_person:
        return DiscountRefused("used_by_you", use.name)
    if use.most != NO_LIMIT and taken[use.counter] + use.quantity > use.most:
        if use.kind == "discount":
            return DiscountRefused("used_up", use.name)
        return NoneLeft(use.name, max(0, use.most - taken[use.counter]), PARAMS[use.kind])
    return None


def _write(ask: Reprice, event_id: str, own: Mapping[str, int], taken: Mapping[str, int]) -> Program[Booking]:
    if own:
        yield Query("drop_uses_of_bookings", [(ask.booking_id,)])
    if ask.uses:
        yield Query("add_uses", [(ask.booking_id, use.counter, use.quantity, event_id) for use in ask.uses])
    changed: Sequence[tuple[str, int]] = [
        (name, taken[name]) for name in sorted({*own, *(u.counter for u in ask.uses)})
    ]
    if changed:
        yield Query("set_use_counters", list(changed))
    if ask.seat_totals:
        totals = zip(ask.seats, ask.seat_totals, strict=True)
        yield Query("set_seat_prices", [(ask.booking_id, seat, total) for seat, total in totals])
    rows = yield Query("set_prices", [(ask.booking_id, ask.amount_minor, ask.price_lines, ask.now_us)])
    return booking_of(rows[0])
