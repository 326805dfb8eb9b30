"""A visit ends soon after its purchase, also in a second in which hundreds buy (W14)."""

import asyncio
from collections.abc import Sequence

import pytest

from frontrow.boxoffice.checkout.visit_keeper import AT_ONCE, MAX_PAUSE_S, VisitKeeper, pause_after
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.holds import VisitHold
from frontrow.core.errors import Unavailable

EVENT = "evt_a"


def booking(number: int, state: BookingState = BookingState.HELD) -> Booking:
    return Booking(f"bkg_{number}", EVENT, "fan", state, 1, (number,), 0, "EUR", f"visit-{number}", 0, 0, 60_000_000)


class Ledger:
    """The holds of a ledger."""

    def __init__(self, *bookings: Booking) -> None:
        self.bookings = {one.id: one for one in bookings}

    async def visit_holds(self, event_id: str, now_us: int, limit: int) -> list[VisitHold]:
        live = [one for one in self.bookings.values() if one.state is BookingState.HELD]
        return [VisitHold(one.visit_id, one.id, one.hold_expires_at_us) for one in live[:limit]]

    async def booking(self, booking_id: str) -> Booking | None:
        return self.bookings.get(booking_id)


class Room:
    """The visits of a room behind a slow line: each change takes a round trip."""

    def __init__(self, broken: str = "") -> None:
        self.visits: dict[str, tuple[int, str]] = {}
        self.ended: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.broken = broken

    def is_mine(self, event_id: str) -> bool:
        return True

    async def kept(self, event_id: str) -> Sequence[tuple[str, int, str]]:
        return [(visit, until_s, hold) for visit, (until_s, hold) in self.visits.items()]

    async def keep(self, visit: str, until_s: int, booking_id: str) -> None:
        await self._round_trip(visit)
        self.visits[visit] = (until_s, booking_id)

    async def end(self, visit: str) -> None:
        await self._round_trip(visit)
        self.ended.add(visit)
        del self.visits[visit]

    async def _round_trip(self, visit: str) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if visit == self.broken:
            raise Unavailable("the store is away")


async def test_the_changes_of_a_busy_second_share_their_round_trips():
    ledger, room = Ledger(*map(booking, range(250))), Room()
    keeper = VisitKeeper(ledger, room, lambda: 0, lambda: [EVENT])
    await keeper.turn(EVENT)
    assert len(room.visits) == 250
    assert room.most_at_once == AT_ONCE, "as many as may be at once, and no more"
    ledger.bookings = {one.id: one for one in (booking(n, BookingState.CONFIRMED) for n in range(250))}
    room.most_at_once = 0
    await keeper.turn(EVENT)
    assert len(room.ended) == 250
    assert room.most_at_once > 1


async def test_one_change_that_fails_does_not_keep_the_others_from_being_made():
    ledger, room = Ledger(*map(booking, range(20))), Room(broken="visit-0")
    keeper = VisitKeeper(ledger, room, lambda: 0, lambda: [EVENT])
    with pytest.raises(Unavailable):
        await keeper.turn(EVENT)
    assert len(room.visits) == 19


def test_the_pause_grows_with_the_work_and_has_a_bound():
    assert [pause_after(took_s) for took_s in (0.0, 0.1, 0.2, 5.0)] == [1.0, 1.0, 2.0, MAX_PAUSE_S]
