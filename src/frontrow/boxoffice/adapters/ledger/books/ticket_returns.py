"""The ledger's returns: seats given back to the pool and what became of them (services.resale.ReturnsBook)."""

import functools
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, Ran, Store
from frontrow.boxoffice.adapters.ledger.programs.bookings import (
    MoveAsked,
    Program,
    booking_of,
    encode_seats,
    make_moves,
    scanned_seats,
)
from frontrow.boxoffice.model.bookings import Booking, BookingNotFound, BookingState, Move, StaleFence
from frontrow.boxoffice.model.facts import Fact, TicketResold, TicketReturned
from frontrow.boxoffice.model.ticket_returns import NotReturnable, Return, ReturnState, return_id
from frontrow.boxoffice.model.tickets import TicketScanned
from frontrow.boxoffice.ports.queries import Query, Row

MAX_AT_ONCE = 1_000


def return_of(row: Row) -> Return:
    key, booking_id, event_id, fan, fence, seat, price_minor, currency, state, resold = row[:10]
    return Return(key, booking_id, event_id, fan, fence, seat, price_minor, currency, ReturnState(state), resold)


def begin(
    booking_id: str, fan: str, fence: int, seats: Sequence[int], now_us: int, facts: list[Fact]
) -> Program[list[Return] | BaseException]:
    """The intent to give these seats back; those given before are answered as they stand."""
    rows = yield Query("lock_bookings", [(booking_id,)])
    if not rows or rows[0][2] != fan:
        return BookingNotFound(booking_id)
    booking = booking_of(rows[0])
    if booking.fence != fence:
        return StaleFence(booking_id, fence)
    known = yield from _known(booking_id)
    own = set(booking.seats) if booking.state is BookingState.CONFIRMED else set[int]()
    again = [g for g in known.values() if g.state is ReturnState.VOID and g.seat_index in own & set(seats)]
    new = sorted(seat for seat in seats if seat not in known)
    if not set(new) <= own:
        return NotReturnable("only seats that you bought can be given back", booking=booking_id, seats=new)
    if new or again:
        refused = yield from _why_not(booking, {*new, *(g.seat_index for g in again)})
        if refused is not None:
            return refused
    if new:
        rows = [
            (return_id(booking_id, s), booking_id, booking.event_id, fan, fence, s, booking.currency, now_us)
            for s in new
        ]
        yield Query("add_returns", rows)
    if again:  # a seat that could not be given back earlier, because its holder was inside
        yield Query("turn_returns", sorted((g.id, "void", "giving", "", now_us) for g in again))
    known = yield from _known(booking_id)
    return [known[seat] for seat in sorted(set(seats)) if seat in known]


def _why_not(booking: Booking, seats: set[int]) -> Program[BaseException | None]:
    """Why seats of a sold booking cannot be given back now."""
    inside = (yield from scanned_seats([booking.id])).get(booking.id, set())
    if inside & seats:
        return TicketScanned(booking.id, sorted(inside & seats))
    payments = yield Query("payments_of_bookings", [(booking.id,)])
    if payments and payments[-1][6] != "captured":
        return NotReturnable("your payment is not through yet; try again in a few minutes", booking=booking.id)
    return None


def _known(booking_id: str) -> Program[dict[int, Return]]:
    rows = yield Query("returns_of_booking", params=(booking_id,))
    return {row[5]: return_of(row) for row in rows}


def list_given(booking_id: str, seats: Sequence[int], now_us: int, facts: list[Fact]) -> Program[list[Return]]:
    """Free those of the seats that are being given; they are listed, or void if the booking ended otherwise or somebody
    came in with the ticket meanwhile."""
    rows = yield Query("lock_bookings", [(booking_id,)])
    known = yield from _known(booking_id)
    giving = [g for g in known.values() if g.state is ReturnState.GIVING and g.seat_index in set(seats)]
    if not giving:
        return []
    booking = booking_of(rows[0])
    inside = (yield from scanned_seats([booking_id])).get(booking_id, set())
    own = set(booking.seats) - inside if booking.state is BookingState.CONFIRMED else set[int]()
    given = [g for g in giving if g.seat_index in own]
    freed = (yield from _free(booking, given, now_us, facts)) if given else True
    if not freed:  # it changed under our hands: the next sweep sees how
        return []
    asked = sorted((g.id, "giving", "listed" if g in given else "void", "", now_us) for g in giving)
    turned = {row[0] for row in (yield Query("turn_returns", asked))}
    listed = [g for g in given if g.id in turned]
    if listed:
        free = tuple(sorted(g.seat_index for g in listed))
        facts.append(TicketReturned(booking.id, booking.event_id, booking.fan, booking.fence, free, now_us))
    return listed


