"""A booking's tickets for the wallets of phones, if the organiser has keys for them."""

from typing import Annotated

import msgspec
from litestar import Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.tickets.wallet_passes import ONE_PASS, SEVERAL_PASSES
from frontrow.web.api.fans.tickets import PRIVATE
from frontrow.web.http.access import Access
from frontrow.web.http.wallet_files import apple_answer
from frontrow.web.platform.injected import FromCaller, FromPlatform

TICKET = "/v1/bookings/{booking_id:str}/tickets/{ticket_id:str}"


class GoogleWalletLink(msgspec.Struct):
    """The address that saves the ticket to Google Wallet. Whoever opens it gets the ticket."""

    url: Annotated[str, msgspec.Meta(examples=["https://pay.google.com/gp/v/save/eyJhbGciOiJSUzI1NiIs…"])]


@get(
    "/v1/bookings/{booking_id:str}/apple-wallet",
    operation_id="apple_wallet",
    summary="The tickets for Apple Wallet: a .pkpasses file, or a .pkpass if there is one ticket",
    opt={"access": Access.OWNER, "answers": {200: SEVERAL_PASSES[0]}, "problems": (409,)},
    media_type=SEVERAL_PASSES[0],
)
async def apple_wallet(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[bytes]:
    booking = await platform.own_bookings.find(caller, booking_id)
    return apple_answer(await platform.box_office.wallets.apple(booking.id), booking.id)


@get(
    f"{TICKET}/apple-wallet",
    operation_id="ticket_apple_wallet",
    summary="One ticket for Apple Wallet (.pkpass)",
    opt={"access": Access.OWNER, "answers": {200: ONE_PASS[0]}, "problems": (409,)},
    media_type=ONE_PASS[0],
)
async def ticket_apple_wallet(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[bytes]:
    booking = await platform.own_bookings.find(caller, booking_id)
    return apple_answer(await platform.box_office.wallets.apple(booking.id, ticket_id), ticket_id)


@get(
    f"{TICKET}/google-wallet",
    operation_id="ticket_google_wallet",
    summary="The link that saves one ticket to Google Wallet",
    opt={"access": Access.OWNER, "problems": (409,)},
)
async def ticket_google_wallet(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], ticket_id: FromPath[str]
) -> Response[GoogleWalletLink]:
    booking = await platform.own_bookings.find(caller, booking_id)
    link = await platform.box_office.wallets.google(booking.id, ticket_id)
    return Response(GoogleWalletLink(link), headers=PRIVATE)


ROUTES: list[HTTPRouteHandler] = [apple_wallet, ticket_apple_wallet, ticket_google_wallet]
