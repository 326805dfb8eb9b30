"""The listener that is called when the ledger has sold or freed seats. It updates the claim store and the seat map."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.holds.model.bookings import Booking


class SeatListener(Protocol):
    """Follows the ledger. If a call fails, recovery makes the claim store agree later."""

    async def sold(self, booking: Booking) -> None: ...

    async def held_longer(self, booking: Booking) -> None:
        """The hold of these seats ends later now."""
        ...

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None: ...
