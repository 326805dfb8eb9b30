"""Transferring a ticket: the sender's forms, and the recipient's page with the ticket."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer, TransferNotFound, TransferRefused, TransferState
from frontrow.boxoffice.tickets.model.tickets import TicketNotFound
from frontrow.core.errors import FrontrowError, InvalidInput, Unavailable
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import seat_places, shown
from frontrow.web.site.fans.email_fields import BAD_EMAIL, email_problem
from frontrow.web.site.fans.tickets import PRIVATE, in_words, tickets_page
from frontrow.web.site.form_answers import tell, told
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.wallet_buttons import wallet_buttons

Asked = Request[Any, Any, Any]
REFUSED: Final = N_("This ticket cannot be transferred.")
REASONS: Final = {
    "sent": N_("This ticket is already on its way to somebody. Cancel that transfer first."),
    "used": N_("A ticket that was admitted cannot be transferred."),
    "too_many": N_("Too many transfers today. Please try again tomorrow."),
}
OVER: Final = N_("This transfer is over. Ask the sender for a new one.")


@action("/bookings/{booking_id:str}/transfers", "send_transfer", Access.OWNER)
async def send_transfer(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send one ticket of a booking to an address."""
    booking = await platform.own_bookings.find(caller, booking_id)
    email = form.one("email")
    try:
        seats = await platform.booking_views.indexes(booking, [form.one("seat")]) or []
        await platform.box_office.transfers.send(booking, seats[0], email, words_for(request).language)
    except Unavailable:
        raise
    except FrontrowError as error:
        problem = _problem(error, email)
        return await tickets_page(
            request, platform, caller, booking_id, transfer_problem=problem, transfer_to=email[:254]
        )
    return go_to(f"/bookings/{booking.id}")


def _problem(error: FrontrowError, email: str) -> str:
    if isinstance(error, InvalidInput):
        return email_problem(email) or BAD_EMAIL
    return REASONS.get(str(error.about.get("reason", "")), REFUSED)


@action("/bookings/{booking_id:str}/transfers/{transfer_id:str}/withdraw", "withdraw_transfer", Access.OWNER)
async def withdraw_transfer(
    request: Asked,
    platform: FromPlatform,
    caller: FromCaller,
    booking_id: FromPath[str],
    transfer_id: FromPath[str],
    form: FromForm,
) -> Response[bytes]:
    """Keep a ticket that nobody has accepted yet."""
    booking = await platform.own_bookings.find(caller, booking_id)
    try:
        await platform.box_office.transfers.withdraw(booking, transfer_id)
    except TransferRefused:  # accepted meanwhile: the page says so
        return go_to(f"/bookings/{booking.id}")
    return go_to(f"/bookings/{booking.id}")


@page("/transfers/{transfer_id:str}", "transfer")
async def transfer_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]
) -> Response[bytes]:
    """A ticket that somebody sent: accept it, or show it."""
    transfer, said = await received_transfer(platform, caller, transfer_id), told(request)
    return await _page(
        request,
        platform,
        caller,
        transfer,
        said.text("refusal"),
        transfer_problem=said.text("problem"),
        transfer_to=said.text("to"),
    )


async def _page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    transfer: Transfer,
    refusal: str,
    *,
    transfer_problem: str,
    transfer_to: str,
) -> Response[bytes]:
    event = await platform.ledger.catalogue.event(transfer.event_id)
    await platform.box_office.renderer.art.colour(event)
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    accepted, now_us = transfer.state is TransferState.ACCEPTED, platform.clock()
    sheets = await platform.box_office.renderer.sheets(transfer.booking_id, transfer) if accepted else []
    sender = await platform.ledger.messages.contact(transfer.fan)
    names = await platform.booking_views.seat_ids(event.id, (transfer.seat_index,))
    others = await platform.ledger.transfers.transfers_of(transfer.booking_id) if sheets else []
    return render(
        request,
        "transfer.html",
        script="js/ticket.js" if sheets else "",
        status=409 if refusal or transfer_problem else 200,
        refusal=refusal or ("" if accepted or transfer.open(now_us) else OVER),
        one=one,
        transfer=transfer,
        waiting=transfer.open(now_us),
        seat=(await seat_places(platform, event.id, names) or [("", "", "")])[0],
        starts=in_words(request, event.starts_at_us, one.zone),
        sender=(sender.name or sender.email) if sender is not None and not transfer.from_transfer else "",
        sheets=sheets,
        wallets=await wallet_buttons(platform, event.organiser_id) if sheets else [],
        sent_on=next((other for other in others if other.from_transfer == transfer.id and other.open(now_us)), None),
        may_send=bool(sheets)
        and sheets[0].scanned_at_us is None
        and event.transfers_allowed
        and now_us < event.starts_at_us
        and await _has_address(platform, caller, transfer),
        transfer_problem=transfer_problem,
        transfer_to=transfer_to,
    )


