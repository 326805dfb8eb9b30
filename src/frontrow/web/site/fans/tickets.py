"""After the purchase: tickets with their codes, PDF and calendar, returning tickets, and the list of all tickets."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.checkout.receipts import PAID
from frontrow.boxoffice.checkout.visit_keeper import BOUGHT
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.payments.model.disputes import BookingDisputed
from frontrow.boxoffice.payments.model.payments import EXTERNAL
from frontrow.boxoffice.refunds.model.refund_rules import PaidAtBoxOffice
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import QuotedRefund
from frontrow.boxoffice.texts.locale_formats import Moment
from frontrow.boxoffice.texts.message_texts import MessageWriter
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer, TransferState
from frontrow.boxoffice.tickets.model.tickets import Sheet, TicketNotFound, TicketScanned, TicketState
from frontrow.boxoffice.tickets.model.wallets import Wallet
from frontrow.boxoffice.tickets.wallet_passes import MAX_BUNDLED
from frontrow.core.background_tasks import start_task
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.platform.priority_passes import make_priority_pass
from frontrow.web.site.cookie_contents import pass_cookie, remember_booking
from frontrow.web.site.event_display import Shown, shown
from frontrow.web.site.fans.checkout import booking_context
from frontrow.web.site.fans.mail_links import with_priority
from frontrow.web.site.languages import N_
from frontrow.web.site.refund_rows import (
    MAX_NUMBER,
    chosen_add_ons,
    extra_fields,
    find_sent,
    kept_add_ons,
    refund_rows,
    returned_rows,
)
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.wallet_buttons import WALLET_PAGES, WalletButton, wallet_buttons

Asked = Request[Any, Any, Any]
PRIVATE: Final = {"cache-control": "private, no-store", "x-content-type-options": "nosniff"}
MAX_LISTED: Final = 100
INSIDE: Final = N_("A ticket that was admitted cannot be returned.")
NOT_CHOSEN: Final = N_("Select what you want to return.")
DISPUTED: Final = N_("Your bank is taking this money back, so it cannot be refunded now.")
TOO_LATE: Final = N_("These tickets can no longer be returned.")
AT_BOX_OFFICE: Final = N_("These tickets were paid at the box office. Please return them there.")
AMOUNT_CHANGED: Final = N_("The amount has changed. Please look at it again.")
STATES: Final = {
    BookingState.HELD: ("warn", N_("Not paid yet")),
    BookingState.PAYING: ("warn", N_("Payment in progress")),
    BookingState.CONFIRMED: ("ok", N_("Paid")),
    BookingState.REFUNDED: ("", N_("Returned")),
    BookingState.EXPIRED: ("", N_("Expired")),
    BookingState.CANCELLED: ("", N_("Cancelled")),
}
TRANSFERRED: Final = ("", N_("Transferred"))


class TicketRow(msgspec.Struct, frozen=True):
    """One purchase in the list of all tickets. `valid`: how many tickets this person can still use."""

    one: Shown
    path: str
    valid: int
    state: tuple[str, str]
    past: bool
    refunded_minor: int = 0
    currency: str = ""


@page("/bookings/{booking_id:str}", "booking", Access.OWNER)
async def booking_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """The tickets of a booking, each with its code."""
    return await tickets_page(request, platform, caller, booking_id)


async def tickets_page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    booking_id: str,
    refusal: str = "",
    *,
    transfer_problem: str = "",
    transfer_to: str = "",
) -> Response[bytes]:
    """The page of a booking, after a form that was refused with the reason."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    if booking.state in (BookingState.HELD, BookingState.PAYING):
        return go_to(f"/checkout/{booking.id}")
    visit = caller.shop_pass
    if visit is not None and visit.id == booking.visit_id and booking.state in BOUGHT:
        # Before the keeper of visits comes by: "Get tickets" would lead back into a visit that is about to end.
        start_task(platform.room.passes.end_bought(visit, platform.box_office.purchases), "visits that have bought")
    context = await booking_context(platform, booking)
    event = context["one"].event
    own = await platform.own_bookings.may_change(caller, booking)
    sheets = await platform.box_office.renderer.sheets(booking.id)
    payments = await platform.ledger.payments.payments_of(booking.id)
    step = event.refunds.step_at(event.starts_at_us, platform.clock())
    contact = await platform.ledger.messages.contact(booking.fan) if own else None
    now_us = platform.clock()
    transfers = await _shown_transfers(platform, booking, now_us) if own else []
    wallets = await wallet_buttons(platform, event.organiser_id) if sheets else []
    return render(
        request,
        "booking.html",
        script="js/ticket.js" if sheets else "",
        own=own,
        headers=await remember(platform, request, booking) if own else {},
        goes_first=await goes_first(platform, booking),
        status=409 if refusal or transfer_problem else 200,
        refusal=refusal,
        transfers=await _named_transfers(platform, booking, transfers),
        sendable=_sendable(event, sheets, transfers, now_us),
        transfer_problem=transfer_problem,
        transfer_to=transfer_to,
        state=await _state_shown(platform, booking, len(sheets)),
        returned=await returned_rows(platform, booking),
        at_box_office=AT_BOX_OFFICE if any(one.provider == EXTERNAL for one in payments) else "",
        is_paid=not payments or any(one.state in PAID for one in payments),
        refundable=event.refunds.allowed and step is not None,
        refund_steps=_steps_left(event, now_us),
        add_ons=await kept_add_ons(platform, booking) if own and booking.state is BookingState.CONFIRMED else [],
        extras=await platform.box_office.gates.find_add_ons(booking) if own else (),
        sheets=[(sheet, *sheet.parts) for sheet in sheets],
        unused=[(sheet, *sheet.parts) for sheet in sheets if sheet.scanned_at_us is None],
        starts=in_words(request, event.starts_at_us, context["one"].zone),
        wallets=wallets,
        wallets_first=(first := _wallets_first(wallets, sheets, booking.id))[0],
        wallet_path=first[1],
        upcoming=now_us < event.starts_at_us,
        event_url=f"{platform.settings.public_url.rstrip('/')}/events/{event.id}",
        sent_to=contact.email if contact is not None else "",
        **context,
    )


