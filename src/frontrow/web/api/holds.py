"""Holding seats (B3, B4): place a hold, make it last longer, give it back. Every call needs a pass (B17)."""

from typing import Annotated, Any

import msgspec
from litestar import Request, delete, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody
from litestar.types import ASGIApp

from frontrow.boxoffice.model.bookings import Booking, StaleFence
from frontrow.core.errors import Refused
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, Caller, need_pass, own_booking
from frontrow.web.api.routes import own_checks
from frontrow.web.api.views import BookingView, booking_view
from frontrow.web.platform import Platform
from frontrow.web.room_app import AnswerApp, ask_of
from frontrow.web.room_endpoints import settle
from frontrow.web.shop import HoldBody, HoldView

MOST_TIMES = 2  # a hold lasts at most so many times its event's time to hold, however often it is extended


class HoldFull(Refused):
    """The hold has lasted as long as it may."""

    code = "hold_cannot_be_extended"


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    """Asks for a later end. `fence`, if given, must be the hold's."""

    extend: Annotated[bool, msgspec.Meta(description="must be true", examples=[True])]
    fence: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None


@post(
    "/v1/events/{event_id:str}/holds",
    operation_id="place_hold",
    summary="Hold seats, all or none: those named, or the best that fit",
    opt=own_checks(
        Access.PASS,
        body=HoldBody,
        answers={201: HoldView},
        problems=(401, 403, 404, 409, 410, 413, 422, 429, 503),
        links="booking",
    ),
)
async def place_hold(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    return AnswerApp(await settle(platform.shop.hold(event_id, await ask_of(request))))


@patch(
    "/v1/bookings/{booking_id:str}/hold",
    operation_id="extend_hold",
    summary="Make a hold last longer, within the event's bound",
    opt={"access": Access.OWNER, "problems": (409, 410), "shop": True},
)
async def extend_hold(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], data: JSONBody[ExtendBody]
) -> BookingView:
    booking = await held(platform, caller, booking_id, data.fence)
    if not data.extend:
        return await booking_view(platform, booking)
    hold_us = platform.sales.get(booking.event_id).hold_us
    end_us = min(platform.clock() + hold_us, booking.created_at_us + MOST_TIMES * hold_us)
    if booking.live(platform.clock()) and end_us <= booking.hold_expires_at_us:
        raise HoldFull("this hold has lasted as long as it may", booking=booking.id)
    return await booking_view(platform, await platform.holds.extend(booking.id, booking.fence, end_us))


@delete(
    "/v1/bookings/{booking_id:str}/hold",
    operation_id="release_hold",
    summary="Give the held seats back",
    status_code=200,
    opt={"access": Access.OWNER, "problems": (409,), "shop": True},
)
async def release_hold(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> BookingView:
    booking = await held(platform, caller, booking_id)
    return await booking_view(platform, await platform.holds.release(booking.id, booking.fence))


async def held(platform: Platform, caller: Caller, booking_id: str, fence: int | None = None) -> Booking:
    """The caller's booking, with a pass for its event; `fence`, if given, must be its own."""
    booking = await own_booking(platform, caller, booking_id)
    need_pass(caller, booking.event_id)
    if fence is not None and fence != booking.fence:
        raise StaleFence(booking.id, fence)
    return booking


ROUTES: list[HTTPRouteHandler] = [place_hold, extend_hold, release_hold]
