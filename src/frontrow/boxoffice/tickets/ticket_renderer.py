"""Renders the tickets of a booking as QR, PDF and calendar entry, when somebody asks for them.

What a ticket's code says was stored by the transaction that confirmed the booking. Signing it gives the same code each
time, so every rendering shows the same ticket. PDFs are drawn beside the event loop and cached.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.event_art import Art, EventArt
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.organiser.model.brands import Brand, TicketLook, ticket_look
from frontrow.boxoffice.pricing.model.booking_choices import type_names
from frontrow.boxoffice.pricing.model.prices import LineKind, decode_lines, has_add_ons, ticket_prices
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines, kept_lines
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.model.seat_names import SeatLabels, seat_name
from frontrow.boxoffice.seats.model.venues import Plan, Venue
from frontrow.boxoffice.texts.locale_formats import language_of
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets.calendar_entry import calendar_entry
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer
from frontrow.boxoffice.tickets.model.tickets import Sheet, Ticket, TicketNotFound, TicketState
from frontrow.boxoffice.tickets.ports.ledger import TicketLedger
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import (
    is_rotating,
    shown_code,
    signed_code,
)
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.shared.money import Money

MAX_PLANS: Final = 64  # whose seat names are cached


class SoldBooking(msgspec.Struct, frozen=True):
    """A booking and what its tickets, its receipt and messages about it show, read once for all of them."""

    booking: Booking
    event: Event
    venue: Venue | None
    buyer: str


class TicketRenderer:
    """Renders tickets for their holders."""

    def __init__(self, ledger: TicketLedger, keys: TicketKeys, work: HeavyWork | None = None) -> None:
        self._ledger, self._keys = ledger, keys
        work = work or HeavyWork()
        self.drawings, self.art = TicketDrawings(work), EventArt(ledger.pictures, work)
        self._names_by_plan: dict[str, tuple[tuple[str, ...], SeatLabels]] = {}
        self._reading = asyncio.Lock()

    async def look_up(self, booking_id: str) -> SoldBooking | None:
        """The booking with its event, venue and buyer."""
        booking = await self._ledger.booking(booking_id)
        if booking is None:
            return None
        event = await self._ledger.catalogue.event(booking.event_id)
        venue = await self._ledger.catalogue.venue(event.venue_id)
        return SoldBooking(booking, event, venue, await self._ledger.tickets.name_of_buyer(booking_id))

    async def sheets(
        self, booking_id: str, transfer: Transfer | None = None, sold: SoldBooking | None = None
    ) -> list[Sheet]:
        """The valid tickets of a booking that its buyer has, or the one that this transfer brought, ready to print.

        `sold` is the booking, if the caller has looked it up.
        """
        transfer_id = transfer.id if transfer is not None else ""
        tickets = [
            ticket
            for ticket in await self._ledger.tickets.tickets_of(booking_id)
            if ticket.state is TicketState.VALID and ticket.transfer_id == transfer_id
        ]
        sold = (sold or await self.look_up(booking_id)) if tickets else None
        if sold is None:
            return []
        event, venue, lines = sold.event, sold.venue, sold.booking.price_lines
        seats, labels = await self._names(event)
        name = sold.buyer if transfer is None else transfer.name
        types = type_names(event, lines, [ticket.seat_index for ticket in tickets])
        prices = ticket_prices(decode_lines(lines)) if transfer is None else {}  # only the buyer sees the price
        currency = sold.booking.currency
        add_ons = await self._add_ons(sold.booking) if transfer is None else ()
        return [
            _sheet(
                self.signed(ticket),
                event,
                venue,
                seat_name(seats, ticket.seat_index),
                labels,
                name,
                types.get(ticket.seat_index, ""),
                Money(prices[ticket.seat_index], currency) if ticket.seat_index in prices else None,
                add_ons,
            )
            for ticket in tickets
        ]

    async def _add_ons(self, booking: Booking) -> tuple[str, ...]:
        """The add-ons that a booking still has, by name."""
        if not has_add_ons(booking.price_lines):
            return ()
        refunds = await self._ledger.payments.refunds_of(booking.id)
        gone = add_ons_gone([decode_refund_lines(one.lines) for one in refunds])
        lines = [line for line in kept_lines(booking, gone) if line.kind is LineKind.ADD_ON]
        return tuple(f"{line.quantity} × {line.name}" for line in lines)

    async def pdf(self, booking_id: str, *, locale: str = "en", transfer: Transfer | None = None) -> bytes:
        return await self._draw(await self._need_sheets(booking_id, transfer), locale, Urgency.SOMEBODY_WAITS)

    async def pdf_for_mail(self, sheets: list[Sheet], locale: str) -> bytes:
        """The PDF of these tickets as a mail brings it. Downloads have priority."""
        return await self._draw(sheets, locale, Urgency.MAIL)

    async def _draw(self, sheets: list[Sheet], locale: str, urgency: Urgency) -> bytes:
        language, printed = language_of(locale), tuple(sheets)
        event = await self._ledger.catalogue.event(printed[0].event_id)
        look = await self.look_of(event, urgency)
        return await self.drawings.draw((language, printed, look), urgency, draw_tickets, printed, language, look)

    async def look_of(self, event: Event, urgency: Urgency = Urgency.SOMEBODY_WAITS) -> TicketLook:
        """The look of the tickets: the event's picture and colour, with the brand of who sells it."""
        brand = await self._ledger.brands.of(event.organiser_id) if event.organiser_id else None
        brand = brand or Brand(event.organiser_id)
        logo = await self._ledger.pictures.find(brand.logo.hash) if brand.logo is not None else None
        art = await self.art.find(event, urgency) or Art("", b"")
        return ticket_look(brand, logo or b"", art.colour, art.picture)

    async def calendar(self, booking_id: str, transfer: Transfer | None = None, language: str = "en") -> bytes:
        return calendar_entry(await self._need_sheets(booking_id, transfer), language)

    async def qr_png(self, ticket_id: str, now_us: int) -> bytes:
        """The QR to show now, with the rotating part if the ticket has one."""
        return qr.png(await self.shown_code(ticket_id, now_us))

    async def shown_code(self, ticket_id: str, now_us: int) -> str:
        """The code that the QR of a valid ticket shows now."""
        ticket = await self._ledger.tickets.ticket(ticket_id)
        if ticket is None or ticket.state is not TicketState.VALID:
            raise TicketNotFound(f"there is no valid ticket {ticket_id}", ticket=ticket_id)
        return shown_code(self.signed(ticket).code, self._keys.rotating_secret(ticket.event_id), now_us)

    def signed(self, ticket: Ticket) -> Ticket:
        """The ticket with its signed code."""
        return msgspec.structs.replace(ticket, code=signed_code(ticket.code, self._keys))

    async def _need_sheets(self, booking_id: str, transfer: Transfer | None = None) -> list[Sheet]:
        sheets = await self.sheets(booking_id, transfer)
        if not sheets:
            raise BookingNotFound(booking_id)
        return sheets

    async def seat_names(self, event: Event) -> tuple[str, ...]:
        """The seat ids of the event's plan, by index."""
        return (await self._names(event))[0]

    async def seat_labels(self, event: Event) -> SeatLabels:
        """How people call the seats of the event's plan."""
        return (await self._names(event))[1]

    async def _names(self, event: Event) -> tuple[tuple[str, ...], SeatLabels]:
        names = self._names_by_plan.get(event.plan_hash)
        if names is None:
            async with self._reading:  # a stadium takes a third of a second to read: once, in a thread
                names = self._names_by_plan.get(event.plan_hash)
                if names is None:
                    names = self._names_by_plan[event.plan_hash] = await self._read_names(event.plan_hash)
        return names

    async def _read_names(self, plan_hash: str) -> tuple[tuple[str, ...], SeatLabels]:
        document = await self._ledger.catalogue.plan_document(plan_hash)
        if len(self._names_by_plan) >= MAX_PLANS:
            self._names_by_plan.pop(next(iter(self._names_by_plan)))
        if not document:
            return (), SeatLabels()
        plan: Plan = await asyncio.to_thread(decode_plan, document.encode())
        return plan.seat_ids, plan.labels


