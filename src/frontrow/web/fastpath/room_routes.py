"""The fast path's routes of waiting rooms, made from `endpoints.room.routes`."""

import functools
from collections.abc import Sequence
from typing import Any

from frontrow.web.endpoints.room.room_endpoints import RoomEndpoints
from frontrow.web.endpoints.room.routes import ALONE_ROUTES, ROUTES, RoomRoute
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.fastpath.pending_replies import Handler
from frontrow.web.fastpath.place_status import hot_status
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.http.takeover import Takeover
from frontrow.web.streams.positions import Streams


def hot_routes(endpoints: ShardedEndpoints, *, root_event: str = "") -> dict[tuple[bytes, bytes], Handler]:
    """The table of a server of rooms: exact method and path to handler."""
    table: dict[tuple[bytes, bytes], Handler] = {}
    for queue in endpoints.queues:
        for base in [f"/v1/events/{queue}/room"] + ([""] if queue == root_event else []):
            for route in ALONE_ROUTES:
                if route.fast:
                    handler: Handler = functools.partial(endpoints.endpoint_of(route), queue)
                    table[route.method.encode(), (base + route.path).encode()] = handler
    rooms = endpoints.rooms
    for event, streams in rooms.streams.items():
        table |= hot_routes_of(rooms, event, streams, routes=ALONE_ROUTES)
        if event == root_event:
            table |= hot_routes_of(rooms, event, streams, base="", routes=ALONE_ROUTES)
    return table


def hot_routes_of(
    endpoints: RoomEndpoints,
    event: str,
    streams: Streams,
    base: str | None = None,
    routes: Sequence[RoomRoute] = ROUTES,
) -> dict[tuple[bytes, bytes], Handler]:
    """The hot routes of one room, below its own path or `base`."""
    start = f"/v1/events/{event}/room" if base is None else base
    table: dict[tuple[bytes, bytes], Handler] = {}
    for route in routes:
        if route.fast:
            handler = _hot_handler(endpoints, route, event)
            table[route.method.encode(), (start + route.path).encode()] = handler
    table[b"GET", (start + "/stream").encode()] = _hot_stream(endpoints, event, streams)
    return table


def _hot_handler(endpoints: RoomEndpoints, route: RoomRoute, event: str) -> Handler:
    if route.name == "status":
        return hot_status(endpoints, event)
    return functools.partial(route.endpoint(endpoints), event)


def _hot_stream(endpoints: RoomEndpoints, event: str, streams: Streams) -> Handler:
    def handle(request: EndpointRequest) -> Any:
        address = endpoints.context.client_ip(request)
        return endpoints.documents.stream_refusal(event, address) or Takeover(
            functools.partial(streams.take, address=address)
        )

    return handle
