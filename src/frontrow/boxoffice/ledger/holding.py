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

from msgspec.structs import replace

from frontrow.boxoffice.ledger.programs import Program, booking_of, encode_seats, end_holds
from frontrow.boxoffice.ledger.statements import ALL_WENT_WELL, Query
from frontrow.boxoffice.model.bookings import ACTIVE_STATES, Booking, BookingState, HoldEnded, Move, MoveRefused
from frontrow.boxoffice.model.facts import Fact, HoldPlaced
from frontrow.boxoffice.model.holds import (
    CapExceeded,
    ExpiredHold,
    IdempotencyMismatch,
    NewHold,
    PlacedHold,
    SeatsTaken,
)
from frontrow.core.errors import Overloaded

Placed = PlacedHold | BaseException
Key = tuple[str, str]
KEY_TRIES = 3
CAREFUL_BATCHES = 32  # after a seat was in the way, so many batches look first


class Hopes:
    """A store's memory of whether seats were in the way lately; `careful` counts the batches that still look first."""

    __slots__ = ("careful",)

    def __init__(self) -> None:
        self.careful = 0


def place_holds(wishes: Sequence[NewHold], facts: list[Fact], hopes: Hopes | None = None) -> Program[list[Placed]]:
    """A placed hold or the reason why not, for every wish."""
    batch = _Batch(wishes, facts, hopes)
    yield from batch.take_keys()
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
        batch.answer(at, Overloaded("these seats are changing hands too quickly; try again", retry_after_s=0.1))
    yield from batch.settle_keys()
    return [batch.answers[at] for at in range(len(wishes))]


def fan_locks(wishes: Iterable[NewHold]) -> list[tuple[int]]:
    """The locks to take before anything else, in one order for all writers."""
    return [(lock,) for lock in sorted({_fan_lock(wish) for wish in wishes if wish.cap is not None})]


