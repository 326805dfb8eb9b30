"""The guest list of an event: what a gate needs to find a booking or a ticket's number without a network.

It has the valid tickets by booking, with their seats and the booking's add-ons. Names and hints of addresses are
personal data on devices that get lost: they are in it only if the organiser allows it for the event
(`Event.names_at_gates`).
"""

import asyncio
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import tag_of
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.gate.model.redemptions import Redemption, count_used, find_add_ons
from frontrow.boxoffice.gate.ports import GateLedger
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.model.messages import NOBODY, Buyer
from frontrow.boxoffice.pricing.model.prices import has_add_ons
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.core.errors import Overloaded

PAGE: Final = 5_000
MAX_PAGES: Final = 200


class GuestAddOn(msgspec.Struct, frozen=True):
    key: str
    name: str
    bought: int
    used: int


class Guest(msgspec.Struct, frozen=True):
    """Tickets of a booking that one person has: ids and seat indexes. Names are empty unless the event allows them."""

    booking: str
    tickets: tuple[tuple[str, int], ...]
    add_ons: tuple[GuestAddOn, ...] = ()
    name: str = ""
    email: str = ""  # the first letter and the domain


class GuestList(msgspec.Struct, frozen=True):
    """Who has valid tickets at a point in time. `names`: whether names are in it."""

    event_id: str
    at_us: int
    names: bool
    guests: tuple[Guest, ...]


def hinted_email(email: str) -> str:
    """Enough of an address to ask its owner for the rest."""
    local, at, domain = email.rpartition("@")
    return f"{local[:1]}…@{domain}" if at else ""


class GuestLists:
    """Makes the guest lists of events."""

    def __init__(self, ledger: GateLedger) -> None:
        self._ledger = ledger

    async def tag(self, event: Event) -> str:
        """The tag of a list's version. It changes with sales, refunds, revoked tickets and redemptions."""
        count, last_us = await self._ledger.organiser.revocation_mark(event.id)
        sold_us = (await self._ledger.figures.sold_span(event.id))[1]
        redeemed = await self._ledger.redemptions.redemption_mark(event.id)
        return tag_of(f"{event.id}\n{count}\n{last_us}\n{sold_us}\n{redeemed}\n{event.names_at_gates}")

    async def make(self, event: Event, now_us: int) -> GuestList:
        """The list as of now. `Overloaded` if the event has more tickets than a gate could keep."""
        tickets, redemptions = await self._tickets(event.id), await self._redemptions(event.id)
        guests: list[Guest] = []
        after = ""
        for _ in range(MAX_PAGES):
            page = await self._ledger.live_bookings(event.id, after, PAGE)
            sold = [one for one in page if one.state is BookingState.CONFIRMED]
            buyers = await self._ledger.organiser.buyers_of([one.fan for one in sold]) if event.names_at_gates else {}
            for booking, add_ons in zip(sold, await self._add_ons(sold, redemptions), strict=True):
                buyer = buyers.get(booking.fan, NOBODY)
                guests += await self._guests(event, booking, tickets.get(booking.id, []), buyer, add_ons)
            if len(page) < PAGE:
                break
            after = page[-1].id
        return GuestList(event.id, now_us, event.names_at_gates, tuple(guests))

    async def _guests(
        self, event: Event, booking: Booking, tickets: list[Ticket], buyer: Buyer, add_ons: tuple[GuestAddOn, ...]
    ) -> list[Guest]:
        """The buyer with the booking's add-ons, and each person who was sent a ticket."""
        own = tuple((one.id, one.seat_index) for one in tickets if not one.transfer_id)
        guests = [Guest(booking.id, own, add_ons, buyer.name, hinted_email(buyer.email))] if own or add_ons else []
        for one in tickets:
            if one.transfer_id:
                name, email = "", ""
                if event.names_at_gates and (transfer := await self._ledger.transfers.transfer(one.transfer_id)):
                    name, email = transfer.name, transfer.email
                guests.append(Guest(booking.id, ((one.id, one.seat_index),), (), name, hinted_email(email)))
        return guests

    async def _tickets(self, event_id: str) -> dict[str, list[Ticket]]:
        found: dict[str, list[Ticket]] = {}
        after = -1
        for _ in range(MAX_PAGES):
            page = await self._ledger.tickets.valid_tickets(event_id, after, PAGE)
            for one in page:
                found.setdefault(one.booking_id, []).append(one)
            if len(page) < PAGE:
                return found
            after = page[-1].seat_index
        raise Overloaded(f"more than {MAX_PAGES * PAGE:,} tickets of {event_id} are valid")

    async def _redemptions(self, event_id: str) -> dict[str, list[Redemption]]:
        found: dict[str, list[Redemption]] = {}
        after = ""
        for _ in range(MAX_PAGES):
            page = await self._ledger.redemptions.redemptions_of_event(event_id, after, PAGE)
            for one in page:
                found.setdefault(one.booking_id, []).append(one)
            if len(page) < PAGE:
                return found
            after = page[-1].id
        raise Overloaded(f"more than {MAX_PAGES * PAGE:,} add-ons of {event_id} are redeemed")

    async def _add_ons(
        self, bookings: list[Booking], redemptions: dict[str, list[Redemption]]
    ) -> list[tuple[GuestAddOn, ...]]:
        async def of(booking: Booking) -> tuple[GuestAddOn, ...]:
            if not has_add_ons(booking.price_lines):
                return ()
            refunds = await self._ledger.payments.refunds_of(booking.id)
            gone = add_ons_gone([decode_refund_lines(one.lines) for one in refunds])
            found = find_add_ons(booking, gone, count_used(redemptions.get(booking.id, [])))
            return tuple(GuestAddOn(one.key, one.name, one.bought, one.used) for one in found)

        return list(await asyncio.gather(*map(of, bookings)))  # at most PAGE; their reads are batched
