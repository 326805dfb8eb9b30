"""Places holds: a whole batch of requests in one transaction, each decided as if it came alone.

A batch is decided in rounds. Each round
1. reads who has the seats, and ends dead holds,
2. refuses requests for taken seats, requests over the cap, and those of a visit that has bought its tickets,
3. lets the other requests take their seats under the unique index, as far as no two of them want the same seat,
4. gives each request that got all of its seats a booking and a fence.
Requests that lost a seat to another writer, or that waited behind a rival in this batch, go into the next round.
Without other writers every round decides at least one request; a thousand requests for one seat take two rounds. The
number of rounds is bounded by the number of requests.

The claim store lets one caller per seat through, so nearly always all seats are free. Unless there was a conflict
recently (`ConflictHistory`), the first round skips step 1: the unique index objects if that was wrong.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.statements import NO_CONFLICT
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    STATES,
    Program,
    encode_seats,
    end_holds,
    origin_columns,
)
from frontrow.boxoffice.adapters.ledger.holds.hold_idempotency import HoldKeys, Key
from frontrow.boxoffice.adapters.ledger.holds.hold_replay import Placed, bookings_named, repeated
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import ConflictHistory
from frontrow.boxoffice.events.model.events import EventCancelled
from frontrow.boxoffice.facts.model import Fact, HoldPlaced
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import CapExceeded, ExpiredHold, NewHold, PlacedHold, SeatsTaken, VisitEnded
from frontrow.core.errors import Overloaded

Dead = dict[
    str, tuple[int, BookingState, list[int]]
]  # dead holds by booking: when seen, their state, by which requests
SeatRow = tuple[str, int, str, int]


def place_holds(
    wishes: Sequence[NewHold], facts: list[Fact], history: ConflictHistory | None = None
) -> Program[list[Placed]]:
    """A placed hold, or the reason for refusing it, per request."""
    batch = _Batch(wishes, facts, history)
    keys = HoldKeys(wishes, batch.answers)
    if any(wish.idempotency_key is not None for wish in wishes):
        batch.wait_for((yield from keys.take()))
    yield from batch.count_active()
    yield from batch.refuse_ended_visits()
    if history is not None and batch.pending:
        if history.careful_batches:
            history.careful_batches -= 1
        else:
            yield from batch.optimistic_round()
    for _ in range(len(wishes) + 1):
        if not batch.pending:
            break
        yield from batch.round()
    for at in batch.pending:  # other writers took and freed its seats in every round
        batch.answers[at] = Overloaded("these seats are changing hands too quickly; try again", retry_after_s=0.1)
    yield from keys.finish()
    return [batch.answers[at] for at in range(len(wishes))]


def fan_lock(wish: NewHold) -> int:
    """The advisory lock of a fan in an event, as PostgreSQL's signed 64 bits."""
    digest = hashlib.blake2b(f"{wish.event_id}\n{wish.fan}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class _Batch:
    """The requests of one transaction and their answers so far. A request is named by its position in the batch."""

    def __init__(self, wishes: Sequence[NewHold], facts: list[Fact], history: ConflictHistory | None) -> None:
        self.wishes = wishes
        self.history = history
        self.facts = facts
        self.answers: dict[int, Placed] = {}
        self.pending = list(range(len(wishes)))
        self.active: Counter[Key] = Counter()  # active seats by (event, fan), updated as requests win
        self.ended: defaultdict[int, list[ExpiredHold]] = defaultdict(list)

    def wait_for(self, followers: set[int]) -> None:
        """These requests get the answer of another one with the same idempotency key."""
        self.pending = [at for at in self.pending if at not in followers and at not in self.answers]

    def _drop_answered(self) -> None:
        if self.answers:
            self.pending = [at for at in self.pending if at not in self.answers]

    def count_active(self) -> Program[None]:
        """Count the active seats of each fan with a cap. Nobody else can add to them before we commit."""
        rows = {(w.event_id, w.fan): w.now_us for at in self.pending if (w := self.wishes[at]).cap is not None}
        if rows:
            asked = [(event_id, fan, now_us) for (event_id, fan), now_us in rows.items()]
            self.active.update({(row[0], row[1]): int(row[2]) for row in (yield Query("active_counts", asked))})

    def refuse_ended_visits(self) -> Program[None]:
        """Refuse requests of visits that have bought tickets. Only fans who have seats are asked about."""
        wishes = [self.wishes[at] for at in self.pending] if self.active else []
        asked = [
            (w.booking_id, w.event_id, w.fan, w.visit_id)
            for w in wishes
            if w.ends_with_sale and w.visit_id and self.active.get((w.event_id, w.fan))
        ]
        if not asked:
            return
        over = {row[0] for row in (yield Query("visits_with_tickets", asked))}
        for at in self.pending:
            if self.wishes[at].booking_id in over:
                self.answers[at] = VisitEnded(self.wishes[at].event_id)
        self._drop_answered()

    def round(self) -> Program[None]:
        """Decide as many requests as possible."""
        dead = yield from self._check_seats()
        if dead:
            yield from self._end(dead)
        self._drop_answered()
        yield from self._decide(*self._choose())

    def optimistic_round(self) -> Program[None]:
        """A round without reading first. A request over the cap may repeat an earlier one, so it is decided later."""
        yield from self._decide(*self._choose(refuse=False))

    def _decide(self, chosen: list[int], rows: list[SeatRow]) -> Program[None]:
        if chosen:
            won = yield from self._take(chosen, rows)
            if won:
                yield from self._book(won)
        self._drop_answered()

    def _check_seats(self) -> Program[Dead]:
        """Refuse requests for taken seats and answer repeated ones. Returns the dead holds on their seats."""
        wanted = list({(w.event_id, seat) for w in map(self.wishes.__getitem__, self.pending) for seat in w.seats})
        if not wanted:
            return {}
        in_the_way = {(row[0], row[1]): row[2:] for row in (yield Query("seats_in_the_way", wanted))}
        if not in_the_way:
            return {}
        if self.history is not None:
            self.history.record_conflict()
        dead: Dead = {}
        own: list[int] = []
        for at in self.pending:
            wish = self.wishes[at]
            taken = []
            for seat in wish.seats:
                booking_id, state, expires_at_us, _ = in_the_way.get((wish.event_id, seat), ("", "", 0, 0))
                if not booking_id:
                    continue
                if booking_id == wish.booking_id:
                    own.append(at)
                elif state == BookingState.CONFIRMED or expires_at_us > wish.now_us:
                    taken.append(seat)
                else:
                    dead.setdefault(booking_id, (wish.now_us, STATES[state], []))[2].append(at)
            if taken:
                self.answers[at] = SeatsTaken(wish.event_id, taken)
        yield from self._answer_existing(own)
        return dead

    def _end(self, dead: Dead) -> Program[None]:
        now_us_of = {booking_id: now_us for booking_id, (now_us, _, _) in dead.items()}
        was = {booking_id: state for booking_id, (_, state, _) in dead.items()}
        for hold in (yield from end_holds(now_us_of, was, self.facts)):
            self.ended[dead[hold.booking_id][2][0]].append(hold)

    def _choose(self, *, refuse: bool = True) -> tuple[list[int], list[SeatRow]]:
        """Requests that can all win together, in order of arrival, and their seats. Refuses those over the cap."""
        chosen: list[int] = []
        rows: list[SeatRow] = []
        seats: dict[str, set[int]] = {}
        bookings: set[str] = set()
        maybe: dict[Key, int] = {}
        for at in self.pending:
            wish = self.wishes[at]
            event_id, booking_id = wish.event_id, wish.booking_id
            fan = (event_id, wish.fan)
            if wish.cap is not None and self._over_cap(at, wish, maybe.get(fan, 0), refuse=refuse):
                continue
            others = seats.setdefault(event_id, set())
            if booking_id in bookings or not others.isdisjoint(wish.seats):
                continue
            chosen.append(at)
            others.update(wish.seats)
            bookings.add(booking_id)
            maybe[fan] = maybe.get(fan, 0) + len(wish.seats)
            for seat, price in zip(wish.seats, wish.prices_minor or (0,) * len(wish.seats), strict=True):
                rows.append((event_id, seat, booking_id, price))
        rows.sort()
        return chosen, rows

    def _over_cap(self, at: int, wish: NewHold, ahead: int, *, refuse: bool) -> bool:
        """Whether the request is over the cap.

        It waits if only rivals of this round put it there, else it is refused.
        """
        assert wish.cap is not None
        active, count = self.active.get((wish.event_id, wish.fan), 0) if self.active else 0, len(wish.seats)
        if active + ahead + count <= wish.cap:
            return False
        if refuse and active + count > wish.cap:  # otherwise it is over only if a rival of this round wins
            self.answers[at] = CapExceeded(wish.event_id, wish.fan, wish.cap, active, count)
        return True

    def _take(self, chosen: Sequence[int], rows: list[SeatRow]) -> Program[list[int]]:
        """Insert the seats. Returns the requests that got all of theirs; the seats of the others are given back."""
        got = yield Query("take_free_seats", rows, fallback="take_seats")
        if got is NO_CONFLICT:
            return list(chosen)
        if self.history is not None:
            self.history.record_conflict()
        counts = Counter(row[0] for row in got)
        won = [at for at in chosen if counts[self.wishes[at].booking_id] == len(self.wishes[at].seats)]
        winners = {self.wishes[at].booking_id for at in won}
        events = {self.wishes[at].booking_id: self.wishes[at].event_id for at in chosen}
        partial = sorted((events[row[0]], row[0], row[1]) for row in got if row[0] not in winners)
        if partial:
            yield Query("drop_seats", partial)
        # Either another writer was faster, and the next round sees it; or this booking existed and has ended.
        yield from self._answer_existing([at for at in chosen if at not in set(won)])
        return won

    def _book(self, won: Sequence[int]) -> Program[None]:
        rows = [
            (
                w.booking_id,
                w.event_id,
                w.fan,
                len(w.seats),
                encode_seats(w.seats),
                w.amount_minor,
                w.currency,
                *origin_columns(w),
                w.now_us,
                w.expires_at_us,
                w.price_lines,
            )
            for w in (self.wishes[at] for at in won)
        ]
        added = yield Query("add_new_bookings", rows, fallback="add_bookings")
        fences: dict[str, int] = {row[0]: row[1] for row in added}
        clashing = [at for at in won if self.wishes[at].booking_id not in fences] if len(fences) < len(won) else []
        if clashing:  # a booking with this id exists with other seats, or the event was cancelled
            drop = [(w.event_id, w.booking_id, seat) for w in (self.wishes[at] for at in clashing) for seat in w.seats]
            yield Query("drop_seats", drop)
            yield from self._answer_existing(clashing)
            yield from self._refuse_cancelled([at for at in clashing if at not in self.answers])
        for at in won:
            fence = fences.get(self.wishes[at].booking_id)
            if fence is not None:
                self._won(at, fence)

    def _won(self, at: int, fence: int) -> None:
        w = self.wishes[at]
        seats = tuple(sorted(w.seats)) if len(w.seats) > 1 else w.seats
        ended = tuple(self.ended.pop(at, ())) if self.ended else ()
        if w.cap is not None:
            self.active[w.event_id, w.fan] += len(seats)
        self.answers[at] = PlacedHold(
            w.booking_id, w.event_id, w.fan, seats, fence, w.expires_at_us, BookingState.HELD, False, ended
        )
        self.facts.append(HoldPlaced(w.booking_id, w.event_id, w.fan, fence, seats, w.now_us, w.expires_at_us))

    def _refuse_cancelled(self, ats: Sequence[int]) -> Program[None]:
        """Refuse requests for events that were cancelled meanwhile."""
        events = sorted({self.wishes[at].event_id for at in ats})
        gone = {row[0] for row in (yield Query("cancelled_events", [(one,) for one in events]))} if events else set()
        for at in ats:
            if self.wishes[at].event_id in gone:
                self.answers[at] = EventCancelled(self.wishes[at].event_id)

    def _answer_existing(self, ats: Iterable[int]) -> Program[None]:
        """Answer requests whose booking id is already in the ledger."""
        ats = list(dict.fromkeys(ats))
        if ats:
            bookings = yield from bookings_named({self.wishes[at].booking_id for at in ats})
            for at in ats:
                if self.wishes[at].booking_id in bookings:
                    self.answers[at] = repeated(self.wishes[at], bookings[self.wishes[at].booking_id])
