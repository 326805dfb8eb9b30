"""Holds (B3, B4): place, extend, release. Every call needs a pass (B17)."""

from typing import Any

from litestar import Request, delete, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.web.api import FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.api.booking_bodies import BookingView
from frontrow.web.api.routes import ANY, own_checks
from frontrow.web.endpoints import bookings as booking_calls
from frontrow.web.endpoints.bookings import ExtendBody
from frontrow.web.endpoints.room import await_answer
from frontrow.web.endpoints.seats import HoldBody, HoldView
from frontrow.web.room.app import AnswerApp, read_request


@post(
    "/v1/events/{event_id:str}/holds",
    operation_id="place_hold",
    summary="Hold seats, all or none: the named ones, or the best that fit",
    opt=own_checks(
        Access.PASS,
        body=HoldBody,
        answers={201: HoldView},
        problems=(401, 403, 404, 409, 410, 413, 422, 429, 503),
        links="booking",
    ),
)
async def place_hold(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    return AnswerApp(await await_answer(platform.server.shop.hold(event_id, await read_request(request))))


@patch(
    "/v1/bookings/{booking_id:str}/hold",
    operation_id="extend_hold",
    summary="Extend a hold, within the event's limit, or choose other seats for it",
    opt=own_checks(
        Access.OWNER,
        body=ExtendBody,
        answers={200: BookingView},
        problems=(*ANY, 404, 409, 410, 413, 415),
        shop=True,
    ),
)
async def extend_hold(request: Request[Any, Any, Any], booking_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    return AnswerApp(await await_answer(booking_calls.extend_hold(platform, booking_id, await read_request(request))))


@delete(
    "/v1/bookings/{booking_id:str}/hold",
    operation_id="release_hold",
    summary="Release the held seats",
    status_code=200,
    opt=own_checks(Access.OWNER, answers={200: BookingView}, problems=(*ANY, 404, 409, 413, 415), shop=True),
)
async def release_hold(request: Request[Any, Any, Any], booking_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    return AnswerApp(await await_answer(booking_calls.release_hold(platform, booking_id, await read_request(request))))


ROUTES: list[HTTPRouteHandler] = [place_hold, extend_hold, release_hold]
