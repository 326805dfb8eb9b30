"""The ports of the gate: what it reads of the ledger."""

from typing import Protocol

from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.tickets.ports.tickets import TicketBook


class GateLedger(Protocol):
    """The parts of the ledger that gates read."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def tickets(self) -> TicketBook: ...

    async def live_bookings(self, event_id: str, after: str, limit: int) -> list[Booking]: ...