def _fan_lock(wish: NewHold) -> int:
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
        self.owners: dict[Key, int] = {}  # (fan, idempotency key) -> the wish that brought it first
        self.followers: list[tuple[int, int]] = []  # (wish, the owner of its key)

    def answer(self, at: int, answer: Placed) -> None:
        self.answers[at] = answer

    def _drop_answered(self) -> None:
        if self.answers:
            self.pending = [at for at in self.pending if at not in self.answers]

    # idempotency keys

    def take_keys(self) -> Program[None]:
        """Remember the keys; a wish whose key is known is answered with the booking it made then."""
        keyed = [(at, wish) for at, wish in enumerate(self.wishes) if wish.idempotency_key is not None]
        if not keyed:
            return
        for at, wish in keyed:
            if wish.idempotency_key is not None:
                owner = self.owners.setdefault((wish.fan, wish.idempotency_key), at)
                if owner != at:
                    self.followers.append((at, owner))
        behind = {at for at, _ in self.followers}
        self.pending = [at for at in self.pending if at not in behind]
        missing = list(self.owners)
        for _ in range(KEY_TRIES):
            if not missing:
                return
            rows = [
                (fan, key, self.wishes[at].request_hash, self.wishes[at].booking_id, self.wishes[at].now_us)
                for (fan, key), at in sorted((key, self.owners[key]) for key in missing)
            ]
            fresh = {(row[0], row[1]) for row in (yield Query("take_keys", rows))}
            missing = yield from self._answer_known([key for key in missing if key not in fresh])
        for key in missing:  # known when we tried to take it, forgotten when we looked, every time
            self.answer(
                self.owners.pop(key), Overloaded("this request is being answered; try again", retry_after_s=0.1)
            )
        self._drop_answered()

    def _answer_known(self, keys: list[Key]) -> Program[list[Key]]:
        """Answer wishes whose key is known; the keys that were forgotten in between are returned."""
        if not keys:
            return []
        rows = yield Query("known_keys", keys)
        bookings = yield from _bookings({row[3] for row in rows})
        for fan, key, request_hash, booking_id in rows:
            at = self.owners.pop((fan, key))
            if request_hash != self.wishes[at].request_hash:
                self.answer(at, IdempotencyMismatch(key))
            elif booking_id in bookings:
                self.answer(at, repeated(self.wishes[at], bookings[booking_id], same_request=True))
        self._drop_answered()
        return [key for key in keys if key in self.owners]

    def settle_keys(self) -> Program[None]:
        """A refused wish forgets its key, so it may be sent again; followers get their owner's answer."""
        lost = [key for key, at in self.owners.items() if isinstance(self.answers[at], BaseException)]
        if lost:
            yield Query("forget_keys", lost)
        for at, owner in self.followers:
            answer = self.answers[owner]
            if self.wishes[at].request_hash != self.wishes[owner].request_hash:
                answer = IdempotencyMismatch(self.wishes[at].idempotency_key or "")
            self.answer(at, replace(answer, repeated=True) if isinstance(answer, PlacedHold) else answer)

    # caps

    def count_active(self) -> Program[None]:
        """Count what each fan with a cap has already; nobody else can add to it before we commit."""
        rows = {(w.event_id, w.fan): w.now_us for at in self.pending if (w := self.wishes[at]).cap is not None}
        if rows:
            asked = [(event_id, fan, now_us) for (event_id, fan), now_us in rows.items()]
            self.active.update({(row[0], row[1]): int(row[2]) for row in (yield Query("active_counts", asked))})

    # rounds

    def round(self) -> Program[None]:
        """Decide as many wishes as possible at once."""
        dead = yield from self._look()
        if dead:
            yield from self._end(dead)
        self._drop_answered()
        yield from self._decide(self._choose())

    def hopeful_round(self) -> Program[None]:
        """The same without a look. Who seems over the cap may be asking again for what he has: decided later."""
        yield from self._decide(self._choose(refuse=False))

    def _decide(self, chosen: list[int]) -> Program[None]:
        if chosen:
            won = yield from self._take(chosen)
            if won:
                yield from self._book(won)
        self._drop_answered()

    def _look(self) -> Program[dict[str, tuple[int, BookingState, list[int]]]]:
        """Refuse wishes for taken seats, answer repeats; return dead holds in the way: now_us, state, for whom."""
        wanted = list({(w.event_id, seat) for w in map(self.wishes.__getitem__, self.pending) for seat in w.seats})
        if not wanted:
            return {}
        in_the_way = {(row[0], row[1]): row[2:] for row in (yield Query("seats_in_the_way", wanted))}
        if in_the_way and self.hopes is not None:
            self.hopes.careful = CAREFUL_BATCHES
        dead: dict[str, tuple[int, BookingState, list[int]]] = {}
        own: list[int] = []
        if not in_the_way:
            return dead
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
                    dead.setdefault(booking_id, (wish.now_us, BookingState(state), []))[2].append(at)
            if taken:
                self.answer(at, SeatsTaken(wish.event_id, taken))
        yield from self._answer_existing(own)
        return dead

    def _end(self, dead: dict[str, tuple[int, BookingState, list[int]]]) -> Program[None]:
        now_us_of = {booking_id: now_us for booking_id, (now_us, _, _) in dead.items()}
        was = {booking_id: state for booking_id, (_, state, _) in dead.items()}
        for hold in (yield from end_holds(now_us_of, was, self.facts)):
            self.ended[dead[hold.booking_id][2][0]].append(hold)

    def _choose(self, *, refuse: bool = True) -> list[int]:
        """Wishes that can all win together, in order of arrival; refuses those over the cap."""
        chosen: list[int] = []
        seats: set[tuple[str, int]] = set()
        bookings: set[str] = set()
        maybe: dict[Key, int] = {}
        for at in self.pending:
            wish = self.wishes[at]
            fan, count = (wish.event_id, wish.fan), len(wish.seats)
            ahead = maybe.get(fan, 0)
            if wish.cap is not None and (active := self.active.get(fan, 0)) + ahead + count > wish.cap:
                if refuse and active + count > wish.cap:  # otherwise only if a rival of this round wins
                    self.answer(at, CapExceeded(wish.event_id, wish.fan, wish.cap, active, count))
                continue
            wanted = [(wish.event_id, seat) for seat in wish.seats]
            if wish.booking_id not in bookings and seats.isdisjoint(wanted):
                chosen.append(at)
                seats.update(wanted)
                bookings.add(wish.booking_id)
                maybe[fan] = ahead + count
        return chosen

    def _take(self, chosen: Sequence[int]) -> Program[list[int]]:
        """Insert the seats; those that got all of theirs won, the others' are taken back at once."""
        rows = [
            (wish.event_id, seat, wish.booking_id, price)
            for at in chosen
            for wish in (self.wishes[at],)
            for seat, price in zip(wish.seats, wish.prices_minor or (0,) * len(wish.seats), strict=True)
        ]
        got = yield Query("take_free_seats", sorted(rows), otherwise="take_seats")
        if got is ALL_WENT_WELL:
            return list(chosen)
        if self.hopes is not None:
            self.hopes.careful = CAREFUL_BATCHES
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
        fences = {row[0]: int(row[1]) for row in (yield Query("add_new_bookings", rows, otherwise="add_bookings"))}
        clashing = [at for at in won if self.wishes[at].booking_id not in fences]
        if clashing:  # a booking of that id exists with other seats
            drop = [(self.wishes[at].booking_id, seat) for at in clashing for seat in self.wishes[at].seats]
            yield Query("drop_seats", drop)
            yield from self._answer_existing(clashing)
        for at in won:
            fence = fences.get(self.wishes[at].booking_id)
            if fence is not None:
                self._won(at, fence)

    def _won(self, at: int, fence: int) -> None:
        w = self.wishes[at]
        seats = tuple(sorted(w.seats)) if len(w.seats) > 1 else w.seats
        ended = tuple(self.ended.pop(at, ())) if self.ended else ()
        self.active[w.event_id, w.fan] += len(seats)
        self.answer(at, PlacedHold(w.booking_id, w.event_id, w.fan, seats, fence, w.expires_at_us, ended=ended))
        self.facts.append(
            HoldPlaced(w.booking_id, w.event_id, w.fan, fence, seats, w.now_us, expires_at_us=w.expires_at_us)
        )

    def _answer_existing(self, ats: Iterable[int]) -> Program[None]:
        """Answer wishes whose booking id is in the ledger already."""
        ats = list(dict.fromkeys(ats))
        if ats:
            bookings = yield from _bookings({self.wishes[at].booking_id for at in ats})
            for at in ats:
                if self.wishes[at].booking_id in bookings:
                    self.answer(at, repeated(self.wishes[at], bookings[self.wishes[at].booking_id]))


def _bookings(ids: set[str]) -> Program[dict[str, Booking]]:
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
