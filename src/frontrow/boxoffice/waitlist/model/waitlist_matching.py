"""Matches free seats with waitlist entries: a pure choice over the free seats at one instant and the entries in order.

Each entry in turn gets the best seats that fit it. An entry whose party does not fit is skipped and keeps its place, so
that seats never stay empty for a party that is too large. A party is never split unless it agreed, never offered fewer
seats than it asked for, and never offered a seat that its fan was the last to have.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.seats.model.best_seats import Grade, SectionLayout, best_available
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry, WaitlistEntry

Masks = Callable[[Wish], Sequence[tuple[int, bytes]]]


class SeatPool:
    """The seats of one event that are free at one instant, and which fan was the last to have each."""

    def __init__(
        self,
        plan: Plan,
        layouts: Sequence[SectionLayout],
        masks: Masks,
        taken: Iterable[int],
        last_fans: Mapping[int, str] | None = None,
    ) -> None:
        self._plan, self._layouts, self._masks = plan, layouts, masks
        self._all = tuple(section.id for section in plan.sections)
        self.states = bytearray(plan.size)
        self.block(taken)
        self._had: dict[str, list[int]] = {}
        for seat, fan in (last_fans or {}).items():
            self._had.setdefault(fan, []).append(seat)

    def block(self, seats: Iterable[int]) -> None:
        """Mark these seats as taken."""
        for seat in seats:
            self.states[seat] = SeatState.HELD

    def free_again(self, seats: Iterable[int]) -> None:
        for seat in seats:
            self.states[seat] = SeatState.FREE

    @property
    def free(self) -> int:
        return self.states.count(0)

    def free_by_section(self) -> dict[str, int]:
        """How many seats are free, per section that has any."""
        counts = {layout.id: self.states.count(0, layout.base, layout.base + layout.size) for layout in self._layouts}
        return {section: count for section, count in counts.items() if count}

    def pick(self, entry: WaitlistEntry | NewEntry) -> tuple[int, ...]:
        """The seats for this entry, or none if its party does not fit. The pool does not change."""
        if entry.seat_count > self.free:
            return ()
        sections = entry.sections or self._all
        wish = Wish(entry.seat_count, tuple(section for section in sections if section in self._all))
        if not wish.sections:
            return ()
        masks = self._without(self._masks(wish), self._had.get(entry.fan, ()))
        worst = Grade.APART if entry.split_ok else Grade.SAME_ROW
        choice = best_available(self._layouts, self.states, masks, entry.seat_count, worst)
        if choice is not None:
            return choice.seats
        return self._scattered(masks, entry.seat_count) if entry.split_ok else ()

    def _without(self, masks: Sequence[tuple[int, bytes]], seats: Sequence[int]) -> list[tuple[int, bytes]]:
        """The masks without these seats."""
        found = []
        for number, mask in masks:
            base, size = self._layouts[number].base, self._layouts[number].size
            own = [seat - base for seat in seats if base <= seat < base + size]
            if own:
                copy = bytearray(mask)
                for offset in own:
                    copy[offset] = 0
                mask = bytes(copy)
            found.append((number, mask))
        return found

    def _scattered(self, masks: Sequence[tuple[int, bytes]], count: int) -> tuple[int, ...]:
        """The first `count` seats that fit, over all sections, for parties that agreed to be split."""
        found: list[int] = []
        for number, mask in masks:
            base = self._layouts[number].base
            found += [base + at for at, fits in enumerate(mask) if fits and self.states[base + at] == 0]
            if len(found) >= count:
                return tuple(sorted(found[:count]))
        return ()


def assign_seats(entries: Iterable[WaitlistEntry], pool: SeatPool) -> list[tuple[WaitlistEntry, tuple[int, ...]]]:
    """Seats for as many entries as possible, in their order; the pool is left without those seats."""
    given = []
    for entry in entries:
        seats = pool.pick(entry)
        if seats:
            pool.block(seats)
            given.append((entry, seats))
    return given
