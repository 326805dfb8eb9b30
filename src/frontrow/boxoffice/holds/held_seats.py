"""What becomes of held seats: extended, given back, sold, ended. The ledger decides, claim store and map follow.

When the second step fails, nothing is wrong for long: the recovery service makes the claim store agree with the ledger.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.claims import SeatClaim, sold
from frontrow.boxoffice.model.holds import ExpiredHold
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock


class Watcher(Protocol):
    """Hears that seats of an event may have changed, for the map."""

    def __call__(self, event_id: str, seats: Sequence[int]) -> None: ...


class HeldSeats:
    """Moves of seats that are held already."""

    def __init__(
        self, sales: Sales, claims: SeatClaims, ledger: Ledger, clock: Clock, on_change: Watcher | None = None
    ) -> None:
        self._sales, self._claims, self._ledger, self._clock = sales, claims, ledger, clock
        self._on_change = on_change

    async def extend(self, booking_id: str, fence: int, expires_at_us: int) -> Booking:
        """A later end for a live hold: the ledger decides, the claim follows."""
        now_us = self._clock()
        booking = await self._ledger.extend_hold(booking_id, fence, now_us, expires_at_us)
        wish = SeatClaim(booking.event_id, booking.seats, booking.fan, booking.id, booking.hold_expires_at_us)
        await self._claims.claim(wish, now_us)
        self._sales.get(booking.event_id).seats.took(booking.seats, booking.fan, booking.hold_expires_at_us, now_us)
        return booking

    async def release(self, booking_id: str, fence: int) -> Booking:
        """The fan gives the seats back."""
        booking = await self._ledger.release_hold(booking_id, fence, self._clock())
        await self.freed(booking.event_id, booking.seats, booking.id)
        return booking

    async def sold(self, booking: Booking) -> None:
        """The ledger confirmed this booking: its seats are taken for good."""
        now_us = self._clock()
        seats = [sold(seat, booking.fan, booking.id, now_us) for seat in booking.seats]
        await self._claims.put(booking.event_id, seats, now_us)
        self._sales.get(booking.event_id).seats.took(booking.seats, booking.fan, 0, now_us)
        self._changed(booking.event_id, booking.seats)

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None:
        """The ledger ended this booking (released, expired, declined, cancelled, refunded): its seats are on sale."""
        await self._claims.release(event_id, seats, booking_id)
        self._sales.get(event_id).seats.freed(seats)
        self._changed(event_id, seats)

    async def expired(self, holds: Sequence[ExpiredHold]) -> None:
        """What the expiry service ended."""
        await asyncio.gather(*(self.freed(hold.event_id, hold.seats, hold.booking_id) for hold in holds))

    def _changed(self, event_id: str, seats: Sequence[int]) -> None:
        if self._on_change is not None:
            self._on_change(event_id, seats)
