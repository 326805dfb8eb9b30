"""Reports to the waiting room which visits a live hold keeps and which ended with a completed purchase.

The ledger decides: every hold that was placed, extended, released, sold or ended, in any process, is found there. One
server per event compares, about once a second. A visit with a live hold is kept until the hold ends. When the hold
became tickets, the visit ends and its place is free for the next person. When it was released, declined or expired, the
visitor may continue choosing.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from frontrow.boxoffice.checkout.ports import KeptVisits
from frontrow.boxoffice.checkout.purchases import kept_until_s
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure

EVERY_S: Final = 1.0
IDLE_FACTOR: Final = 10  # at most a tenth of the time is spent comparing, unless that would be too seldom
MAX_PAUSE_S: Final = 3.0
AT_ONCE: Final = 100
MAX_HOLDS: Final = 20_000
BOUGHT: Final = frozenset({BookingState.CONFIRMED, BookingState.REFUNDED})


class VisitKeeper:
    """Keeps the waiting room's visits in step with the ledger's holds."""

    def __init__(self, ledger: Ledger, visits: KeptVisits, clock: Clock, events: Callable[[], Iterable[str]]) -> None:
        self._ledger, self._visits, self._clock, self._events = ledger, visits, clock, events
        self.failures = 0

    async def turn(self, event_id: str) -> None:
        """One comparison of one event's visits with its holds."""
        holds = await self._ledger.visit_holds(event_id, self._clock(), MAX_HOLDS)
        # Sorted by their ends: the last one keeps the visit.
        live = {visit: (kept_until_s(expires_at_us), hold) for visit, hold, expires_at_us in holds}
        kept = {visit: (until_s, hold) for visit, until_s, hold in await self._visits.kept(event_id)}
        changes = [self._visits.keep(visit, *hold) for visit, hold in live.items() if kept.get(visit) != hold]
        changes += [self._end_or_release(visit, kept[visit][1]) for visit in kept.keys() - live.keys()]
        await _run_together(changes)

    async def _end_or_release(self, visit: str, hold: str) -> None:
        """The hold that kept this visit has ended: so has the visit, if it became tickets. While slow money is awaited,
        the visit goes on for as long as its pass."""
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
                    try:
                        await self.turn(event_id)
                    except FrontrowError as error:  # ledger or store unavailable: the next turn tries again
                        note_failure(error, event_id=event_id)
            await asyncio.sleep(pause_after(time.monotonic() - began_s))


def pause_after(took_s: float) -> float:
    """How long to pause after a comparison that took so long: until the second is over, longer after a long one, and
    never so long that places in the shop stay empty."""
    return min(MAX_PAUSE_S, max(EVERY_S, IDLE_FACTOR * took_s))


async def _run_together(changes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Make all changes, many at a time: one after the other, a busy second's changes would take several."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def run_one(change: Coroutine[Any, Any, None]) -> None:
        async with slots:
            await change

    results = await asyncio.gather(*map(run_one, changes), return_exceptions=True)
    for failure in results:
        if isinstance(failure, BaseException):
            raise failure
