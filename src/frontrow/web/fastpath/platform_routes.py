"""The fast path of a platform: routes of every event on sale, of bookings, and the list of events without a query."""

import functools

from frontrow.core.errors import FrontrowError
from frontrow.web.endpoints.event_list import PLAIN
from frontrow.web.endpoints.routes import OF_BOOKINGS
from frontrow.web.fastpath.route_table import HotTable, RouteTable
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, RequestHeaders, Result, problem_answer
from frontrow.web.platform.platform import Platform

PROOFS = frozenset({b"authorization", b"cookie", b"frontrow-pass", b"frontrow-booking"})


def fast_routes(platform: Platform) -> RouteTable:
    """The table of this platform's fast path, kept in step with what is on sale."""
    rules = platform.server.rules
    table = HotTable(platform.endpoints, rules.applies_to if rules is not None else None)
    for event_id in platform.box_office.feeds:
        table.add(event_id)
    platform.box_office.openings.on_open(
        lambda event_id, feed: table.add(event_id) if feed is not None else table.drop(event_id)
    )
    routes = table.routes
    for route in OF_BOOKINGS:
        before, _, behind = route.path.partition("{booking_id}")
        routes.put(route.method, before, behind, route.endpoint(platform.endpoints))
    routes[b"GET", b"/v1/events"] = functools.partial(list_events, platform)
    if table.is_ruled is not None:
        routes.leave_out(table.is_ruled)
    return routes


def list_events(platform: Platform, request: EndpointRequest) -> Result:
    """GET /v1/events without a query."""
    try:
        platform.endpoints.room.context.limits.count(request)
    except FrontrowError as error:
        return problem_answer(error)
    shown = any(name.lower() in PROOFS for name, _ in request.headers)
    ready = None if shown else platform.endpoints.event_list.ready(PLAIN, request)
    return ready if ready is not None else _listed(platform, request, shown)


async def _listed(platform: Platform, request: EndpointRequest, shown: bool) -> EndpointResponse:
    try:
        if shown:
            await platform.callers.identify("GET", RequestHeaders(request))
        return await platform.endpoints.event_list.answer(PLAIN, request)
    except FrontrowError as error:
        return problem_answer(error)
