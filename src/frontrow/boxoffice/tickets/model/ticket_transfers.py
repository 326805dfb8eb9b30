"""The transfer of a ticket to somebody else, by e-mail: its states, bounds and errors.

sent -> accepted or withdrawn. The ticket stays with its sender until the recipient accepts. Accepting makes the old
code invalid and a new one valid, in one transaction. The booking, and with it the money, stays with the buyer: a
refund of a cancelled event goes to whoever paid.
"""

from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.errors import NotFound, Refused

DAY_US: Final = 86_400_000_000
TRANSFER_LIFE_US: Final = 7 * DAY_US  # for accepting; it also ends when the show starts
MAX_TRANSFERS_OF_SEAT: Final = 3  # accepted, per seat of a booking
MAX_SENT_PER_DAY: Final = 10  # per booking: each sends a mail to an address that the sender chose
MAX_RECEIVED_PER_DAY: Final = 20  # per address


class TransferState(StrEnum):
    SENT = "sent"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"


class Transfer(msgspec.Struct, frozen=True):
    """One ticket on its way to `email`. `ticket_id` is the ticket that the sender has, or had."""

    id: str
    booking_id: str
    event_id: str
    seat_index: int
    ticket_id: str
    fan: str  # of the booking
    email: str
    locale: str
    state: TransferState
    created_at_us: int
    expires_at_us: int
    from_transfer: str = ""  # the transfer by which the sender got the ticket; empty: the sender is the buyer
    new_ticket_id: str = ""
    name: str = ""  # that the recipient entered

    def open(self, now_us: int) -> bool:
        """Whether it can still be accepted."""
        return self.state is TransferState.SENT and now_us < self.expires_at_us


class HandOver(msgspec.Struct, frozen=True):
    """Accept a transfer: `ticket` replaces the sender's."""

    transfer_id: str
    ticket: NewTicket
    name: str
    locale: str
    now_us: int


class TransferNotFound(NotFound):
    code = "transfer_not_found"

    def __init__(self, transfer_id: str) -> None:
        super().__init__("there is no such transfer", transfer=transfer_id[:60])


class TransferRefused(Refused):
    """This ticket cannot be transferred, or not now. `reason` says why."""

    code = "transfer_refused"


class TicketTransferred(Refused):
    """The ticket belongs to somebody else now: its buyer can no longer return it."""

    code = "ticket_transferred"

    def __init__(self, booking_id: str) -> None:
        super().__init__("a ticket that was transferred cannot be returned by its buyer", booking=booking_id)