async def _state_shown(platform: Platform, booking: Booking, valid: int) -> tuple[str, str]:
    """The state of a booking as its buyer sees it, who has so many valid tickets of it."""
    if booking.state is BookingState.CONFIRMED and not valid:
        return TRANSFERRED
    if booking.state is BookingState.CANCELLED and await platform.ledger.returns.returns_of(booking.id):
        return STATES[BookingState.REFUNDED]
    return STATES[booking.state]


def _steps_left(event: Event, now_us: int) -> list[tuple[int, int]]:
    """(until when, share in basis points) of the steps of the refund policy that are not over."""
    ends = [(event.starts_at_us - one.until_s * US_PER_S, one.basis_points) for one in event.refunds.all_steps]
    return [one for one in ends if now_us < one[0]]


def _wallets_first(
    wallets: Sequence[WalletButton], sheets: Sequence[Sheet], booking_id: str
) -> tuple[list[WalletButton], str]:
    """The wallets that all tickets can be added to at once, and where their addresses begin. Apple takes a few in one
    file, a link to Google has room for one."""
    if not sheets or len(sheets) > MAX_BUNDLED or any(one.rotating for one in sheets):
        return [], ""
    if len(sheets) == 1:
        return list(wallets), f"/bookings/{booking_id}/tickets/{sheets[0].ticket_id}"
    return [one for one in wallets if one.ending == WALLET_PAGES[Wallet.APPLE]], f"/bookings/{booking_id}"


