"""Transfers a ticket to somebody else by e-mail (ADR 0151).

The recipient gets a link and accepts. Until then the sender's ticket is valid and the transfer can be withdrawn. The
new ticket's id is random: neither the sender nor anybody who knows the booking can guess it at the gate.
"""

import secrets

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.people.model.email_addresses import checked_email
from frontrow.boxoffice.people.model.person_names import clean_name
from frontrow.boxoffice.tickets.model.ticket_transfers import (
    TRANSFER_LIFE_US,
    HandOver,
    Transfer,
    TransferNotFound,
    TransferRefused,
    TransferState,
)
from frontrow.boxoffice.tickets.model.tickets import TICKET_ID_BYTES, Ticket, TicketNotFound, TicketState
from frontrow.boxoffice.tickets.ports.ledger import TicketLedger
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.core.clock import Clock
from frontrow.shared.ids import Ids


class TicketTransfers:
    """Sends tickets to other people and hands them over."""

    def __init__(self, ledger: TicketLedger, issuer: Issuer, clock: Clock, ids: Ids) -> None:
        self._ledger, self._issuer, self._clock, self._ids = ledger, issuer, clock, ids

    async def send(
        self, booking: Booking, seat_index: int, email: str, locale: str, from_transfer: str = ""
    ) -> Transfer:
        """Send the ticket of this seat to the address. `from_transfer` is how the sender got it if they did not buy it.

        The caller has checked that the ticket is the sender's.
        """
        now_us, event = self._clock(), await self._ledger.catalogue.event(booking.event_id)
        check_transferable(event, now_us)
        ticket = await self._ticket(booking.id, seat_index)
        new = Transfer(
            self._ids.new("trf"),
            booking.id,
            booking.event_id,
            seat_index,
            ticket.id,
            booking.fan,
            checked_email(email),
            locale,
            TransferState.SENT,
            now_us,
            min(now_us + TRANSFER_LIFE_US, event.starts_at_us),
            from_transfer,
        )
        return await self._ledger.transfers.send(new)

    async def accept(self, transfer_id: str, name: str, locale: str) -> Transfer:
        """Make the ticket the recipient's. Accepting twice changes nothing."""
        transfer = await self._ledger.transfers.transfer(transfer_id)
        if transfer is None:
            raise TransferNotFound(transfer_id)
        if transfer.state is TransferState.ACCEPTED:
            return transfer
        now_us, event = self._clock(), await self._ledger.catalogue.event(transfer.event_id)
        check_transferable(event, now_us)
        old, booking = (
            await self._ledger.tickets.ticket(transfer.ticket_id),
            await self._ledger.booking(transfer.booking_id),
        )
        if old is None or booking is None:
            raise BookingNotFound(transfer.booking_id)
        ticket = self._issuer.issue_again(booking, old, secrets.token_bytes(TICKET_ID_BYTES))
        ask = HandOver(transfer.id, ticket, clean_name(name), locale, now_us)
        return await self._ledger.transfers.accept(ask)

    async def withdraw(self, booking: Booking, transfer_id: str) -> Transfer:
        """End a transfer of this booking that nobody has accepted yet."""
        transfer = await self._ledger.transfers.transfer(transfer_id)
        if transfer is None or transfer.booking_id != booking.id:
            raise TransferNotFound(transfer_id)
        return await self._ledger.transfers.withdraw(transfer_id, self._clock())

    async def _ticket(self, booking_id: str, seat_index: int) -> Ticket:
        for ticket in await self._ledger.tickets.tickets_of(booking_id):
            if ticket.seat_index == seat_index and ticket.state is TicketState.VALID:
                return ticket
        raise TicketNotFound("this booking has no such ticket", booking=booking_id)


def check_transferable(event: Event, now_us: int) -> None:
    """Raise `TransferRefused` unless tickets of the event can be transferred at `now_us`."""
    if not event.transfers_allowed:
        raise TransferRefused(f"tickets of {event.name} cannot be transferred", reason="forbidden")
    if event.status not in (EventStatus.ON_SALE, EventStatus.SOLD_OUT) or now_us >= event.starts_at_us:
        raise TransferRefused(f"tickets of {event.name} can no longer be transferred", reason="over")
