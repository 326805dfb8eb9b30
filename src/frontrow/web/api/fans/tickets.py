"""A booking's tickets (B10): JSON, PDF, calendar entry, QR codes as PNG. Rendered on request."""

from typing import Annotated

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter

from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer
from frontrow.boxoffice.tickets.model.tickets import TicketNotFound
from frontrow.shared.local_time import time_text
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

PRIVATE = {"cache-control": "private, no-store"}


class TicketView(msgspec.Struct):
    """One valid ticket. `code` is the content of its QR code now; that of a rotating ticket changes."""

    ticket: Annotated[str, msgspec.Meta(examples=["tkt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    seat: str
    code: str
    event_name: str
    venue: str
    starts_at: Time
    rotating: bool


class TicketList(msgspec.Struct):
    tickets: list[TicketView]


@get(
    "/v1/bookings/{booking_id:str}/tickets",
    operation_id="list_tickets",
    summary="The valid tickets of a booking",
    opt={"access": Access.OWNER},
)
async def list_tickets(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[TicketList]:
    booking = await platform.own_bookings.find(caller, booking_id)
    return Response(TicketList(await ticket_views(platform, booking.id)), headers=PRIVATE)


async def ticket_views(platform: Platform, booking_id: str, transfer: Transfer | None = None) -> list[TicketView]:
    """The valid tickets of the buyer, or the one that a transfer brought, with their codes of now."""
    now_us = platform.clock()
    return [
        TicketView(
            sheet.ticket_id,
            sheet.seat,
            await platform.box_office.renderer.shown_code(sheet.ticket_id, now_us),
            sheet.event_name,
            sheet.place,
            time_text(sheet.starts_at_us),
            sheet.rotating,
        )
        for sheet in await platform.box_office.renderer.sheets(booking_id, transfer)
    ]


@get(
    "/v1/bookings/{booking_id:str}/tickets.pdf",
    operation_id="tickets_pdf",
    summary="The tickets to print",
    opt={"access": Access.OWNER, "answers": {200: "application/pdf"}},
    media_type="application/pdf",
)
async def tickets_pdf(
    platform: FromPlatform,
    caller: FromCaller,
    booking_id: FromPath[str],
    locale: Annotated[str, QueryParameter(pattern=r"^[A-Za-z-]{2,10}$", max_length=10)] = "en",
) -> Response[bytes]:
    booking = await platform.own_bookings.find(caller, booking_id)
    body = await platform.box_office.renderer.pdf(booking.id, locale=locale)
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{booking.id}.pdf"'}
    return Response(body, headers=headers, media_type="application/pdf")


@get(
    "/v1/bookings/{booking_id:str}/tickets.ics",
    operation_id="tickets_ics",
    summary="The show as a calendar entry",
    opt={"access": Access.OWNER, "answers": {200: "text/calendar"}},
    media_type="text/calendar",
)
async def tickets_ics(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[bytes]:
    booking = await platform.own_bookings.find(caller, booking_id)
    return Response(
        await platform.box_office.renderer.calendar(booking.id), headers=PRIVATE, media_type="text/calendar"
    )


@get(
    "/v1/bookings/{booking_id:str}/tickets/{ticket_id:str}/qr.png",
    operation_id="ticket_qr",
    summary="The current QR code of one ticket",
    opt={"access": Access.OWNER, "answers": {200: "image/png"}},
    media_type="image/png",
)
async def ticket_qr(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[bytes]:
    booking = await platform.own_bookings.find(caller, booking_id)
    ticket = await platform.ledger.tickets.ticket(ticket_id)
    if ticket is None or ticket.booking_id != booking.id or ticket.transfer_id:
        raise TicketNotFound(f"this booking has no ticket {ticket_id[:60]}", ticket=ticket_id[:60])
    body = await platform.box_office.renderer.qr_png(ticket.id, platform.clock())
    return Response(body, headers=PRIVATE, media_type="image/png")


ROUTES: list[HTTPRouteHandler] = [list_tickets, tickets_pdf, tickets_ics, ticket_qr]
