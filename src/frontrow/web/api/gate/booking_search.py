"""At the gate without a code: find a booking by name, e-mail address, number or seat, and admit its people together.

Tickets stand under the name of whoever has them: a buyer who sent one to somebody else does not come in with it. A
ticket's number finds that ticket alone. It is no proof: numbers are printed, mailed and listed. Staff have looked at
the person instead of the code, so each check-in is noted with who did it.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.gate.guest_list import GuestList, hinted_email
from frontrow.boxoffice.gate.model.scans import ReentryNotAllowed, Way
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.messages.model.messages import NOBODY, Buyer
from frontrow.boxoffice.organiser.model.booking_search import MAX_SEARCH_CHARS, ticket_number
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.boxoffice.tickets.model.tickets import Ticket, TicketState
from frontrow.shared.local_time import time_text
from frontrow.web.api.gate.scans import (
    PATH,
    SCANS,
    AddOnUseView,
    Gate,
    ScanId,
    ScanView,
    add_on_views,
    admit_ticket,
    let_ticket_out,
)
from frontrow.web.http.access import editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.event_access import own_event, own_event_booking
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

MAX_TOGETHER = 100


class DoorTicketView(msgspec.Struct):
    """One ticket of a booking. `admitted_at` is its first admission; `outside`: it has left and may come back."""

    ticket: str
    seat: str
    valid: bool
    admitted_at: Time | None = None
    outside: bool = False


class DoorBookingView(msgspec.Struct):
    """A person as the gate shows them: the name, a hint of the address, the tickets that they have of a booking. Who
    was sent a ticket of it is listed by themselves."""

    booking: str
    name: str
    email: Annotated[str, msgspec.Meta(description="the first letter and the domain", examples=["a…@example.org"])]
    tickets: list[DoorTicketView]
    add_ons: list[AddOnUseView] = []


class DoorBookings(msgspec.Struct):
    """`more`: there are others; search for more of the name."""

    bookings: list[DoorBookingView]
    more: bool = False


class CheckInAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Some tickets of a booking, or all that its buyer has when none are named. Repeating it with the same `scan`
    changes nothing. `way`: `out` lets them out, if the event lets people come back."""

    booking: Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    gate: Gate
    scan: ScanId
    tickets: Annotated[list[str], msgspec.Meta(max_length=MAX_TOGETHER)] = []
    way: Way = Way.IN


class CheckInView(msgspec.Struct):
    """What came of each ticket, in the order of the seats."""

    results: list[ScanView]


@get(
    f"{PATH}/bookings",
    operation_id="find_at_door",
    summary="Bookings by a part of a name, an e-mail address or a number, or by a seat; tickets by their number",
    opt=SCANS,
)
async def find_at_door(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    q: Annotated[str, QueryParameter(max_length=MAX_SEARCH_CHARS)] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=50)] = 10,
) -> DoorBookings:
    event = await own_event(platform, caller, event_id)
    number = ticket_number(q)
    if number:
        by_number = await _holder_of(platform, event, number)
        if by_number is not None or q.strip().lower().startswith("tkt"):
            return DoorBookings([by_number] if by_number is not None else [])
    found = await platform.organiser.bookings.find(event, q, 0, limit + 1)
    sold = [one for one in found if one.state is BookingState.CONFIRMED]
    buyers = await platform.ledger.organiser.buyers_of([one.fan for one in sold])
    views = [view for one in sold[:limit] for view in await _cards(platform, event, one, buyers.get(one.fan, NOBODY))]
    return DoorBookings(views, len(found) > limit)


