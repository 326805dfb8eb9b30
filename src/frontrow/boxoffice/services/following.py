"""Follows the catalogue in a process that serves no pages: the events on sale and their plans, for the waitlist's jobs.

A bounded look every second; what fails is tried again in the next. Claims learn the plan and are filled from the ledger
where they are lost.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.holds import ExpiredHold
from frontrow.boxoffice.plans.reading import from_bytes
from frontrow.boxoffice.ports import Catalogue, SeatClaims
from frontrow.boxoffice.services.held import HeldSeats
from frontrow.boxoffice.services.recovery import Recovery
from frontrow.boxoffice.services.sales import Sales
from frontrow.boxoffice.services.waitlist import SERVED
from frontrow.core.errors import FrontrowError

EVERY_S: Final = 1.0
PAGE: Final = 200
MAX_PAGES: Final = 50


class Following:
    """Keeps `sales` as the catalogue says."""

    def __init__(
        self, catalogue: Catalogue, sales: Sales, claims: SeatClaims, recovery: Recovery, *, every_s: float = EVERY_S
    ) -> None:
        self._catalogue, self._sales, self._claims, self._recovery = catalogue, sales, claims, recovery
        self._every_s = every_s
        self._known: dict[str, Event] = {}
        self.failures = 0

    async def look(self) -> None:
        """Open what is sold, take over what changed, close what is over."""
        after = (-1, "")
        for _ in range(MAX_PAGES):
            page = await self._catalogue.events(None, after, PAGE)
            for event in page:
                if event != self._known.get(event.id):
                    await self._see(event)
            if len(page) < PAGE:
                return
            after = (page[-1].starts_at_us, page[-1].id)

    async def _see(self, event: Event) -> None:
        if event.status not in SERVED:
            self._sales.close(event.id)
            self._known[event.id] = event
            return
        document = await self._catalogue.plan_document(event.plan_hash)
        if document is None:  # not sold by its plan here: nothing to offer
            return
        plan = await asyncio.to_thread(from_bytes, document.encode())
        self._claims.learn(event.id, plan)
        await asyncio.to_thread(self._sales.open, event, plan)
        await self._recovery.check(event.id)
        self._known[event.id] = event

    async def run(self) -> None:
        """Look again and again, and keep the claims true, until cancelled."""
        await self._try()
        await self._recovery.start()
        try:
            while True:  # until cancelled
                await asyncio.sleep(self._every_s)
                await self._try()
        finally:
            await self._recovery.stop()

    async def _try(self) -> None:
        try:
            await self.look()
        except FrontrowError:
            self.failures += 1


class FollowedSeats(HeldSeats):
    """Held seats of events this process may not know (yet): the ledger has spoken, and recovery tells the claims."""

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None:
        if event_id in set(self._sales):
            await super().freed(event_id, seats, booking_id)

    async def expired(self, holds: Sequence[ExpiredHold]) -> None:
        with contextlib.suppress(FrontrowError):  # they are ended whatever the claim store says
            await super().expired(holds)
