"""Transfers of tickets to other people: send, list, withdraw, accept."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.holds.model.bookings import BookingNotFound
from frontrow.boxoffice.messages.mail_links import MAX_CHARS, LinkPurpose
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer, TransferNotFound
from frontrow.shared.local_time import time_text
from frontrow.web.api.fans.tickets import TicketView, ticket_views
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.holds import SeatName
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

Locale = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z-]{2,10}$")]


class TransferAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The seat whose ticket is sent, and to whom. The recipient's mail is written in `locale`."""

    seat: SeatName
    email: Annotated[str, msgspec.Meta(min_length=3, max_length=254, examples=["grace@example.org"])]
    locale: Locale = "en"


class AcceptAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The link of the mail, or the part behind its `#`; and the name for the ticket."""

    link: Annotated[str, msgspec.Meta(min_length=1, max_length=2 * MAX_CHARS)]
    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    locale: Locale = "en"


class TransferView(msgspec.Struct):
    """One ticket on its way. `state`: sent, accepted or withdrawn."""

    transfer: Annotated[str, msgspec.Meta(examples=["trf_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    seat: str
    email: str
    state: Annotated[str, msgspec.Meta(examples=["sent"])]
    expires_at: Time


class TransferList(msgspec.Struct):
    transfers: list[TransferView]


@post(
    "/v1/bookings/{booking_id:str}/transfers",
    operation_id="send_transfer",
    summary="Send a ticket to somebody; it is theirs once they accept",
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def send_transfer(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], data: JSONBody[TransferAsked]
) -> TransferView:
    booking = await platform.own_bookings.find(caller, booking_id)
    seats = await platform.booking_views.indexes(booking, [data.seat]) or []
    sent = await platform.box_office.transfers.send(booking, seats[0], data.email, data.locale)
    return await transfer_view(platform, sent)


@get(
    "/v1/bookings/{booking_id:str}/transfers",
    operation_id="list_transfers",
    summary="The transfers of a booking's tickets",
    opt={"access": Access.OWNER},
)
async def list_transfers(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> TransferList:
    booking = await platform.own_bookings.find(caller, booking_id)
    own = [one for one in await platform.ledger.transfers.transfers_of(booking.id) if not one.from_transfer]
    return TransferList([await transfer_view(platform, one) for one in own])


@post(
    "/v1/bookings/{booking_id:str}/transfers/{transfer_id:str}/withdraw",
    operation_id="withdraw_transfer",
    summary="Keep a ticket that nobody has accepted yet",
    status_code=200,
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def withdraw_transfer(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], transfer_id: FromPath[str]
) -> TransferView:
    booking = await platform.own_bookings.find(caller, booking_id)
    return await transfer_view(platform, await platform.box_office.transfers.withdraw(booking, transfer_id))


@post(
    "/v1/transfers/accept",
    operation_id="accept_transfer",
    summary="Accept a ticket by the link of its mail; repeated, it is the ticket with its code of now",
    status_code=200,
    opt={"access": Access.PUBLIC, "problems": (404, 409), "idempotency": "own"},  # its code changes and is not stored
)
async def accept_transfer(platform: FromPlatform, data: JSONBody[AcceptAsked]) -> TicketView:
    link = platform.messaging.links.read(data.link.rpartition("#")[2])
    if link is None or link.purpose is not LinkPurpose.TRANSFER or link.ended(platform.clock()):
        raise TransferNotFound("")
    transfer = await platform.box_office.transfers.accept(link.subject, data.name, data.locale)
    tickets = await ticket_views(platform, transfer.booking_id, transfer)
    if not tickets:
        raise BookingNotFound(transfer.booking_id)
    return tickets[0]


async def transfer_view(platform: Platform, transfer: Transfer) -> TransferView:
    seats = await platform.booking_views.seat_ids(transfer.event_id, (transfer.seat_index,))
    return TransferView(
        transfer.id, seats[0] if seats else "", transfer.email, transfer.state.value, time_text(transfer.expires_at_us)
    )


ROUTES: list[HTTPRouteHandler] = [send_transfer, list_transfers, withdraw_transfer, accept_transfer]