@get(
    f"{PATH}/guests",
    operation_id="get_guests",
    summary="The guest list for a gate without a network; names only if the event allows them on gates' devices",
    opt={**SCANS, "answers": {200: GuestList, 304: None}},
)
async def get_guests(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[GuestList | None]:
    event = await own_event(platform, caller, event_id)
    lists = platform.box_office.gates.guests
    tag = f'"{await lists.tag(event)}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(None, status_code=304, headers=headers)
    return Response(await lists.make(event, platform.clock()), headers=headers)


@post(
    f"{PATH}/check-in",
    operation_id="check_in_booking",
    summary="Admit the people of a booking together, or let them out",
    status_code=200,
    opt=SCANS,
)
async def check_in_booking(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[CheckInAsked]
) -> CheckInView:
    event, booking = await own_event_booking(platform, caller, event_id, data.booking)
    tickets = await _valid_tickets(platform, booking)
    named = [one for one in tickets if (one.id in data.tickets if data.tickets else not one.transfer_id)][:MAX_TOGETHER]
    coming = data.way is Way.IN
    if not coming and not event.reentry:
        raise ReentryNotAllowed("this event does not let people come back; change that in its settings", event=event.id)
    pass_gate = admit_ticket if coming else let_ticket_out
    results = [await pass_gate(platform, event, one, data.gate, f"{data.scan}:{one.seat_index}") for one in named]
    were_there = {one.id for one in named if one.inside is coming}
    passed = sum(one.verdict in ("ok", "left") and one.ticket not in were_there for one in results)
    if passed:  # a repeated request is not noted again
        detail = {"booking": booking.id, "tickets": passed, "gate": data.gate}
        act = "check_in" if coming else "check_out"
        await platform.organiser.log.note(editor_of(caller), act, event.id, detail)
    return CheckInView(results)


async def _valid_tickets(platform: Platform, booking: Booking) -> list[Ticket]:
    return [one for one in await platform.ledger.tickets.tickets_of(booking.id) if one.state is TicketState.VALID]


async def _cards(platform: Platform, event: Event, booking: Booking, buyer: Buyer) -> list[DoorBookingView]:
    """The tickets of a booking by who has them: those of the buyer, then those of each person who was sent one."""
    names = await platform.box_office.renderer.seat_names(event)
    held: dict[str, list[Ticket]] = {"": []}
    for one in await platform.ledger.tickets.tickets_of(booking.id):
        if not one.transfer_id or one.state is TicketState.VALID:
            held.setdefault(one.transfer_id, []).append(one)
    cards = []
    for transfer_id, tickets in held.items():
        name, email = await _name_and_email(platform, buyer, transfer_id)
        extras = add_on_views(await platform.box_office.gates.find_add_ons(None if transfer_id else booking))
        listed = [_ticket(one, names) for one in tickets]
        cards.append(DoorBookingView(booking.id, name, hinted_email(email), listed, extras))
    return cards


async def _name_and_email(platform: Platform, buyer: Buyer, transfer_id: str) -> tuple[str, str]:
    """Of the buyer, or of whoever a ticket was transferred to."""
    if not transfer_id:
        return buyer.name, buyer.email
    transfer = await platform.ledger.transfers.transfer(transfer_id)
    return (transfer.name, transfer.email) if transfer is not None else ("", "")


def _ticket(one: Ticket, names: Sequence[str]) -> DoorTicketView:
    return DoorTicketView(
        one.id,
        seat_name(names, one.seat_index),
        one.state is TicketState.VALID,
        time_text(one.scanned_at_us) if one.scanned_at_us else None,
        one.left_at_us is not None,
    )


async def _holder_of(platform: Platform, event: Event, number: str) -> DoorBookingView | None:
    """The ticket with this number and who has it: the buyer, or whoever it was transferred to."""
    kept = await platform.ledger.tickets.ticket(number, event.id)
    booking = await platform.ledger.booking(kept.booking_id) if kept is not None else None
    if kept is None or booking is None:
        return None
    buyer = (await platform.ledger.organiser.buyers_of([booking.fan])).get(booking.fan, NOBODY)
    name, email = await _name_and_email(platform, buyer, kept.transfer_id)
    names = await platform.box_office.renderer.seat_names(event)
    extras = add_on_views(await platform.box_office.gates.find_add_ons(None if kept.transfer_id else booking))
    return DoorBookingView(booking.id, name, hinted_email(email), [_ticket(kept, names)], extras)


ROUTES: list[HTTPRouteHandler] = [find_at_door, get_guests, check_in_booking]