def _sheet(
    ticket: Ticket,
    event: Event,
    venue: Venue | None,
    seat: str,
    labels: SeatLabels,
    name: str,
    type_name: str,
    price: Money | None,
    add_ons: tuple[str, ...],
) -> Sheet:
    return Sheet(
        ticket_id=ticket.id,
        code=ticket.code,
        seat=seat,
        event_id=event.id,
        event_name=event.name,
        venue_name=venue.name if venue else "",
        city=venue.city if venue else "",
        time_zone=venue.time_zone if venue else "UTC",
        starts_at_us=event.starts_at_us,
        ends_at_us=event.ends_at_us,
        booking_id=ticket.booking_id,
        issued_at_us=ticket.issued_at_us,
        rotating=is_rotating(ticket.code),
        name=name,
        scanned_at_us=ticket.scanned_at_us,
        type_name=type_name,
        price=price,
        named=labels.parts(seat),
        transfer_id=ticket.transfer_id,
        add_ons=add_ons,
    )


MAX_CACHED_BYTES: Final = 16 * 1024 * 1024  # of files; one ticket's PDF has about 3 kB
DRAWN_WITHIN_S: Final = 20.0


class TicketDrawings:
    """Makes files by `HeavyWork`, keeps the latest, and lets callers who want the same file wait for one drawing."""

    def __init__(self, work: HeavyWork) -> None:
        self._work = work
        self._cached: dict[Hashable, bytes] = {}  # the least recently used first
        self._cached_bytes = 0
        self._drawing: dict[Hashable, asyncio.Task[bytes]] = {}

    async def draw(self, key: Hashable, urgency: Urgency, function: Callable[..., bytes], *arguments: Any) -> bytes:
        """The file that `function` makes of its arguments. `key` names everything that decides its content."""
        found = self._cached.pop(key, None)
        if found is not None:
            self._cached[key] = found
            return found
        drawing = self._drawing.get(key)
        if drawing is None:
            work = self._work.run(urgency, DRAWN_WITHIN_S, function, *arguments)
            drawing = self._drawing[key] = asyncio.create_task(work, name="tickets")
            drawing.add_done_callback(lambda task: self._end(key, task))
        return await asyncio.shield(drawing)

    def _end(self, key: Hashable, task: "asyncio.Task[bytes]") -> None:
        self._drawing.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        self._cached[key] = drawn = task.result()
        self._cached_bytes += len(drawn)
        while self._cached_bytes > MAX_CACHED_BYTES:
            self._cached_bytes -= len(self._cached.pop(next(iter(self._cached))))


def draw_tickets(sheets: Sequence[Sheet], language: str, look: TicketLook) -> bytes:
    from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf  # slow to import: not at startup

    return tickets_pdf(sheets, locale=language, look=look)
