"""Tickets: scanned at the door, one per seat. Pure values; boxoffice.tickets makes and reads the signed code.

A ticket is issued as `valid` by the transaction that confirms its booking, and `revoked` by the one that returns the
seat. It never becomes valid again: the next buyer of the seat gets another ticket.
"""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

import msgspec

from frontrow.core.errors import NotFound, Refused
from frontrow.shared.ids import encode32

TICKET_ID_BYTES: Final = 16
TRANSFER_PREFIX: Final = "trf_"  # of the ids of transfers
_ID_CHARS: Final = 26


class TicketState(StrEnum):
    VALID = "valid"
    REVOKED = "revoked"


class Way(StrEnum):
    """Through a gate: in or out."""

    IN = "in"
    OUT = "out"


class NewTicket(msgspec.Struct, frozen=True, gc=False):
    """A ticket to be issued. The QR shows `code`."""

    id: str
    seat_index: int
    code: str


class Ticket(msgspec.Struct, frozen=True):
    """A ticket as stored in the ledger."""

    id: str
    booking_id: str
    event_id: str
    seat_index: int
    state: TicketState
    code: str
    issued_at_us: int
    changed_at_us: int
    scanned_at_us: int | None = None  # first admitted
    transfer_id: str = ""  # the transfer by which its holder got it; empty: the holder is the buyer
    left_at_us: int | None = None  # outside since then, with the right to come back

    @property
    def handed_over(self) -> bool:
        """Whether this is the revoked ticket of somebody who transferred it: its row names the transfer as booking."""
        return self.booking_id.startswith(TRANSFER_PREFIX)

    @property
    def inside(self) -> bool:
        return self.scanned_at_us is not None and self.left_at_us is None


class Scan(msgspec.Struct, frozen=True):
    """One admission at one gate, or one exit. The gate makes the `id`, so submitting a scan twice is harmless.

    Gates also exchange the seat and its fence, so that an older ticket of the seat is refused.
    """

    id: str
    event_id: str
    ticket_id: str
    gate: str
    at_us: int
    seat_index: int = -1
    fence: int = 0
    way: Way = Way.IN


class DuplicateScan(msgspec.Struct, frozen=True):
    """A ticket that was admitted more than once, with all its scans, earliest first."""

    ticket_id: str
    scans: tuple[Scan, ...]


class TicketNotFound(NotFound):
    code = "ticket_not_found"


class TicketScanned(Refused):
    """The ticket was admitted: its seat cannot be returned, refunded or moved."""

    code = "ticket_scanned"

    def __init__(self, booking_id: str, seats: Sequence[int]) -> None:
        super().__init__(
            "a ticket that was admitted cannot be returned; undo the admission at the door first",
            booking=booking_id,
        )
        self.booking_id, self.seats = booking_id, tuple(seats)


class TicketRevoked(Refused):
    """The ticket was cancelled or returned and is no longer valid."""

    code = "ticket_revoked"

    def __init__(self, ticket_id: str) -> None:
        super().__init__("this ticket was cancelled or returned", ticket=ticket_id)


class ReentryNotAllowed(Refused):
    """The event does not let people come back, so nobody is scanned at the exit."""

    code = "reentry_not_allowed"


def ticket_id_bytes(secret: bytes, booking_id: str, fence: int, seat_index: int) -> bytes:
    """The short form of a ticket id. The same booking and seat always have the same ticket.

    Booking, fence and seat are known to many (friends, members, receivers of webhooks); only the secret makes the id.
    """
    text = f"{booking_id}|{fence}|{seat_index}".encode()
    return hashlib.blake2b(text, key=secret, digest_size=TICKET_ID_BYTES).digest()


def ticket_id(short: bytes) -> str:
    """The id of a ticket as text."""
    return f"tkt_{encode32(int.from_bytes(short), _ID_CHARS)}"


def order_scans(scans: Iterable[Scan]) -> list[Scan]:
    """The scans of one ticket, earliest first. The same scan twice counts once."""
    return sorted({scan.id: scan for scan in scans}.values(), key=lambda scan: (scan.at_us, scan.id))


def later_than(scans: Sequence[Scan], at_us: int) -> int:
    """The time of a new scan: after all that are known of its ticket. Gates' clocks differ, and are corrected.
    A browser's clock has milliseconds."""
    return max(at_us, max((scan.at_us + 1_000 for scan in scans), default=0))


def find_duplicates(scans: Sequence[Scan]) -> list[DuplicateScan]:
    """The tickets admitted while they were inside, in any order of the scans. The same scan twice counts once."""
    by_ticket: dict[str, list[Scan]] = {}
    for scan in scans:
        by_ticket.setdefault(scan.ticket_id, []).append(scan)
    found = []
    for ticket, known in sorted(by_ticket.items()):
        ordered = order_scans(known)
        if any(one.way is Way.IN and after.way is Way.IN for one, after in pairwise(ordered)):
            found.append(DuplicateScan(ticket, tuple(one for one in ordered if one.way is Way.IN)))
    return found
