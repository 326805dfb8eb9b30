"""Puts what belongs to no single event into the hot table: the calls about a booking, the plain list of events."""

import functools

from frontrow.core.errors import FrontrowError
from frontrow.web.api.access import identified
from frontrow.web.endpoints import bookings as booking_calls
from frontrow.web.endpoints.bookings import ip_of
from frontrow.web.endpoints.event_list import PLAIN
from frontrow.web.endpoints.messages import Answer, Ask, AskHeaders, problem_answer
from frontrow.web.endpoints.room_context import Result
from frontrow.web.platform.platform import Platform

BOOKINGS = "/v1/bookings/"
PROOFS = frozenset({b"authorization", b"cookie", b"frontrow-pass", b"frontrow-booking"})


def share(platform: Platform) -> None:
    """Answer these in the hot lane from now on; the framework declares the same."""
    routes = platform.hot.routes
    routes.put("GET", BOOKINGS, "", functools.partial(booking_calls.get_booking, platform))
    routes.put("POST", BOOKINGS, "/pay", functools.partial(booking_calls.pay, platform))
    routes.put("PATCH", BOOKINGS, "/hold", functools.partial(booking_calls.extend_hold, platform))
    routes.put("DELETE", BOOKINGS, "/hold", functools.partial(booking_calls.release_hold, platform))
    routes[b"GET", b"/v1/events"] = functools.partial(list_events, platform)


def list_events(platform: Platform, ask: Ask) -> Result:
    """GET /v1/events without a query."""
    try:
        platform.limiter.count_ip(ip_of(platform, ask))
    except FrontrowError as error:
        return problem_answer(error)
    shown = any(name.lower() in PROOFS for name, _ in ask.headers)
    ready = None if shown else platform.listed.ready(PLAIN, ask)
    return ready if ready is not None else _listed(platform, ask, shown)


async def _listed(platform: Platform, ask: Ask, shown: bool) -> Answer:
    try:
        if shown:
            await identified(platform, "GET", AskHeaders(ask))
        return await platform.listed.answer(PLAIN, ask)
    except FrontrowError as error:
        return problem_answer(error)