async def _shown_transfers(platform: Platform, booking: Booking, now_us: int) -> list[Transfer]:
    """The buyer's own transfers that can be accepted or were."""
    if booking.state is not BookingState.CONFIRMED:
        return []
    found = await platform.ledger.transfers.transfers_of(booking.id)
    return [
        one
        for one in found
        if not one.from_transfer
        and (one.state is TransferState.ACCEPTED or one.open(now_us))
        and one.seat_index in booking.seats
    ]


async def _named_transfers(
    platform: Platform, booking: Booking, transfers: Sequence[Transfer]
) -> list[tuple[Transfer, str]]:
    names = await platform.booking_views.seat_ids(booking.event_id, tuple(one.seat_index for one in transfers))
    event = await platform.ledger.catalogue.event(booking.event_id)
    labels = await platform.box_office.renderer.seat_labels(event)
    return [(one, labels.text(name)) for one, name in zip(transfers, names, strict=True)]


def _sendable(
    event: Event, sheets: Sequence[Sheet], transfers: Sequence[Transfer], now_us: int
) -> list[tuple[Sheet, str, str, str]]:
    """The tickets that can be transferred now: unused and not on their way already."""
    if not event.transfers_allowed or now_us >= event.starts_at_us:
        return []
    on_their_way = {one.ticket_id for one in transfers}
    free = [one for one in sheets if one.scanned_at_us is None and one.ticket_id not in on_their_way]
    return [(sheet, *sheet.parts) for sheet in free]


def in_words(request: Asked, at_us: int, zone: str) -> str:
    """Weekday, date, time and time zone, as the mail writes them."""
    return MessageWriter(words_for(request).language).moment(Moment(at_us, zone))


async def goes_first(platform: Platform, booking: Booking) -> bool:
    """Whether the booking was lost because the payment provider was unavailable (B8)."""
    if booking.state not in (BookingState.CANCELLED, BookingState.EXPIRED):
        return False
    payments = await platform.ledger.payments.payments_of(booking.id)
    return bool(payments) and payments[-1].reason == "provider_unavailable"


async def remember(platform: Platform, request: Asked, booking: Booking) -> dict[str, str]:
    return await remember_booking(platform, request, booking) if booking.state is BookingState.CONFIRMED else {}


