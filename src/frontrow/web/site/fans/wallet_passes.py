"""Tickets for the wallets of phones: the buttons of the ticket pages and the links of mails lead here."""

from typing import Any

from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.tickets.model.ticket_transfers import TransferState
from frontrow.boxoffice.tickets.model.tickets import TicketNotFound
from frontrow.boxoffice.tickets.wallet_passes import MAX_BUNDLED
from frontrow.web.http.access import Access, Caller
from frontrow.web.http.wallet_files import apple_answer
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.fans.transfers import received_transfer
from frontrow.web.site.routes import go_to, page


@page("/bookings/{booking_id:str}/apple-wallet", "apple_wallet", Access.OWNER)
async def apple_wallet(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[bytes]:
    """All tickets of a booking in one file. A phone takes a few at once; more are on the page, one by one."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    sheets = await platform.box_office.renderer.sheets(booking.id)
    if len(sheets) > MAX_BUNDLED:
        return go_to(f"/bookings/{booking.id}")
    return apple_answer(await platform.box_office.wallets.apple(booking.id), booking.id)


@page("/bookings/{booking_id:str}/google-wallet", "google_wallet", Access.OWNER)
async def google_wallet(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[bytes]:
    """The only ticket of a booking. A link has room for one; of several, each has its button on the page."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    if len(await platform.box_office.renderer.sheets(booking.id)) > 1:
        return go_to(f"/bookings/{booking.id}")
    return _to_google(await platform.box_office.wallets.google(booking.id))


@page("/bookings/{booking_id:str}/tickets/{ticket_id:str}/apple-wallet", "ticket_apple_wallet", Access.OWNER)
async def ticket_apple_wallet(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[bytes]:
    """One ticket of a booking."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    return apple_answer(await platform.box_office.wallets.apple(booking.id, ticket_id), ticket_id)


@page("/bookings/{booking_id:str}/tickets/{ticket_id:str}/google-wallet", "ticket_google_wallet", Access.OWNER)
async def ticket_google_wallet(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[bytes]:
    """One ticket of a booking."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    return _to_google(await platform.box_office.wallets.google(booking.id, ticket_id))


@page("/transfers/{transfer_id:str}/apple-wallet", "transfer_apple_wallet")
async def transfer_apple_wallet(
    platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]
) -> Response[bytes]:
    """A received ticket."""
    about = await _received(platform, caller, transfer_id)
    return apple_answer(await platform.box_office.wallets.apple(**about), transfer_id)


@page("/transfers/{transfer_id:str}/google-wallet", "transfer_google_wallet")
async def transfer_google_wallet(
    platform: FromPlatform, caller: FromCaller, transfer_id: FromPath[str]
) -> Response[bytes]:
    """A received ticket."""
    about = await _received(platform, caller, transfer_id)
    return _to_google(await platform.box_office.wallets.google(**about))


async def _received(platform: Platform, caller: Caller, transfer_id: str) -> dict[str, Any]:
    """What names a received ticket, once it was accepted."""
    transfer = await received_transfer(platform, caller, transfer_id)
    if transfer.state is not TransferState.ACCEPTED:
        raise TicketNotFound("this ticket is not accepted yet", transfer=transfer.id)
    return {"booking_id": transfer.booking_id, "transfer": transfer}


def _to_google(link: str) -> Response[bytes]:
    return go_to(link, {"referrer-policy": "no-referrer"})


ROUTES: list[HTTPRouteHandler] = [
    apple_wallet,
    google_wallet,
    ticket_apple_wallet,
    ticket_google_wallet,
    transfer_apple_wallet,
    transfer_google_wallet,
]
