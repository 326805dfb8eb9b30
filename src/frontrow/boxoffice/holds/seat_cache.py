"""This server's cache of an event's seats. It refuses attempts for taken seats without calling a store (N2).

The cache is updated by what passes through this server: claims won here, refusals (which name the owner and the end),
releases, and frames of the map feed (the owners of seats in a frame are looked up together). An entry is trusted for
`trust_us`. After that the next attempt calls the claim store again, unless the map still shows the seat as taken and
was in step with its log within the last `FEED_TRUST_US`. So a refusal is never wrong for longer than one update, even
if every notice is lost. The cache never answers that a seat is free: the claim store decides that. No I/O.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from frontrow.boxoffice.holds.model.claims import ClaimKind, TakenSeat
from frontrow.boxoffice.seats.model.map_format import SeatState

FOREVER_US = 1 << 62
TRUST_US = 1_000_000
FEED_TRUST_US = 2_000_000
_TAKEN_STATES = (SeatState.HELD, SeatState.SOLD)


class SeatCache:
    """The cached state of each seat of one event, by index."""

    def __init__(self, size: int, *, trust_us: int = TRUST_US, withheld: Iterable[int] = ()) -> None:
        self.states = bytearray(size)
        self.taken = 0  # how many seats are not free
        self._refuse_until_us = array("q", bytes(8 * size))
        self._ends_at_us = array("q", bytes(8 * size))
        self._fans: dict[int, str] = {}
        self._owner_unknown: set[int] = set()  # the map says taken at another server; the owner is not cached yet
        self._hold_ends: list[tuple[int, int]] = []
        self._trust_us = trust_us
        self._map: bytes | bytearray = b""
        self._map_trusted_until_us = 0
        self.withhold(withheld)

    def is_taken_by_other(self, seat: int, fan: str, now_us: int) -> bool:
        """Whether the seat certainly belongs to somebody else, by a recent enough entry."""
        if self._refuse_until_us[seat] <= now_us and not (
            now_us < self._map_trusted_until_us and self._map[seat] and self._ends_at_us[seat] > now_us
        ):
            return False
        owner = self._fans.get(seat)
        return owner is not None and owner != fan

    def any_taken_by_other(self, seats: Sequence[int], fan: str, now_us: int) -> bool:
        """Whether one of the seats certainly belongs to somebody else."""
        if len(seats) == 1:
            return self.is_taken_by_other(seats[0], fan, now_us)
        return any(self.is_taken_by_other(seat, fan, now_us) for seat in seats)

    def taken_by_others(self, seats: Sequence[int], fan: str, now_us: int) -> list[int]:
        """Those of the seats that certainly belong to somebody else."""
        return [seat for seat in seats if self.is_taken_by_other(seat, fan, now_us)]

    def trust_map(self, states: bytes | bytearray, now_us: int) -> None:
        """Use the map's states (its feed keeps them up to date), which are in step with the log now."""
        self._map, self._map_trusted_until_us = states, now_us + FEED_TRUST_US

    def mark_taken(self, seats: Sequence[int], fan: str, ends_at_us: int, now_us: int) -> None:
        """Mark seats that belong to a fan until `ends_at_us` (0: sold, without an end)."""
        state = SeatState.HELD if ends_at_us else SeatState.SOLD
        end_us = ends_at_us or FOREVER_US
        until_us = min(end_us, now_us + self._trust_us)
        for seat in seats:
            self._set(seat, state)
            self._refuse_until_us[seat] = until_us
            if ends_at_us and self._ends_at_us[seat] != end_us:
                heappush(self._hold_ends, (ends_at_us, seat))
            self._ends_at_us[seat] = end_us
            self._fans[seat] = fan
        if self._owner_unknown:
            self._owner_unknown.difference_update(seats)

    def mark_claimed(self, taken: Iterable[TakenSeat], now_us: int) -> None:
        """Take over taken seats as the claim store or the ledger reported them."""
        for seat in taken:
            if seat.live(now_us) and seat.kind is not ClaimKind.TENTATIVE:
                self.mark_taken((seat.seat,), seat.fan, seat.expires_at_us, now_us)

    def mark_free(self, seats: Iterable[int]) -> None:
        """Mark these seats as free."""
        for seat in seats:
            if self.states[seat] != SeatState.BLOCKED:
                self._set(seat, SeatState.FREE)
                self._refuse_until_us[seat] = self._ends_at_us[seat] = 0
                self._fans.pop(seat, None)
                self._owner_unknown.discard(seat)

    def replace_states(self, seats: Sequence[int], taken: Mapping[int, TakenSeat], now_us: int) -> None:
        """Take over the claim store's answer about `seats`: those in `taken` are taken, the others free."""
        self.mark_free(seat for seat in seats if seat not in taken)
        self.mark_claimed(taken.values(), now_us)

    def apply_map_changes(self, states: Mapping[int, int]) -> list[int]:
        """Free the seats that the map feed reports as free, and return those taken by fans that are not in this cache.

        The caller looks up their owners and passes them to `add_owners`. Otherwise the first attempt for each of them
        has to call the claim store.
        """
        self.mark_free(seat for seat, state in states.items() if state == SeatState.FREE)
        new = [seat for seat, state in states.items() if state in _TAKEN_STATES and seat not in self._fans]
        self._owner_unknown.update(new)
        return new

    @property
    def wants_owners(self) -> bool:
        """Whether `apply_map_changes` has returned seats whose owners are still unknown."""
        return bool(self._owner_unknown)

    def add_owners(self, taken: Iterable[TakenSeat], now_us: int) -> None:
        """Take over the owners of seats that `apply_map_changes` returned, unless they changed here meanwhile."""
        if self._owner_unknown:
            self.mark_claimed([seat for seat in taken if seat.seat in self._owner_unknown], now_us)

    def withhold(self, seats: Iterable[int]) -> None:
        """Mark seats that the organiser withholds."""
        for seat in seats:
            self._set(seat, SeatState.BLOCKED)

    def expire_holds(self, now_us: int) -> list[int]:
        """Free the holds that ended by `now_us` and return their seats."""
        ended = []
        while self._hold_ends and self._hold_ends[0][0] <= now_us:
            _, seat = heappop(self._hold_ends)
            if self.states[seat] == SeatState.HELD and self._ends_at_us[seat] <= now_us:
                ended.append(seat)
        self.mark_free(ended)
        return ended

    def _set(self, seat: int, state: SeatState) -> None:
        previous = self.states[seat]
        self.taken += (state != 0) - (previous != 0)
        self.states[seat] = state