@page("/bookings/{booking_id:str}/qr/{ticket_id:str}", "ticket_qr", Access.OWNER, inside_page=True)
async def ticket_qr(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[bytes]:
    """The QR of one ticket as a picture."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    ticket = await platform.ledger.tickets.ticket(ticket_id)
    if ticket is None or ticket.booking_id != booking.id or ticket.transfer_id:
        raise TicketNotFound("this booking has no such ticket", ticket=ticket_id[:60])
    body = await platform.box_office.renderer.qr_png(ticket.id, platform.clock())
    return Response(body, headers=PRIVATE, media_type="image/png")


@page("/bookings/{booking_id:str}/tickets.pdf", "tickets_pdf", Access.OWNER)
async def tickets_pdf(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """The tickets to print."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    body = await platform.box_office.renderer.pdf(booking.id, locale=words_for(request).language)
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{booking.id}.pdf"'}
    return Response(body, headers=headers, media_type="application/pdf")


@page("/bookings/{booking_id:str}/tickets.ics", "tickets_ics", Access.OWNER)
async def tickets_ics(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """The show for the calendar."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    body = await platform.box_office.renderer.calendar(booking.id, language=words_for(request).language)
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{booking.id}.ics"'}
    return Response(body, headers=headers, media_type="text/calendar")


class ReturnChoice(msgspec.Struct, frozen=True):
    """What a fan wants to return: seats by their public ids and add-ons. `resale`: the seats, once somebody else buys
    them."""

    seats: list[str]
    add_ons: dict[str, int]
    resale: bool

    @property
    def is_empty(self) -> bool:
        """Nothing is chosen. An add-on cannot be resold."""
        return not self.seats and (self.resale or not self.add_ons)


@page("/bookings/{booking_id:str}/return", "return_tickets", Access.OWNER)
async def return_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """What returning these tickets and add-ons pays, line by line, before it is asked for."""
    booking = await platform.own_bookings.find(caller, booking_id)
    query = request.query_params
    wanted = ReturnChoice(
        query.getall("seat", [])[:MAX_LISTED],
        chosen_add_ons(await kept_add_ons(platform, booking), lambda name: query.get(name, "")),
        query.get("how") == "pool",
    )
    if wanted.is_empty:
        return await tickets_page(request, platform, caller, booking_id, NOT_CHOSEN)
    try:
        return await _return_page(request, platform, booking, wanted)
    except Unavailable:
        raise
    except PaidAtBoxOffice:
        return await tickets_page(request, platform, caller, booking_id, AT_BOX_OFFICE)
    except BookingDisputed:
        return await tickets_page(request, platform, caller, booking_id, DISPUTED)
    except FrontrowError:
        return await tickets_page(request, platform, caller, booking_id, TOO_LATE)


async def _return_page(
    request: Asked, platform: Platform, booking: Booking, wanted: ReturnChoice, refusal: str = ""
) -> Response[bytes]:
    quote = await _amount_back(platform, booking, wanted)
    worked_out = quote.sum
    return render(
        request,
        "return.html",
        status=409 if refusal else 200,
        refusal=refusal,
        wanted=wanted,
        extras=extra_fields(wanted.add_ons),
        number=quote.number,
        amount_minor=worked_out.amount_minor,
        kept_minor=booking.amount_minor - worked_out.worth_minor,
        ends=set(worked_out.choice.seats) == set(booking.seats),
        rows=await refund_rows(platform, booking.event_id, worked_out.lines, worked_out),
        **(await booking_context(platform, booking)),
    )


async def _amount_back(platform: Platform, booking: Booking, wanted: ReturnChoice) -> QuotedRefund:
    """What is paid for this choice. The policy keeps nothing of a ticket that is resold."""
    some = await platform.booking_views.indexes(booking, wanted.seats)
    if wanted.resale:
        return QuotedRefund(0, await platform.box_office.refunds.quote_return(booking, some or ()))
    return await platform.box_office.refunds.quote(booking, some, wanted.add_ons)


@action("/bookings/{booking_id:str}/give-back", "give_back", Access.OWNER)
async def give_back(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Return tickets and add-ons: a refund by the event's rules, or resale with a refund once someone else buys the
    seat.

    `amount` is what the page showed. If it would be another one now, the page shows that first. `number` is the
    refund's number then, so that a form that is sent twice refunds once.
    """
    booking = await platform.own_bookings.find(caller, booking_id)
    kept = await kept_add_ons(platform, booking)
    wanted = ReturnChoice(form.all("seat")[:MAX_LISTED], chosen_add_ons(kept, form.one), form.one("how") == "pool")
    number = form.number("number", 0, MAX_NUMBER, 0)
    sent = await find_sent(platform, booking, form)
    if sent:
        return go_to(f"/bookings/{booking.id}")  # the page shows what was refunded
    if wanted.is_empty:
        return await tickets_page(request, platform, caller, booking_id, NOT_CHOSEN)
    try:
        quote = await _amount_back(platform, booking, wanted)
        if sent is False or form.one("amount") != str(quote.sum.amount_minor):
            return await _return_page(request, platform, booking, wanted, AMOUNT_CHANGED)
        some = await platform.booking_views.indexes(booking, wanted.seats)
        if wanted.resale:
            await platform.box_office.resale.give_back(booking.id, booking.fan, booking.fence, some or ())
        else:
            await platform.box_office.refunds.refund(
                booking.id, booking.fence, some, wanted.add_ons, number=number or None
            )
    except Unavailable:
        raise
    except TicketScanned:
        return await tickets_page(request, platform, caller, booking_id, INSIDE)
    except PaidAtBoxOffice:
        return await tickets_page(request, platform, caller, booking_id, AT_BOX_OFFICE)
    except BookingDisputed:
        return await tickets_page(request, platform, caller, booking_id, DISPUTED)
    except FrontrowError:
        return await tickets_page(request, platform, caller, booking_id, TOO_LATE)
    return go_to(f"/bookings/{booking.id}")


@action("/bookings/{booking_id:str}/priority", "priority", Access.OWNER)
async def priority(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Priority access for a fan who lost seats because the payment provider was unavailable (B8)."""
    caller = with_priority(caller, booking_id)
    booking = await platform.own_bookings.find(caller, booking_id)
    text, _ = await make_priority_pass(platform, booking)
    return go_to(f"/events/{booking.event_id}/seats", {"set-cookie": pass_cookie(platform, text)})


@page("/tickets", "tickets")
async def tickets(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Everything this person, or this browser, bought."""
    found: dict[str, Booking] = {}
    if caller.kind == "fan":
        found = {one.id: one for one in (await platform.people.fans.bookings(caller.id))[:MAX_LISTED]}
    for booking_id in sorted(caller.bookings)[:MAX_LISTED]:
        booking = found.get(booking_id) or await platform.ledger.booking(booking_id)
        if booking is not None:
            found[booking.id] = booking
    listed = await asyncio.gather(*(_listed_booking(platform, one) for one in found.values()))
    rows = [row for row in listed if row is not None]
    now_us = platform.clock()
    for transfer in await _received(platform, caller):
        event = await platform.ledger.catalogue.event(transfer.event_id)
        one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
        valid = len(await platform.box_office.renderer.sheets(transfer.booking_id, transfer))
        state = STATES[BookingState.CONFIRMED] if valid else STATES[BookingState.CANCELLED]
        rows.append(TicketRow(one, f"/transfers/{transfer.id}", valid, state, event.starts_at_us < now_us))
    rows.sort(key=lambda row: (row.past, row.one.event.starts_at_us))
    return render(request, "tickets.html", rows=rows)


async def _listed_booking(platform: Platform, booking: Booking) -> TicketRow | None:
    """A booking in the list; None if it came to nothing. One that was returned for resale stays listed."""
    now_us, ledger = platform.clock(), platform.ledger
    if booking.state in (BookingState.HELD, BookingState.PAYING) and not booking.live(now_us):
        return None
    ended = booking.state in (BookingState.EXPIRED, BookingState.CANCELLED)
    if ended and not (booking.confirmed_at_us and await ledger.returns.returns_of(booking.id)):
        return None
    events = platform.box_office.openings.events
    event = events.get(booking.event_id) or await ledger.catalogue.event(booking.event_id)
    tickets, valid = await ledger.tickets.tickets_of(booking.id), len(booking.seats)
    if booking.confirmed_at_us:
        valid = sum(one.state is TicketState.VALID and not one.transfer_id for one in tickets)
    refunds = await ledger.payments.refunds_of(booking.id) if booking.confirmed_at_us else []
    return TicketRow(
        shown(platform, event, await ledger.catalogue.venue(event.venue_id)),
        f"/bookings/{booking.id}",
        valid,
        await _state_shown(platform, booking, valid),
        event.starts_at_us < now_us,
        sum(one.amount_minor for one in refunds if one.state is RefundState.DONE),
        booking.currency,
    )


async def _received(platform: Platform, caller: Caller) -> list[Transfer]:
    """The tickets that others transferred to this person, by their address or by links opened in this browser."""
    found = {one.id: one for one in await platform.people.fans.received(caller.id)} if caller.kind == "fan" else {}
    for purpose, subject in sorted(caller.links):
        if purpose == LinkPurpose.TRANSFER and subject not in found:
            transfer = await platform.ledger.transfers.transfer(subject)
            if transfer is not None and transfer.state is TransferState.ACCEPTED:
                found[transfer.id] = transfer
    return list(found.values())[:MAX_LISTED]


ROUTES: list[HTTPRouteHandler] = [
    booking_page,
    ticket_qr,
    tickets_pdf,
    tickets_ics,
    return_page,
    give_back,
    priority,
    tickets,
]
