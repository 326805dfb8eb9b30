"""The claim store of one process: a dictionary of taken seats per event. The embedded default and the reference.

No operation awaits between reading and writing, so each is atomic on its event loop. The store starts lost, like an
empty Redis: its content ended with the last process, and the ledger fills it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from frontrow.boxoffice.holds.model.claims import (
    BestClaim,
    ClaimedSeats,
    ClaimKind,
    ClaimRefused,
    ClaimsLost,
    SeatClaim,
    TakenSeat,
    check_name,
)
from frontrow.boxoffice.seats.model.best_seats import Grade, SectionLayout, choose_seats, layouts
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import NotFound
from frontrow.shared.coalescer import ResultSlot, move_result


class _EventClaims:
    __slots__ = ("filled", "layouts", "plan", "rebuilds", "taken")

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.layouts: tuple[SectionLayout, ...] = layouts(plan)
        self.taken: dict[int, TakenSeat] = {}
        self.filled = False
        self.rebuilds = 0


class MemoryClaims:
    """SeatClaims in this process."""

    def __init__(self) -> None:
        self._events: dict[str, _EventClaims] = {}

    def learn(self, event_id: str, plan: Plan) -> None:
        current = self._events.get(event_id)
        if current is None or current.plan != plan:
            self._events[check_name(event_id, "event")] = _EventClaims(plan)

    def forget(self, event_id: str) -> None:
        self._events.pop(event_id, None)

    def _event(self, event_id: str) -> _EventClaims:
        try:
            return self._events[event_id]
        except KeyError:
            raise NotFound(f"there is no event {event_id} here", event=event_id) from None

    def _filled_event(self, event_id: str) -> _EventClaims:
        event = self._event(event_id)
        if not event.filled:
            raise ClaimsLost(event_id)
        return event

    def claim_into(self, claim: SeatClaim, now_us: int, slot: ResultSlot) -> None:
        asyncio.ensure_future(self.claim(claim, now_us)).add_done_callback(lambda task: move_result(task, slot))

    async def claim(self, claim: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        check_name(claim.fan, "fan")
        check_name(claim.booking_id, "booking")
        event = self._filled_event(claim.event_id)
        conflicts: list[TakenSeat] = []
        for seat in claim.seats:
            event.plan.check_index(seat)
            current = event.taken.get(seat)
            if current is not None and current.booking_id == claim.booking_id:
                continue
            if current is not None and current.live(now_us):
                conflicts.append(current)
        if conflicts:
            return ClaimRefused(tuple(conflicts))
        self._write(event, claim.seats, claim.fan, claim.booking_id, now_us, claim.expires_at_us)
        return ClaimedSeats(claim.seats)

    def _write(
        self, event: _EventClaims, seats: Iterable[int], fan: str, booking_id: str, now_us: int, expires_at_us: int
    ) -> None:
        for seat in seats:
            current = event.taken.get(seat)
            if current is None or current.booking_id != booking_id or current.kind is not ClaimKind.SOLD:
                event.taken[seat] = TakenSeat(seat, ClaimKind.HELD, fan, booking_id, now_us, expires_at_us)

    async def claim_best(self, claim: BestClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        check_name(claim.fan, "fan")
        check_name(claim.booking_id, "booking")
        event = self._filled_event(claim.event_id)
        layout = event.layouts[claim.section]
        taken = self._taken_in_section(event, claim.section, now_us)
        own = tuple(seat.seat for seat in taken if seat.booking_id == claim.booking_id)
        if own:
            return ClaimedSeats(own)
        states = bytearray(layout.size)
        for seat in taken:
            states[seat.seat - layout.base] = 1
        for grade in Grade:
            offsets = choose_seats(layout, states, claim.mask, claim.count, grade) if grade <= claim.worst else []
            if offsets:
                seats = tuple(layout.base + offset for offset in offsets)
                self._write(event, seats, claim.fan, claim.booking_id, now_us, claim.expires_at_us)
                return ClaimedSeats(seats)
        return ClaimRefused(tuple(taken))

    def _taken_in_section(self, event: _EventClaims, number: int, now_us: int) -> list[TakenSeat]:
        claims = (event.taken.get(seat) for seat in event.plan.section_range(number))
        return [seat for seat in claims if seat is not None and seat.live(now_us)]

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        event = self._event(event_id)
        freed = 0
        for seat in seats:
            current = event.taken.get(event.plan.check_index(seat))
            if current is not None and current.booking_id == booking_id:
                del event.taken[seat]
                freed += 1
        return freed

    async def put(self, event_id: str, seats: Sequence[TakenSeat], now_us: int) -> None:
        event = self._filled_event(event_id)
        event.taken.update({event.plan.check_index(seat.seat): seat for seat in seats})

    async def states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, TakenSeat]:
        event = self._filled_event(event_id)
        wanted = range(event.plan.size) if seats is None else seats
        found = ((seat, event.taken.get(seat)) for seat in wanted)
        return {seat: taken for seat, taken in found if taken is not None and taken.live(now_us)}

    async def map_states(self, event_id: str, now_us: int, seats: Sequence[int] | None = None) -> dict[int, SeatState]:
        return {seat: taken.state for seat, taken in (await self.states(event_id, now_us, seats)).items()}

    async def lost(self, event_id: str) -> bool:
        return not self._event(event_id).filled

    async def lost_among(self, event_ids: Sequence[str]) -> set[str]:
        return {event_id for event_id in event_ids if not self._event(event_id).filled}

    async def rebuild(self, event_id: str, read: Callable[[], AsyncIterator[TakenSeat]], now_us: int) -> bool:
        event = self._event(event_id)
        event.filled = False
        event.rebuilds += 1
        this_rebuild = event.rebuilds
        fresh: dict[int, TakenSeat] = {}
        async for seat in read():
            fresh[event.plan.check_index(seat.seat)] = seat
            if event.rebuilds != this_rebuild:
                return False
        if event.rebuilds != this_rebuild:
            return False
        event.taken, event.filled = fresh, True
        return True

    async def aclose(self) -> None:
        await asyncio.sleep(0)
