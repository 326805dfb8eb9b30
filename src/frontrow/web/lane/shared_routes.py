"""The hot routes that belong to no single event: the calls about a booking, and the list of events without a query."""

import functools

from frontrow.core.errors import FrontrowError
from frontrow.web.api.access import identified
from frontrow.web.endpoints import bookings as booking_calls
from frontrow.web.endpoints.bookings import ip_of
from frontrow.web.endpoints.event_list import PLAIN
from frontrow.web.endpoints.messages import EndpointRequest, EndpointResponse, RequestHeaders, problem_answer
from frontrow.web.endpoints.room_context import Result
from frontrow.web.platform.platform import Platform

BOOKINGS = "/v1/bookings/"
PROOFS = frozenset({b"authorization", b"cookie", b"frontrow-pass", b"frontrow-booking"})


def add_shared_routes(platform: Platform) -> None:
    """EndpointResponse these in the hot lane from now on; the framework declares the same."""
    routes = platform.server.hot.routes
    routes.put("GET", BOOKINGS, "", functools.partial(booking_calls.get_booking, platform))
    routes.put("POST", BOOKINGS, "/pay", functools.partial(booking_calls.pay, platform))
    routes.put("PATCH", BOOKINGS, "/hold", functools.partial(booking_calls.extend_hold, platform))
    routes.put("DELETE", BOOKINGS, "/hold", functools.partial(booking_calls.release_hold, platform))
    routes[b"GET", b"/v1/events"] = functools.partial(list_events, platform)
    if platform.server.hot.is_ruled is not None:
        routes.leave_out(platform.server.hot.is_ruled)


def list_events(platform: Platform, request: EndpointRequest) -> Result:
    """GET /v1/events without a query."""
    try:
        platform.server.limiter.count_ip(ip_of(platform, request))
    except FrontrowError as error:
        return problem_answer(error)
    shown = any(name.lower() in PROOFS for name, _ in request.headers)
    ready = None if shown else platform.server.listed.ready(PLAIN, request)
    return ready if ready is not None else _listed(platform, request, shown)


async def _listed(platform: Platform, request: EndpointRequest, shown: bool) -> EndpointResponse:
    try:
        if shown:
            await identified(platform, "GET", RequestHeaders(request))
        return await platform.server.listed.answer(PLAIN, request)
    except FrontrowError as error:
        return problem_answer(error)
