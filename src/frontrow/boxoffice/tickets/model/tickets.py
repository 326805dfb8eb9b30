"""Tickets: scanned at the gate, one per seat. Pure values; boxoffice.tickets makes and reads the signed code.

A ticket is issued as `valid` by the transaction that confirms its booking, and `revoked` by the one that returns the
seat. It never becomes valid again: the next buyer of the seat gets another ticket. A `Sheet` is a ticket as its holder
sees it, for the PDF, the calendar and wallets.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW
from frontrow.boxoffice.seats.model.seat_names import seat_parts, seat_text
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import NotFound, Refused
from frontrow.shared.ids import encode32
from frontrow.shared.local_time import local_time
from frontrow.shared.money import Money

TICKET_ID_BYTES: Final = 16
TRANSFER_PREFIX: Final = "trf_"  # of the ids of transfers
_ID_CHARS: Final = 26


class TicketState(StrEnum):
    VALID = "valid"
    REVOKED = "revoked"


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


class TicketNotFound(NotFound):
    code = "ticket_not_found"


class TicketScanned(Refused):
    """The ticket was admitted: its seat cannot be returned, refunded or moved."""

    code = "ticket_scanned"

    def __init__(self, booking_id: str, seats: Sequence[int]) -> None:
        super().__init__(
            "a ticket that was admitted cannot be returned; undo the admission at the gate first",
            booking=booking_id,
        )
        self.booking_id, self.seats = booking_id, tuple(seats)


class TicketRevoked(Refused):
    """The ticket was cancelled or returned and is no longer valid."""

    code = "ticket_revoked"

    def __init__(self, ticket_id: str) -> None:
        super().__init__("this ticket was cancelled or returned", ticket=ticket_id)


def ticket_id_bytes(secret: bytes, booking_id: str, fence: int, seat_index: int) -> bytes:
    """The short form of a ticket id. The same booking and seat always have the same ticket.

    Booking, fence and seat are known to many (friends, members, receivers of webhooks); only the secret makes the id.
    """
    text = f"{booking_id}|{fence}|{seat_index}".encode()
    return hashlib.blake2b(text, key=secret, digest_size=TICKET_ID_BYTES).digest()


def ticket_id(short: bytes) -> str:
    """The id of a ticket as text."""
    return f"tkt_{encode32(int.from_bytes(short), _ID_CHARS)}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One ticket as its holder sees it."""

    ticket_id: str
    code: str
    seat: str
    event_id: str
    event_name: str
    venue_name: str
    city: str
    time_zone: str
    starts_at_us: int
    ends_at_us: int
    booking_id: str
    issued_at_us: int
    rotating: bool = False
    name: str = ""  # of the buyer
    scanned_at_us: int | None = None  # when it was admitted at the gate
    type_name: str = ""  # of the ticket type, such as Child
    price: Money | None = None  # with its fees, as the buyer paid it
    named: tuple[str, str, str] | None = None  # section, row and number as the organiser calls them
    transfer_id: str = ""  # the transfer by which its holder got it; empty: the holder is the buyer
    add_ons: tuple[str, ...] = ()  # of the whole booking, by name: ("2 × Dinner",); a transferred ticket has none

    @property
    def place(self) -> str:
        return ", ".join(part for part in (self.venue_name, self.city) if part)

    @property
    def parts(self) -> tuple[str, str, str]:
        """Section, row and number of the seat, by their names."""
        return self.named or seat_parts(self.seat)

    def seat_text(self, language: str = "en") -> str:
        """The name of the seat."""
        return seat_text(self.parts, language)

    def seat_words(self, words: Mapping[str, str]) -> list[tuple[str, str]]:
        """Section, row and seat with their labels. Parts that the seat name does not have are left out."""
        section, row, number = self.parts
        if row == AREA_ROW:
            return [(words["section"], section), (words["standing_place"], number)]
        parts = zip(("section", "row", "seat"), (section, row, number), strict=True)
        return [(words[label], part) for label, part in parts if part]

    @property
    def starts_at(self) -> datetime:
        return local_time(self.starts_at_us, self.time_zone)

    @property
    def ends_at(self) -> datetime:
        """The end of the show, or three hours after its start when no end is set."""
        return local_time(self.ends_at_us or self.starts_at_us + 3 * 3600 * US_PER_S, self.time_zone)
