"""The ports of the gate: scans, and which books gates use."""

from collections.abc import Sequence
from typing import Any, Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.gate.model.redemptions import Redeemed, Redemption
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.messages.model.messages import Buyer
from frontrow.boxoffice.organiser.ports.figures import FiguresBook
from frontrow.boxoffice.payments.ports import PaymentBook
from frontrow.boxoffice.tickets.ports.tickets import TicketBook
from frontrow.boxoffice.tickets.ports.transfers import TransferBook


class ScanReads(Protocol):
    """Read-only access to admissions and exits (`ledger.organiser`)."""

    async def known_tickets(self, event_id: str, ticket_ids: Sequence[str]) -> dict[str, str]:
        """The states of those of the tickets that the event has, by id."""
        ...

    async def admissions(self, event_id: str, after: int, limit: int) -> list[tuple[int, Scan]]:
        """Admissions of an event in the order in which they were recorded, from after that number on."""
        ...

    async def revocation_mark(self, event_id: str) -> tuple[int, int]:
        """(number of revoked tickets, time of the last revocation): it changes with every revocation."""
        ...

    async def buyers_of(self, fans: Sequence[str]) -> dict[str, Buyer]:
        """Name and address per fan, for those who gave any."""
        ...

    async def gate_counts(self, event_id: str) -> list[Sequence[Any]]:
        """(gate, scans, tickets, first, last, exits) per gate."""
        ...

    async def gate_totals(self, event_id: str) -> tuple[int, int, int]:
        """The number of valid tickets, of those inside, and of those that have left and may come back."""
        ...


class ScanBook(ScanReads, Protocol):
    """Admissions and exits at the gates of an event (`ledger.organiser`)."""

    async def admit(self, scan: Scan, *, again: bool = False) -> list[Scan]:
        """Admit a ticket once, or (`again`) once more after each exit. Returns its earlier admissions; an empty list
        means this scan admitted it. Safe to repeat.

        `TicketRevoked` when the ticket is no longer valid: given back, refunded or moved.
        """
        ...

    async def let_out(self, scan: Scan) -> bool:
        """Let a ticket out. False when it is not inside. Safe to repeat."""
        ...

    async def undo_admission(self, scan_id: str, ticket_id: str, change: Change) -> bool:
        """Undo one scan, with a note. The ticket may be admitted again unless it has another scan."""
        ...


class RedemptionReads(Protocol):
    """Read-only access to add-ons that were handed out (`ledger.redemptions`)."""

    async def redemptions_of(self, booking_id: str) -> list[Redemption]:
        """The redemptions of a booking, the earliest first, with those that were undone or refused."""
        ...

    async def redemptions_of_event(self, event_id: str, after: str, limit: int) -> list[Redemption]:
        """The redemptions of an event in the order of their ids, from after `after` on."""
        ...

    async def redemption_mark(self, event_id: str) -> tuple[int, int, int]:
        """(number of redemptions, time of the last, time of the last undone one): it changes with each of them."""
        ...


class RedemptionBook(RedemptionReads, Protocol):
    """Add-ons that were handed out at the gates of an event (`ledger.redemptions`)."""

    async def redeem(self, redemption: Redemption, *, offline: bool = False) -> Redeemed:
        """Hand out some of an add-on: at most what the booking bought and was not refunded, whoever else asks. Safe to
        repeat. `offline`: it has happened; if it was not possible, it is recorded as refused.

        `BookingNotFound` if the event has no such booking, `InvalidInput` if the id is another redemption's.
        """
        ...

    async def undo(self, redemption_id: str, change: Change) -> bool:
        """Take one redemption back, with a note. False when there is none, or it was undone before."""
        ...


class GateLedger(Ledger, Protocol):
    """The ledger as gates use it."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def figures(self) -> FiguresBook: ...

    @property
    def organiser(self) -> ScanBook: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def redemptions(self) -> RedemptionBook: ...

    @property
    def tickets(self) -> TicketBook: ...

    @property
    def transfers(self) -> TransferBook: ...
