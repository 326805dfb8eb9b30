"""Callers that hold and sell against a ledger, and what must be in it afterwards."""

import asyncio

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.core.errors import Unavailable
from tests.support.eventually import eventually

NOW_US = 1_700_000_000_000_000
CALLERS = 64


def wish(number: int) -> NewHold:
    return NewHold(f"bkg_{number:08d}", "evt", f"fan_{number}", (number,), NOW_US, NOW_US + 600_000_000, cap=4)


class Load:
    """Callers that hold and sell; keeps what was acknowledged."""

    def __init__(self, ledger: SqlLedger) -> None:
        self.ledger = ledger
        self.held: dict[str, int] = {}
        self.confirmed: dict[str, int] = {}
        self.lost = 0
        self.answered = 0
        self._numbers = iter(range(1_000_000))
        self._stop = False
        self._tasks = [asyncio.create_task(self._caller()) for _ in range(CALLERS)]

    async def _caller(self) -> None:
        while not self._stop:
            number = next(self._numbers)
            booking_id = f"bkg_{number:08d}"
            try:
                hold = await self.ledger.place_hold(wish(number))
                self.held[booking_id] = hold.fence
                self.answered += 1
                await self.ledger.begin_payment(booking_id, hold.fence, NOW_US)
                await self.ledger.confirm(booking_id, hold.fence, NOW_US)
                self.confirmed[booking_id] = hold.fence
            except Unavailable:
                self.lost += 1

    async def until_confirmed(self, count: int, bound_s: float = 60.0) -> None:
        await eventually(lambda: len(self.confirmed), bound_s, until=lambda confirmed: confirmed >= count)

    async def stop(self) -> None:
        self._stop = True
        await asyncio.gather(*self._tasks)


async def assert_all_there(ledger: SqlLedger, held: dict[str, int], confirmed: dict[str, int]) -> None:
    assert len(held) >= len(confirmed) > 0
    for booking_id, fence in held.items():
        booking = await ledger.booking(booking_id)
        assert booking is not None, f"{booking_id} was acknowledged and is lost"
        assert booking.fence == fence
        if booking_id in confirmed:
            assert booking.state is BookingState.CONFIRMED
    wrong, _ = await verify(ledger.store)
    assert wrong == []
