"""Placing holds: a whole batch of wishes in one transaction, each decided as if it came alone.

In rounds: look who has the seats; end dead holds; refuse what is taken or over the cap; let the rest, as far as they do
not want the same seat, take their seats under the unique index; give those that got all of theirs a booking and a
fence. What another writer took from under us, and what stood behind a rival of this batch, goes into the next round,
which sees how it ended. Undisturbed, every round decides at least one wish; a thousand wishes for one seat take two
rounds. The number of rounds is bounded by the number of wishes.

The claim store has let one caller a seat through, so nearly always all seats are free. While that has been so lately
(`Hopes`), the first round does not look: the unique index says if it was wrong.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from frontrow.boxoffice.adapters.ledger.engine.statements import ALL_WENT_WELL
from frontrow.boxoffice.adapters.ledger.programs.bookings import STATES, Program, encode_seats, end_holds
from frontrow.boxoffice.adapters.ledger.programs.hold_idempotency import Key, Keys
from frontrow.boxoffice.adapters.ledger.programs.hold_replay import Placed, bookings_named, repeated
from frontrow.boxoffice.adapters.ledger.programs.optimistic_insert import Hopes
from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.events import EventCancelled
from frontrow.boxoffice.model.facts import Fact, HoldPlaced
from frontrow.boxoffice.model.holds import CapExceeded, ExpiredHold, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.ports.queries import Query
from frontrow.core.errors import Overloaded

Dead = dict[str, tuple[int, BookingState, list[int]]]  # dead holds in the way: when seen, their state, by whom
SeatRow = tuple[str, int, str, int]


def place_holds(wishes: Sequence[NewHold], facts: list[Fact], hopes: Hopes | None = None) -> Program[list[Placed]]:
    """A placed hold or the reason why not, for every wish."""
    batch = _Batch(wishes, facts, hopes)
    keys = Keys(wishes, batch.answers)
    if any(wish.idempotency_key is not None for wish in wishes):
        batch.wait_for((yield from keys.take()))
    yield from batch.count_active()
    if hopes is not None and batch.pending:
        if hopes.careful:
            hopes.careful -= 1
        else:
            yield from batch.hopeful_round()
    for _ in range(len(wishes) + 1):
        if not batch.pending:
            break
        yield from batch.round()
    for at in batch.pending:  # others took and freed its seats in every round
        batch.answers[at] = Overloaded("these seats are changing hands too quickly; try again", retry_after_s=0.1)
    yield from keys.settle()
    return [batch.answers[at] for at in range(len(wishes))]


def fan_lock(wish: NewHold) -> int:
    """The advisory lock of a fan in an event, as PostgreSQL's signed 64 bits."""
    digest = hashlib.blake2b(f"{wish.event_id}\n{wish.fan}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class _Batch:
    """The wishes of one transaction on their way to an answer."""

    def __init__(self, wishes: Sequence[NewHold], facts: list[Fact], hopes: Hopes | None) -> None:
        self.wishes = wishes
        self.hopes = hopes
        self.facts = facts
        self.answers: dict[int, Placed] = {}
        self.pending = list(range(len(wishes)))
        self.active: Counter[Key] = Counter()  # active seats by (event, fan), kept up to date as wishes win
        self.ended: defaultdict[int, list[ExpiredHold]] = defaultdict(list)

    def wait_for(self, followers: set[int]) -> None:
        """These wishes get the answer of another."""
        self.pending = [at for at in self.pending if at not in followers and at not in self.answers]

    def _drop_answered(self) -> None:
        if self.answers:
            self.pending = [at for at in self.pending if at not in self.answers]

    def count_active(self) -> Program[None]:
        """Count what each fan with a cap has already; nobody else can add to it before we commit."""
        rows = {(w.event_id, w.fan): w.now_us for at in self.pending if (w := self.wishes[at]).cap is not None}
        if rows:
            asked = [(event_id, fan, now_us) for (event_id, fan), now_us in rows.items()]
            self.active.update({(row[0], row[1]): int(row[2]) for row in (yield Query("active_counts", asked))})

    def round(self) -> Program[None]:
        """Decide as many wishes as possible at once."""
        dead = yield from self._look()
        if dead:
            yield from self._end(dead)
        self._drop_answered()
        yield from self._decide(*self._choose())

    def hopeful_round(self) -> Program[None]:
        """The same without a look. Who seems over the cap may be asking again for what he has: decided later."""
        yield from self._decide(*self._choose(refuse=False))

    def _decide(self, chosen: list[int], rows: list[SeatRow]) -> Program[None]:
        if chosen:
            won = yield from self._take(chosen, rows)
            if won:
                yield from self._book(won)
        self._drop_answered()

    def _look(self) -> Program[Dead]:
        """Refuse wishes for taken seats, answer repeats; return dead holds in the way."""
        wanted = list({(w.event_id, seat) for w in map(self.wishes.__getitem__, self.pending) for seat in w.seats})
        if not wanted:
            return {}
        in_the_way = {(row[0], row[1]): row[2:] for row in (yield Query("seats_in_the_way", wanted))}
        if not in_the_way:
            return {}
        if self.hopes is not None:
            self.hopes.lost()
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
        """Wishes that can all win together, in order of arrival, and their seats; refuses those over the cap."""
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
        """Whether the wish must wait or, if no rival of this round is to blame, is refused."""
        assert wish.cap is not None
        active, count = self.active.get((wish.event_id, wish.fan), 0) if self.active else 0, len(wish.seats)
        if active + ahead + count <= wish.cap:
            return False
        if refuse and active + count > wish.cap:  # otherwise only if a rival of this round wins
            self.answers[at] = CapExceeded(wish.event_id, wish.fan, wish.cap, active, count)
        return True

    def _take(self, chosen: Sequence[int], rows: list[SeatRow]) -> Program[list[int]]:
        """Insert the seats; those that got all of theirs won, the others' are taken back at once."""
        got = yield Query("take_free_seats", rows, otherwise="take_seats")
        if got is ALL_WENT_WELL:
            return list(chosen)
        if self.hopes is not None:
            self.hopes.lost()
        counts = Counter(row[0] for row in got)
        won = [at for at in chosen if counts[self.wishes[at].booking_id] == len(self.wishes[at].seats)]
        winners = {self.wishes[at].booking_id for at in won}
        partial = sorted((row[0], row[1]) for row in got if row[0] not in winners)
        if partial:
            yield Query("drop_seats", partial)
        # Either another writer was quicker, and the next round will see whom; or this booking existed and has ended.
        yield from self._answer_existing([at for at in chosen if at not in set(won)])
        return won

    def _book(self, won: Sequence[int]) -> Program[None]:
        rows = [
            (
                w.booking_id, w.event_id, w.fan, len(w.seats), encode_seats(w.seats), w.amount_minor, w.currency,
                w.session, w.now_us, w.expires_at_us,
            )
            for w in (self.wishes[at] for at in won)
        ]  # fmt: skip
        made = yield Query("add_new_bookings", rows, otherwise="add_bookings")
        fences: dict[str, int] = {row[0]: row[1] for row in made}
        clashing = [at for at in won if self.wishes[at].booking_id not in fences] if len(fences) < len(won) else []
        if clashing:  # a booking of that id exists with other seats, or the event was cancelled
            drop = [(self.wishes[at].booking_id, seat) for at in clashing for seat in self.wishes[at].seats]
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
        """Refuse wishes for events that were cancelled meanwhile."""
        events = sorted({self.wishes[at].event_id for at in ats})
        gone = {row[0] for row in (yield Query("cancelled_events", [(one,) for one in events]))} if events else set()
        for at in ats:
            if self.wishes[at].event_id in gone:
                self.answers[at] = EventCancelled(self.wishes[at].event_id)

    def _answer_existing(self, ats: Iterable[int]) -> Program[None]:
        """Answer wishes whose booking id is in the ledger already."""
        ats = list(dict.fromkeys(ats))
        if ats:
            bookings = yield from bookings_named({self.wishes[at].booking_id for at in ats})
            for at in ats:
                if self.wishes[at].booking_id in bookings:
                    self.answers[at] = repeated(self.wishes[at], bookings[self.wishes[at].booking_id])
