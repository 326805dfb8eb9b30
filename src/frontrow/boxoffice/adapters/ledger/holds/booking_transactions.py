"""Transaction programs of bookings, written once for both dialects.

A program is a generator: it yields a `Query`, is sent the rows, and returns an answer. The SQLite store runs it in its
writer thread, the PostgreSQL store over asyncpg; the decisions are the same. Programs work on whole batches and return
one answer per operation, with an exception for each operation that was refused. A program that raises fails its batch.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.events.model.events import EventCancelled
from frontrow.boxoffice.facts.model import (
    BookingCancelled,
    BookingConfirmed,
    BookingRefunded,
    Fact,
    HoldExpired,
    HoldExtended,
    HoldReleased,
    PaymentBegun,
    PaymentDeclined,
    PaymentSteppedBack,
)
from frontrow.boxoffice.holds.model.bookings import (
    MOVES,
    NEEDS_LIVE_HOLD,
    Booking,
    BookingNotFound,
    BookingState,
    HoldEnded,
    Move,
    MoveRefused,
    Origin,
    StaleFence,
    sources,
)
from frontrow.boxoffice.holds.model.holds import ExpiredHold, NewHold
from frontrow.boxoffice.organiser.model.box_office_sales import BUYER_PREFIX
from frontrow.boxoffice.tickets.model.tickets import NewTicket, TicketScanned
from frontrow.core.errors import Overloaded

Answer = TypeVar("Answer")
Program: TypeAlias = Generator[Query, list[Row], Answer]

STATES: Final = {state.value: state for state in BookingState}  # a dict lookup costs a tenth of calling the enum
ORIGINS: Final = {origin.value: origin for origin in Origin}
_SHOP, _OFFER, _BOX_OFFICE = ORIGINS  # as plain texts: SQLite takes 0.3 us to bind a member of an enum
OFFER_PREFIX: Final = "ofr_"
_seats_decoder = msgspec.json.Decoder(tuple[int, ...])
MAX_MOVE_ROUNDS: Final = 4  # for a booking that other writers keep changing


class MakeMove(msgspec.Struct, frozen=True, gc=False):
    """Move one booking. The caller must hold its fence."""

    booking_id: str
    move: Move
    fence: int
    now_us: int
    expires_at_us: int = 0
    reason: str = ""  # of a decline or a cancel, for its fact
    even_scanned: bool = False  # of a refund: allowed although a ticket was scanned
    tickets: tuple[NewTicket, ...] = ()  # of a confirm: written only if this move confirms the booking


class ExpireHolds(msgspec.Struct, frozen=True):
    """End at most `limit` dead holds."""

    now_us: int
    limit: int


def decode_seats(text: str) -> tuple[int, ...]:
    return _seats_decoder.decode(text)


def encode_seats(seats: Sequence[int]) -> str:
    return f"[{seats[0]}]" if len(seats) == 1 else "[" + ",".join(map(str, sorted(seats))) + "]"


def booking_of(row: Row) -> Booking:
    """A booking from the columns of `:booking`."""
    origin, visit_id, sold_by, begun_at_us = row[14], row[8], row[15], row[16]
    if origin is None:
        origin, visit_id, sold_by = read_session_column(row[17], row[2])
    else:
        origin = ORIGINS[origin]
    return Booking(
        *(row[0], row[1], row[2], STATES[row[3]], row[4], decode_seats(row[5]), row[6], row[7], visit_id),
        *(row[9], row[10], row[11], row[12], row[13], origin, sold_by, begun_at_us),
    )


def read_session_column(session: str, fan: str) -> tuple[Origin, str, str]:
    """The origin, the visit and the seller of a booking that a server before schema 41 wrote.

    The column `session` names the offer, the member of staff or the visit. Buyers at the box office have ids of their
    own. Servers since schema 41 go on writing the column, because older ones read it.
    """
    if session.startswith(OFFER_PREFIX):
        return Origin.OFFER, "", ""
    if fan.startswith(BUYER_PREFIX):
        return Origin.BOX_OFFICE, "", session
    return Origin.SHOP, session, ""


def origin_columns(wish: NewHold) -> tuple[str, str]:
    """The origin of a new booking, and the id that it is made by: the offer, the member of staff or the visit."""
    if wish.offer_id:
        return _OFFER, wish.offer_id
    if wish.sold_by:
        return _BOX_OFFICE, wish.sold_by
    return _SHOP, wish.visit_id


def make_moves(asks: Sequence[MakeMove], facts: list[Fact]) -> Program[list[Booking | BaseException]]:
    """Each booking after its move, or the reason for refusing it. One conditional update makes all moves."""
    answers: dict[int, Booking | BaseException] = {}
    pending = list(range(len(asks)))
    for _ in range(MAX_MOVE_ROUNDS + len(asks)):  # a round decides at least one move per undisturbed booking
        if not pending:
            break
        firsts = {asks[at].booking_id: at for at in reversed(pending)}
        moved, seen = yield from _move_round([asks[at] for at in firsts.values()], facts)
        for at in pending:
            ask = asks[at]
            first = at == firsts[ask.booking_id]
            answer = moved.get(ask.booking_id) if first else why_not(ask, seen.get(ask.booking_id))
            if answer is not None:
                answers[at] = answer
        pending = [at for at in pending if at not in answers]
    return [answers.get(at) or _disturbed(ask) for at, ask in enumerate(asks)]


def _disturbed(ask: MakeMove) -> BaseException:
    return Overloaded(f"booking {ask.booking_id} is being changed by others; try again", retry_after_s=0.1)


def _move_round(
    asks: Sequence[MakeMove], facts: list[Fact]
) -> Program[tuple[dict[str, Booking | BaseException | None], dict[str, Booking]]]:
    """One update for all moves, one per booking. Returns the answer of each, and the bookings after the update."""
    inside = yield from _scanned(asks)
    if inside:
        asks = [ask for ask in asks if ask.booking_id not in inside]
    rows = [
        (ask.booking_id, ask.fence, state, MOVES[state, ask.move].to, ask.now_us, ask.expires_at_us, needs_live)
        for ask in sorted(asks, key=_by_booking)
        for needs_live in (int(ask.move in NEEDS_LIVE_HOLD),)
        for state in sources(ask.move)
    ]
    moved = (yield Query("move_bookings", rows)) if rows else []
    seen: dict[str, Booking] = {row[0]: booking_of(row) for row in moved}
    answers: dict[str, Booking | BaseException | None] = {**seen, **inside}
    facts.extend(fact_of(ask, seen[ask.booking_id]) for ask in asks if ask.booking_id in seen)
    freed = [(booking.id,) for booking in seen.values() if booking.state in ENDED]
    if freed:
        yield Query("free_seats", freed)
    yield from move_tickets([ask for ask in asks if ask.booking_id in seen], seen)
    missing = [ask for ask in asks if ask.booking_id not in seen]
    if missing:
        found = yield Query("bookings_by_id", [(ask.booking_id,) for ask in missing])
        seen.update((row[0], booking_of(row)) for row in found)
        for ask in missing:
            answers[ask.booking_id] = why_not(ask, seen.get(ask.booking_id))
        undecided = [ask for ask in missing if answers[ask.booking_id] is None]
        answers |= yield from _cancelled_meanwhile(undecided, seen)
    return answers, seen


def _cancelled_meanwhile(asks: Sequence[MakeMove], seen: Mapping[str, Booking]) -> Program[dict[str, EventCancelled]]:
    """Refusals of confirmations whose event was cancelled, by booking."""
    events = {ask.booking_id: seen[ask.booking_id].event_id for ask in asks if ask.move is Move.CONFIRM}
    if not events:
        return {}
    gone = {row[0] for row in (yield Query("cancelled_events", [(one,) for one in sorted(set(events.values()))]))}
    return {booking_id: EventCancelled(event_id) for booking_id, event_id in events.items() if event_id in gone}


def _scanned(asks: Sequence[MakeMove]) -> Program[dict[str, TicketScanned]]:
    """Refusals of moves that would free seats of people who are already inside."""
    ending = sorted(ask.booking_id for ask in asks if ask.move in (Move.CANCEL, Move.REFUND) and not ask.even_scanned)
    inside = (yield from scanned_seats(ending)) if ending else {}
    return {booking_id: TicketScanned(booking_id, sorted(seats)) for booking_id, seats in inside.items()}


def scanned_seats(booking_ids: Sequence[str]) -> Program[dict[str, set[int]]]:
    """The seats per booking whose valid tickets were scanned.

    No gate can admit another one until this transaction ends.
    """
    inside: dict[str, set[int]] = {}
    for row in (yield Query("lock_tickets", [(one,) for one in sorted(set(booking_ids))])):
        if row[2] is not None:
            inside.setdefault(row[0], set()).add(row[1])
    return inside


def transferred_seats(booking_ids: Sequence[str]) -> Program[dict[str, set[int]]]:
    """The seats per booking whose valid tickets belong to somebody else than the buyer, locked as `scanned_seats`."""
    given: dict[str, set[int]] = {}
    for row in (yield Query("lock_tickets", [(one,) for one in sorted(set(booking_ids))])):
        if row[3]:
            given.setdefault(row[0], set()).add(row[1])
    return given


def move_tickets(moves: Sequence[MakeMove], seen: Mapping[str, Booking]) -> Program[None]:
    """Revoke the tickets of bookings that these moves ended; write those of bookings that they confirmed."""
    gone = sorted((ask.booking_id, ask.now_us) for ask in moves if ask.move in (Move.CANCEL, Move.REFUND))
    if gone:
        yield Query("revoke_tickets_of_bookings", gone)
    rows = [
        (ticket.id, ask.booking_id, seen[ask.booking_id].event_id, ticket.seat_index, ticket.code, ask.now_us)
        for ask in moves
        if ask.move is Move.CONFIRM
        for ticket in ask.tickets
    ]
    if rows:
        yield Query("add_tickets", rows)


def _by_booking(ask: MakeMove) -> str:
    return ask.booking_id


ENDED = frozenset({BookingState.EXPIRED, BookingState.CANCELLED, BookingState.REFUNDED})


def why_not(ask: MakeMove, booking: Booking | None) -> Booking | BaseException | None:
    """Why the conditional update changed nothing: an error, the booking (already moved), or None (try again)."""
    if booking is None:
        return BookingNotFound(ask.booking_id)
    if booking.fence != ask.fence:
        return StaleFence(ask.booking_id, ask.fence)
    cell = MOVES[booking.state, ask.move]
    if cell.repeat:
        return booking
    if booking.state is BookingState.EXPIRED:
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    if cell.to is None:
        return MoveRefused(booking.id, booking.state, ask.move)
    if ask.move in NEEDS_LIVE_HOLD and booking.hold_expires_at_us <= ask.now_us:
        return HoldEnded(booking.id, booking.hold_expires_at_us)
    return None  # another writer changed it between the update and this read


_PLAIN_FACTS: Mapping[Move, Callable[[str, str, str, int, tuple[int, ...], int], Fact]] = {
    Move.BEGIN_PAYMENT: PaymentBegun,
    Move.STEP_BACK: PaymentSteppedBack,
    Move.RELEASE: HoldReleased,
    Move.WITHDRAW: HoldReleased,
    Move.REFUND: BookingRefunded,
}


def fact_of(ask: MakeMove, b: Booking) -> Fact:
    """The fact of a move that was just made."""
    if ask.move is Move.CONFIRM:
        return BookingConfirmed(
            b.id, b.event_id, b.fan, b.fence, b.seats, ask.now_us, amount_minor=b.amount_minor, currency=b.currency
        )
    if ask.move is Move.EXTEND:
        return HoldExtended(b.id, b.event_id, b.fan, b.fence, b.seats, ask.now_us, expires_at_us=b.hold_expires_at_us)
    if ask.move is Move.DECLINE:
        return PaymentDeclined(b.id, b.event_id, b.fan, b.fence, b.seats, ask.now_us, reason=ask.reason)
    if ask.move is Move.CANCEL:
        return BookingCancelled(b.id, b.event_id, b.fan, b.fence, b.seats, ask.now_us, reason=ask.reason)
    return _PLAIN_FACTS[ask.move](b.id, b.event_id, b.fan, b.fence, b.seats, ask.now_us)


def expire_due(ask: ExpireHolds, facts: list[Fact]) -> Program[list[ExpiredHold]]:
    """End dead holds, oldest first. Holds that another worker is ending are skipped."""
    due = yield Query("due_holds", params=(ask.now_us, ask.limit))
    if not due:
        return []
    was = {row[0]: STATES[row[1]] for row in due}
    return (yield from end_holds(dict.fromkeys(was, ask.now_us), was, facts))


def end_holds(now_us_of: dict[str, int], was: dict[str, BookingState], facts: list[Fact]) -> Program[list[ExpiredHold]]:
    """End these holds if they are dead at their `now_us`. Returns those that this transaction ended."""
    rows = yield Query(
        "end_holds", [(booking_id, was[booking_id], now_us_of[booking_id]) for booking_id in sorted(was)]
    )
    ended = [ExpiredHold(row[0], row[1], row[2], decode_seats(row[4]), row[3], row[5], was[row[0]]) for row in rows]
    if ended:
        yield Query("free_seats", [(hold.booking_id,) for hold in ended])
    ended.sort(key=lambda hold: hold.expired_at_us)
    facts.extend(
        HoldExpired(h.booking_id, h.event_id, h.fan, h.fence, h.seats, now_us_of[h.booking_id], was=h.was)
        for h in ended
    )
    return ended
