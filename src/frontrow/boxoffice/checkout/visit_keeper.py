"""Tells the waiting room which visits a live hold keeps and which have ended because the purchase is complete.

The ledger decides: every hold that was placed, extended, released, sold or ended, in any process, is found there. One
server per event compares, about once a second. A visit with a live hold is kept until the hold ends. When the hold
became tickets, the visit ends and its place is free for the next person. When it was released, declined or expired, the
visitor may continue choosing.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from frontrow.boxoffice.checkout.purchases import kept_until_s
from frontrow.boxoffice.model.bookings import Booking, BookingState
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError

EVERY_S: Final = 1.0
IDLE_FACTOR: Final = 10  # at most a tenth of the time is spent comparing
MAX_HOLDS: Final = 20_000
BOUGHT: Final = frozenset({BookingState.CONFIRMED, BookingState.REFUNDED})


class KeptVisits(Protocol):
    """The visits of the waiting room, named as bookings name them (`Booking.session`)."""

    def is_mine(self, event_id: str) -> bool:
        """Whether this process keeps the visits of this event, and there are any."""

    async def kept(self, event_id: str) -> Sequence[tuple[str, int, str]]:
        """Each kept visit with its end in seconds and the booking that keeps it."""

    async def keep(self, visit: str, until_s: int, booking_id: str) -> None:
        """Keep the visit until `until_s` for this booking. 0 means that the booking keeps it no longer."""

    async def end(self, visit: str) -> None:
        """End the visit."""


class HoldLedger(Protocol):
    async def live_holds(self, event_id: str, now_us: int, limit: int) -> list[Booking]: ...

    async def booking(self, booking_id: str) -> Booking | None: ...


class VisitKeeper:
    """Keeps the waiting room's visits in step with the ledger's holds."""

    def __init__(
        self, ledger: HoldLedger, visits: KeptVisits, clock: Clock, events: Callable[[], Iterable[str]]
    ) -> None:
        self._ledger, self._visits, self._clock, self._events = ledger, visits, clock, events
        self.failures = 0

    async def turn(self, event_id: str) -> None:
        """One comparison of one event's visits with its holds."""
        live: dict[str, Booking] = {}
        for booking in await self._ledger.live_holds(event_id, self._clock(), MAX_HOLDS):
            if booking.session:
                live[booking.session] = booking  # sorted by their ends: the last one keeps the visit
        kept = {visit: (until_s, hold) for visit, until_s, hold in await self._visits.kept(event_id)}
        for visit, booking in live.items():
            if kept.get(visit) != (kept_until_s(booking), booking.id):
                await self._visits.keep(visit, kept_until_s(booking), booking.id)
        for visit in kept.keys() - live.keys():
            _, hold = kept[visit]
            booking_now = await self._ledger.booking(hold)
            if booking_now is not None and booking_now.state in BOUGHT:
                await self._visits.end(visit)
            else:
                await self._visits.keep(visit, 0, hold)

    async def run(self) -> None:
        """Compare repeatedly until cancelled."""
        while True:
            began_s = time.monotonic()
            for event_id in list(self._events()):
                if self._visits.is_mine(event_id):
                    with contextlib.suppress(FrontrowError):  # ledger or store unavailable: the next turn tries again
                        await self.turn(event_id)
            await asyncio.sleep(max(EVERY_S, IDLE_FACTOR * (time.monotonic() - began_s)))
