"""The ports of tickets: who makes them, and the ledger's ticket book. The docstrings are the contract."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.gate.model.scans import DuplicateScan, Scan
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.tickets.model.tickets import NewTicket, Ticket


class TicketIssuer(Protocol):
    """Makes tickets. Pure and fast, no I/O, so it may be called while building the confirm."""

    def prepare(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        """`issue` without signatures. The tickets of a sale are signed when they are shown: it costs 40 us per seat."""
        ...

    def issue(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        """One signed ticket per seat of a booking about to be confirmed. Pass them to `Ledger.confirm(tickets=...)`.

        `rotating` is the event's setting (`Event.rotating_codes`), which is fixed once the event is published. The same
        booking (id, fence, seats) always gets the same tickets, byte for byte, so a repeated confirm and every message
        about it show the same QR code.
        """
        ...


class TicketReads(Protocol):
    """Read-only access to tickets and scans (`ledger.tickets`)."""

    async def ticket(self, ticket_id: str, event_id: str = "") -> Ticket | None:
        """The ticket, of any event or of this one. With the event it is found faster in a partitioned ledger."""
        ...

    async def tickets_of(self, booking_id: str) -> list[Ticket]:
        """All tickets of a booking, including revoked ones, ordered by seat."""
        ...

    async def name_of_buyer(self, booking_id: str) -> str:
        """The name that the buyer entered for the booking, or empty."""
        ...

    async def valid_tickets(self, event_id: str, after: int = -1, limit: int = 1_000) -> list[Ticket]:
        """The valid tickets of an event in the order of their seats, from after that seat on."""
        ...

    async def revoked_tickets(
        self, event_id: str, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[tuple[str, int]]:
        """The event's revocation list as (ticket id, revoked_at_us), oldest first; `after` is (revoked_at_us, id)."""
        ...

    async def duplicate_scans(self, event_id: str, after: int = 0, limit: int = 100) -> list[DuplicateScan]:
        """Tickets of the event that were admitted more than once."""
        ...

    async def conflicting_scans(self, event_id: str, limit: int = 100) -> list[Scan]:
        """First admissions of tickets that were revoked, before or after: the gate was offline."""
        ...


class TicketBook(TicketReads, Protocol):
    """Tickets and scans (`ledger.tickets`).

    Cancelling or refunding seats revokes their tickets in the same transaction.
    """

    async def record_scans(self, scans: Sequence[Scan]) -> list[DuplicateScan]:
        """Record scans of gates, in any order. Safe to repeat. Returns the tickets among them that were admitted more
        than once so far."""
        ...
