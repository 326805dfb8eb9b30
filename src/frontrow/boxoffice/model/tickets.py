"""Tickets: what is scanned at the door, one per seat. Pure values; boxoffice.tickets makes and reads the signed code.

A ticket is born `valid` in the transaction that confirms its booking and ends `revoked` in the one that gives the seat
back; it never becomes valid again: who buys the seat next gets another ticket.
"""

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import NotFound, Refused
from frontrow.core.ids import encode32

TICKET_ID_BYTES: Final = 16
_ID_CHARS: Final = 26


class TicketState(StrEnum):
    VALID = "valid"
    REVOKED = "revoked"


class NewTicket(msgspec.Struct, frozen=True, gc=False):
    """A ticket about to be issued: `code` is what the QR shows."""

    id: str
    seat_index: int
    code: str


class Ticket(msgspec.Struct, frozen=True):
    """A ticket as the ledger has it."""

    id: str
    booking_id: str
    event_id: str
    seat_index: int
    state: TicketState
    code: str
    issued_at_us: int
    changed_at_us: int
    scanned_at_us: int | None = None


class Scan(msgspec.Struct, frozen=True):
    """One admission at one gate. `id` is made by the gate, so handing a scan in twice is harmless.

    Gates also tell each other the seat and its fence, so that an older ticket of the seat stays outside.
    """

    id: str
    event_id: str
    ticket_id: str
    gate: str
    at_us: int
    seat_index: int = -1
    fence: int = 0


class DuplicateScan(msgspec.Struct, frozen=True):
    """A ticket that was let in more than once, with all its scans, earliest first."""

    ticket_id: str
    scans: tuple[Scan, ...]


class TicketNotFound(NotFound):
    code = "ticket_not_found"


class TicketScanned(Refused):
    """Somebody is inside with this ticket: its seat can be neither given back, nor refunded, nor moved."""

    code = "ticket_scanned"

    def __init__(self, booking_id: str, seats: Sequence[int]) -> None:
        super().__init__(
            "a ticket that was let in cannot be given back; take the admission back at the door first",
            booking=booking_id,
        )
        self.booking_id, self.seats = booking_id, tuple(seats)


class TicketRevoked(Refused):
    """The ticket was cancelled or given back, perhaps a moment ago: it lets nobody in."""

    code = "ticket_revoked"

    def __init__(self, ticket_id: str) -> None:
        super().__init__("this ticket was cancelled or given back", ticket=ticket_id)


def ticket_id_bytes(booking_id: str, fence: int, seat_index: int) -> bytes:
    """The ticket's id in its short form: the same booking and seat always have the same ticket."""
    return hashlib.blake2b(f"{booking_id}|{fence}|{seat_index}".encode(), digest_size=TICKET_ID_BYTES).digest()


def ticket_id(short: bytes) -> str:
    """The id as people and the ledger write it."""
    return f"tkt_{encode32(int.from_bytes(short), _ID_CHARS)}"


def duplicates(scans: Sequence[Scan]) -> list[DuplicateScan]:
    """Tickets with more than one admission, whatever order the gates handed them in; the same scan twice is one."""
    of_ticket: dict[str, dict[str, Scan]] = {}
    for scan in scans:
        of_ticket.setdefault(scan.ticket_id, {})[scan.id] = scan
    return [
        DuplicateScan(ticket, tuple(sorted(found.values(), key=lambda scan: (scan.at_us, scan.id))))
        for ticket, found in sorted(of_ticket.items())
        if len(found) > 1
    ]