def _free(booking: Booking, given: Sequence[Return], now_us: int, facts: list[Fact]) -> Program[bool]:
    """The seats are nobody's and their tickets dead: the whole booking is cancelled, or it keeps the others."""
    seats = sorted(g.seat_index for g in given)
    kept = [seat for seat in booking.seats if seat not in set(seats)]
    if not kept:
        ask = MoveAsked(booking.id, Move.CANCEL, booking.fence, now_us, reason="returned")
        (moved,) = yield from make_moves([ask], facts)
        return not isinstance(moved, BaseException)
    price_minor = sum(g.price_minor for g in given)
    row = (booking.id, booking.fence, len(kept), encode_seats(kept), encode_seats(booking.seats), price_minor, now_us)
    if not (yield Query("shrink_returned", [row])):
        return False
    yield Query("free_some_seats", [(booking.id, seat) for seat in seats])
    yield Query("revoke_tickets", [(booking.id, seat, now_us) for seat in seats])
    return True


def settle(now_us: int, limit: int, facts: list[Fact]) -> Program[list[Return]]:
    """Listed seats that a later booking was confirmed for are resold; those that this call found."""
    rows = yield Query("resold_returns", params=(limit,))
    first: dict[str, Row] = {}
    for row in rows:
        if row[0] not in first or row[10] < first[row[0]][10]:
            first[row[0]] = row
    if not first:
        return []
    return (yield from _resold({key: (return_of(row), row[9]) for key, row in first.items()}, now_us, facts))


def settle_moved(
    event_id: str, seats: Sequence[int], booking_id: str, now_us: int, facts: list[Fact]
) -> Program[list[Return]]:
    """A booking was moved to these seats: whoever had returned them is owed their price."""
    rows = yield Query("listed_on", [(event_id, seat) for seat in seats])
    listed = {row[0]: (return_of(row), booking_id) for row in rows if row[1] != booking_id}
    return (yield from _resold(listed, now_us, facts)) if listed else []


def _resold(found: dict[str, tuple[Return, str]], now_us: int, facts: list[Fact]) -> Program[list[Return]]:
    """Turn listed returns, each with the booking that has its seat; those that this call turned."""
    asked = sorted((key, "listed", "resold", booking_id, now_us) for key, (_, booking_id) in found.items())
    turned = yield Query("turn_returns", asked)
    resold = [replace(found[row[0]][0], state=ReturnState.RESOLD, resold_booking_id=found[row[0]][1]) for row in turned]
    facts.extend(
        TicketResold(
            r.booking_id, r.event_id, r.fan, r.fence, (r.seat_index,), now_us,
            return_id=r.id, resold_booking_id=r.resold_booking_id, amount_minor=r.price_minor, currency=r.currency,
        )
        for r in resold
    )  # fmt: skip
    return resold


def turn(given_id: str, was: ReturnState, to: ReturnState, now_us: int, facts: list[Fact]) -> Program[bool]:
    return bool((yield Query("turn_returns", [(given_id, was.value, to.value, "", now_us)])))


class SqlReturnsBook:
    """Seats given back and what became of them."""

    def __init__(self, store: Store, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def begin_return(
        self, booking_id: str, fan: str, fence: int, seats: Sequence[int], now_us: int
    ) -> list[Return]:
        run = functools.partial(begin, booking_id, fan, fence, tuple(seats), now_us)
        return cast(list[Return], await self._line.submit(Ran(run, now_us)))

    async def list_return(self, booking_id: str, seats: Sequence[int], now_us: int) -> list[Return]:
        run = functools.partial(list_given, booking_id, tuple(seats), now_us)
        return cast(list[Return], await self._line.submit(Ran(run, now_us)))

    async def settle_resales(self, now_us: int, limit: int) -> list[Return]:
        run = functools.partial(settle, now_us, max(1, min(limit, MAX_AT_ONCE)))
        return cast(list[Return], await self._line.submit(Ran(run, now_us)))

    async def returns_of_event(self, event_id: str, after: str, limit: int) -> list[Return]:
        """Those of an event that are not settled, by id."""
        params = (event_id, after, max(1, min(limit, MAX_AT_ONCE)))
        return [return_of(row) for row in await self._store.read(Query("returns_of_event", params=params))]

    async def turn_return(self, given_id: str, was: ReturnState, to: ReturnState, now_us: int) -> bool:
        return cast(bool, await self._line.submit(Ran(functools.partial(turn, given_id, was, to, now_us), now_us)))

    async def returns_of(self, booking_id: str) -> list[Return]:
        return [return_of(row) for row in await self._store.read(Query("returns_of_booking", params=(booking_id,)))]

    async def returns_in(self, state: ReturnState, limit: int) -> list[Return]:
        params = (state.value, max(1, min(limit, MAX_AT_ONCE)))
        return [return_of(row) for row in await self._store.read(Query("returns_in_state", params=params))]
