"""What happens to seats that are already held: extended, released, sold or freed.

The ledger decides. The claim store, this server's seat cache and the map follow. If the second step fails, claim
recovery soon makes the claim store agree with the ledger again.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.claims import SeatClaim, sold_seat
from frontrow.boxoffice.model.holds import ExpiredHold
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock


class SeatChangeListener(Protocol):
    """Called when seats of an event may have changed, so that the map can be updated."""

    def __call__(self, event_id: str, seats: Sequence[int]) -> None: ...


class HeldSeats:
    """Extends and releases holds, and passes the ledger's decisions on to the claim store and the map."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        on_change: SeatChangeListener | None = None,
    ) -> None:
        self._sales, self._claims, self._ledger, self._clock = sales, claims, ledger, clock
        self._on_change = on_change

    async def extend(self, booking_id: str, fence: int, expires_at_us: int) -> Booking:
        """Move the end of a live hold to a later time."""
        now_us = self._clock()
        booking = await self._ledger.extend_hold(booking_id, fence, now_us, expires_at_us)
        claim = SeatClaim(booking.event_id, booking.seats, booking.fan, booking.id, booking.hold_expires_at_us)
        await self._claims.claim(claim, now_us)
        self._sales.get(booking.event_id).seats.mark_taken(
            booking.seats, booking.fan, booking.hold_expires_at_us, now_us
        )
        return booking

    async def release(self, booking_id: str, fence: int) -> Booking:
        """Give the seats of a hold back."""
        booking = await self._ledger.release_hold(booking_id, fence, self._clock())
        await self.freed(booking.event_id, booking.seats, booking.id)
        return booking

    async def sold(self, booking: Booking) -> None:
        """The ledger confirmed this booking: its seats are taken for good."""
        now_us = self._clock()
        seats = [sold_seat(seat, booking.fan, booking.id, now_us) for seat in booking.seats]
        await self._claims.put(booking.event_id, seats, now_us)
        self._sales.get(booking.event_id).seats.mark_taken(booking.seats, booking.fan, 0, now_us)
        self.notify_change(booking.event_id, booking.seats)

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None:
        """The ledger ended this booking (released, expired, declined, cancelled, refunded): its seats are on sale."""
        await self._claims.release(event_id, seats, booking_id)
        self._sales.get(event_id).seats.mark_free(seats)
        self.notify_change(event_id, seats)

    async def expired(self, holds: Sequence[ExpiredHold]) -> None:
        """The sweeper ended these holds."""
        await asyncio.gather(*(self.freed(hold.event_id, hold.seats, hold.booking_id) for hold in holds))

    def notify_change(self, event_id: str, seats: Sequence[int]) -> None:
        """Tell the map that these seats may have changed."""
        if self._on_change is not None:
            self._on_change(event_id, seats)
