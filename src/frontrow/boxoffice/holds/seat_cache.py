"""What this server believes of an event's seats: refuses the hopeless at once, without asking anybody (N2).

It learns from what passes through: claims won here, refusals (which tell until when and whose), releases, frames of the
map's feed (whose seats are looked up once, all of a moment together). Belief that a seat is taken is only trusted for a
moment: after `trust_us` the next attempt asks the claim store again, unless the map, which must have been in step with
the log in the last `FEED_TRUST_US`, still shows the seat as taken. So a refusal is never wrong for longer than one
update, even if every notice is lost. That a seat is free is never trusted: the claim store decides. Pure but for its
own memory.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from frontrow.boxoffice.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.model.seats import SeatState

FOREVER_US = 1 << 62
TRUST_US = 1_000_000
FEED_TRUST_US = 2_000_000
_SOMEBODYS = (SeatState.HELD, SeatState.SOLD)


class Availability:
    """The believed state of each seat of one event, by index."""

    def __init__(self, size: int, *, trust_us: int = TRUST_US, withheld: Iterable[int] = ()) -> None:
        self.states = bytearray(size)
        self.taken = 0  # how many seats are not free
        self._refuse_until_us = array("q", bytes(8 * size))
        self._ends_at_us = array("q", bytes(8 * size))
        self._fans: dict[int, str] = {}
        self._strangers: set[int] = set()  # taken at another server, as the map says; by whom is not known here
        self._ending: list[tuple[int, int]] = []
        self._trust_us = trust_us
        self._map: bytes | bytearray = b""
        self._nothing = bytes(size)
        self._map_good_until_us = 0
        self.withhold(withheld)

    def is_anothers(self, seat: int, fan: str, now_us: int) -> bool:
        """Whether the seat is surely somebody else's: known to be, and known recently."""
        if self._refuse_until_us[seat] <= now_us and not (
            now_us < self._map_good_until_us and self._map[seat] and self._ends_at_us[seat] > now_us
        ):
            return False
        owner = self._fans.get(seat)
        return owner is not None and owner != fan

    def hopeless(self, seats: Sequence[int], fan: str, now_us: int) -> bool:
        """Whether one of the seats is surely somebody else's."""
        if len(seats) == 1:
            return self.is_anothers(seats[0], fan, now_us)
        return any(self.is_anothers(seat, fan, now_us) for seat in seats)

    def beliefs(self, now_us: int) -> "tuple[array[int], array[int], bytes | bytearray, Mapping[int, str]]":
        """What `is_anothers` looks at: refused until, ends at, the map (blank when it is not in step), the fans."""
        shown = self._map if now_us < self._map_good_until_us else self._nothing
        return self._refuse_until_us, self._ends_at_us, shown, self._fans

    def follow(self, states: bytes | bytearray, now_us: int) -> None:
        """The map's states (kept up to date by its feed) were in step with the log just now."""
        self._map, self._map_good_until_us = states, now_us + FEED_TRUST_US

    def known_taken(self, seats: Sequence[int], fan: str, now_us: int) -> list[int]:
        """Those of the seats that `hopeless` is about."""
        return [seat for seat in seats if self.is_anothers(seat, fan, now_us)]

    def took(self, seats: Sequence[int], fan: str, ends_at_us: int, now_us: int) -> None:
        """A fan has these seats until then (0: for good, sold)."""
        state = SeatState.HELD if ends_at_us else SeatState.SOLD
        end_us = ends_at_us or FOREVER_US
        until_us = min(end_us, now_us + self._trust_us)
        for seat in seats:
            self._set(seat, state)
            self._refuse_until_us[seat] = until_us
            if ends_at_us and self._ends_at_us[seat] != end_us:
                heappush(self._ending, (ends_at_us, seat))
            self._ends_at_us[seat] = end_us
            self._fans[seat] = fan
        if self._strangers:
            self._strangers.difference_update(seats)

    def learn(self, taken: Iterable[TakenSeat], now_us: int) -> None:
        """What the claim store or the ledger said about taken seats."""
        for seat in taken:
            if seat.live(now_us) and seat.kind is not ClaimKind.TENTATIVE:
                self.took((seat.seat,), seat.fan, seat.expires_at_us, now_us)

    def freed(self, seats: Iterable[int]) -> None:
        """These seats are nobody's any more."""
        for seat in seats:
            if self.states[seat] != SeatState.BLOCKED:
                self._set(seat, SeatState.FREE)
                self._refuse_until_us[seat] = self._ends_at_us[seat] = 0
                self._fans.pop(seat, None)
                self._strangers.discard(seat)

    def replace(self, seats: Sequence[int], taken: Mapping[int, TakenSeat], now_us: int) -> None:
        """The claim store's whole word on `seats`: those in `taken` are taken, the others free."""
        self.freed(seat for seat in seats if seat not in taken)
        self.learn(taken.values(), now_us)

    def observe(self, states: Mapping[int, int]) -> list[int]:
        """News from the map's feed: only that a seat is free again is taken at its word.

        Answers the seats that were taken elsewhere, by fans this server has not heard of: look who has them (`meet`),
        or every first attempt for one of them has to ask.
        """
        self.freed(seat for seat, state in states.items() if state == SeatState.FREE)
        new = [seat for seat, state in states.items() if state in _SOMEBODYS and seat not in self._fans]
        self._strangers.update(new)
        return new

    def meet(self, taken: Iterable[TakenSeat], now_us: int) -> None:
        """Who has the seats that `observe` asked about; what was freed or taken here meanwhile is left alone."""
        if self._strangers:
            self.learn([seat for seat in taken if seat.seat in self._strangers], now_us)

    def withhold(self, seats: Iterable[int]) -> None:
        """The organiser keeps these back."""
        for seat in seats:
            self._set(seat, SeatState.BLOCKED)

    def expire(self, now_us: int) -> list[int]:
        """Free the holds that ended by `now_us`; which seats."""
        ended = []
        while self._ending and self._ending[0][0] <= now_us:
            _, seat = heappop(self._ending)
            if self.states[seat] == SeatState.HELD and self._ends_at_us[seat] <= now_us:
                ended.append(seat)
        self.freed(ended)
        return ended

    def free_in(self, first: int, size: int) -> int:
        """How many of these seats are believed free."""
        return self.states.count(0, first, first + size)

    def _set(self, seat: int, state: SeatState) -> None:
        was = self.states[seat]
        self.taken += (state != 0) - (was != 0)
        self.states[seat] = state
