"""Keeps the sales of a process that serves no pages in step with the catalogue, for the waitlist's jobs.

The claim store learns each event's plan and is filled from the ledger where its claims were lost. An event that is over
is closed.
"""

import asyncio
import contextlib
from collections.abc import Sequence

from frontrow.boxoffice.events.catalogue_follower import POLL_EVERY_S, CatalogueFollower
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ExpiredHold
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import FrontrowError


class SalesFollower:
    """Opens, updates and closes the sales of this process as the catalogue changes."""

    def __init__(
        self,
        catalogue: Catalogue,
        sales: Sales,
        claims: SeatClaims,
        recovery: Recovery,
        *,
        every_s: float = POLL_EVERY_S,
    ) -> None:
        self._catalogue, self._sales, self._claims, self._recovery = catalogue, sales, claims, recovery
        self._plans: dict[str, Plan] = {}
        self.follower = CatalogueFollower(catalogue, self._open, self._close, every_s=every_s)

    async def sync(self) -> None:
        """Read the catalogue once: open what is on sale, update what changed, close what is over."""
        await self.follower.sync()

    async def _open(self, event: Event) -> None:
        plan = await self._plan(event)
        if plan is None:  # this event is not sold by a plan: there is nothing to offer
            return
        self._claims.learn(event.id, plan)
        await asyncio.to_thread(self._sales.open, event, plan)
        await self._recovery.check(event.id)

    async def _plan(self, event: Event) -> Plan | None:
        plan = self._plans.get(event.plan_hash)
        if plan is None:
            document = await self._catalogue.plan_document(event.plan_hash)
            if document is not None:
                plan = self._plans[event.plan_hash] = await asyncio.to_thread(decode_plan, document.encode())
        return plan

    async def _close(self, event_id: str, event: Event) -> None:
        self._sales.close(event_id)
        self._claims.forget(event_id)
        used = {self._sales.get(one).event.plan_hash for one in self._sales}
        self._plans = {plan_hash: plan for plan_hash, plan in self._plans.items() if plan_hash in used}

    async def run(self) -> None:
        """Follow the catalogue and recover lost claims until cancelled."""
        with contextlib.suppress(FrontrowError):
            await self.sync()
        await self._recovery.start()
        try:
            await self.follower.run()
        finally:
            await self._recovery.stop()


class FollowedSeats:
    """Passes sold and freed seats on, for events that this process may not have open.

    The ledger has decided already. For an event that is not open here, recovery updates the claim store later.
    """

    def __init__(self, sales: Sales, seats: SeatListener) -> None:
        self._sales, self._seats = sales, seats

    async def sold(self, booking: Booking) -> None:
        await self._seats.sold(booking)

    async def held_longer(self, booking: Booking) -> None:
        await self._seats.held_longer(booking)

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None:
        """The ledger ended this booking."""
        if event_id in set(self._sales):
            await self._seats.freed(event_id, seats, booking_id)

    async def expired(self, holds: Sequence[ExpiredHold]) -> None:
        """Free the seats of expired holds."""
        with contextlib.suppress(FrontrowError):  # the holds have ended whatever the claim store says
            await asyncio.gather(*(self.freed(hold.event_id, hold.seats, hold.booking_id) for hold in holds))