@action("/transfers/{transfer_id:str}/accept", "accept_transfer")
async def accept_transfer(
    request: Asked, platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Take the ticket that somebody sent."""
    transfer = await received_transfer(platform, caller, transfer_id)
    try:
        await platform.box_office.transfers.accept(transfer.id, form.one("name", 100), words_for(request).language)
    except TransferRefused:
        return tell(request, f"/transfers/{transfer.id}", {"refusal": OVER})
    return go_to(f"/transfers/{transfer.id}")


@action("/transfers/{transfer_id:str}/send", "send_received")
async def send_received(
    request: Asked, platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send a received ticket on. Only whoever has proven the address may do so: a link alone may be forwarded."""
    transfer = await received_transfer(platform, caller, transfer_id)
    booking = await platform.ledger.booking(transfer.booking_id)
    if booking is None or not await _has_address(platform, caller, transfer):
        raise TransferNotFound(transfer_id)
    email, language = form.one("email"), words_for(request).language
    try:
        await platform.box_office.transfers.send(booking, transfer.seat_index, email, language, transfer.id)
    except Unavailable:
        raise
    except FrontrowError as error:
        return tell(request, f"/transfers/{transfer.id}", {"problem": _problem(error, email), "to": email[:254]})
    return go_to(f"/transfers/{transfer.id}")


@page("/transfers/{transfer_id:str}/qr", "transfer_qr", inside_page=True)
async def transfer_qr(platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]) -> Response[bytes]:
    """The code of a received ticket as a picture."""
    transfer = await received_transfer(platform, caller, transfer_id)
    sheets = await platform.box_office.renderer.sheets(transfer.booking_id, transfer)
    if transfer.state is not TransferState.ACCEPTED or not sheets:
        raise TicketNotFound("this ticket is not valid any more", transfer=transfer.id)
    body = await platform.box_office.renderer.qr_png(sheets[0].ticket_id, platform.clock())
    return Response(body, headers=PRIVATE, media_type="image/png")


@page("/transfers/{transfer_id:str}/ticket.pdf", "transfer_pdf")
async def transfer_pdf(
    request: Asked, platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]
) -> Response[bytes]:
    """A received ticket to print."""
    transfer = await received_transfer(platform, caller, transfer_id)
    locale = words_for(request).language
    body = await platform.box_office.renderer.pdf(transfer.booking_id, locale=locale, transfer=transfer)
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{transfer.id}.pdf"'}
    return Response(body, headers=headers, media_type="application/pdf")


@page("/transfers/{transfer_id:str}/ticket.ics", "transfer_ics")
async def transfer_ics(
    request: Asked, platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]
) -> Response[bytes]:
    """The show of a received ticket for the calendar."""
    transfer = await received_transfer(platform, caller, transfer_id)
    language = words_for(request).language
    body = await platform.box_office.renderer.calendar(transfer.booking_id, transfer, language)
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{transfer.id}.ics"'}
    return Response(body, headers=headers, media_type="text/calendar")


async def received_transfer(platform: Platform, caller: Caller, transfer_id: str) -> Transfer:
    """The transfer, if the caller is its recipient: by the link in the mail, or by the address they have proven."""
    transfer = await platform.ledger.transfers.transfer(transfer_id)
    by_link = (LinkPurpose.TRANSFER.value, transfer_id) in caller.links
    if transfer is None or not (by_link or await _has_address(platform, caller, transfer)):
        raise TransferNotFound(transfer_id)
    return transfer


async def _has_address(platform: Platform, caller: Caller, transfer: Transfer) -> bool:
    """Whether the caller is signed in with the address that the ticket was sent to."""
    if caller.kind != "fan" or not transfer.email:
        return False
    return await platform.people.fans.proven_address(caller.id) == transfer.email


ROUTES: list[HTTPRouteHandler] = [
    send_transfer,
    withdraw_transfer,
    transfer_page,
    accept_transfer,
    send_received,
    transfer_qr,
    transfer_pdf,
    transfer_ics,
]
