"""The platform's table of hot routes: those of the room and the seats of every event on sale, changed while running.

An exact address is one lookup. An address with one parameter in its third segment (`/v1/bookings/{booking}/pay`) is
found by the text before and after it. Only plain ids match; everything else is left to the framework.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, Final

from frontrow.web.endpoints.groups import Endpoints
from frontrow.web.endpoints.routes import OF_EVENTS
from frontrow.web.fastpath.pending_replies import Handler
from frontrow.web.fastpath.room_routes import hot_routes_of
from frontrow.web.http.messages import EndpointRequest

PLAIN_ID: Final = re.compile(rb"[A-Za-z0-9_-]{1,64}")
Shaped = Callable[[str, EndpointRequest], Any]


class Bound:
    """The handler of one address of a shape: the shape's handler with the parameter of this address."""

    __slots__ = ("_value", "shape")

    def __init__(self, shape: Shaped, value: str) -> None:
        self.shape, self._value = shape, value

    def __call__(self, request: EndpointRequest) -> Any:
        return self.shape(self._value, request)


class RouteTable(dict[tuple[bytes, bytes], Handler]):
    """Exact addresses, and shapes with one parameter behind `/v1/<things>/`."""

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[tuple[bytes, bytes, bytes], Shaped] = {}

    def put(self, method: str, before: str, behind: str, handler: Shaped) -> None:
        """Answer `<before><id><behind>` with this handler."""
        self._shapes[method.encode(), before.encode(), behind.encode()] = handler

    def leave_out(self, is_ruled: Callable[[str, str], bool], below: bytes = b"") -> None:
        """Leave the addresses below a path that a rule applies to (`api.api_rules`) to the framework."""
        for method, url in [key for key in self if key[1].startswith(below)]:
            if is_ruled(method.decode(), url.rstrip(b"?").decode()):
                del self[method, url]
        for method, before, behind in [shape for shape in self._shapes if shape[1].startswith(below)]:
            if is_ruled(method.decode(), f"{before.decode()}x{behind.decode()}"):
                del self._shapes[method, before, behind]

    def shaped(self, method: bytes, url: bytes) -> Bound | None:
        """The handler of an address with a parameter, if it is one of ours and its id is plain."""
        begin = url.find(b"/", 4) + 1
        end = url.find(b"/", begin)
        if end < 0:
            end = len(url)
        shape = self._shapes.get((method, url[:begin], url[end:]))
        if shape is None or not PLAIN_ID.fullmatch(url, begin, end):
            return None
        return Bound(shape, url[begin:end].decode())


class HotTable:
    """`routes` is the table that the fast path reads. A path that ends in `?` takes any query."""

    def __init__(self, endpoints: Endpoints, is_ruled: Callable[[str, str], bool] | None = None) -> None:
        self._endpoints = endpoints
        self.is_ruled = is_ruled  # whether a rule of [limits] applies to a method and a path
        self.routes = RouteTable()
        self._own: dict[str, list[tuple[bytes, bytes]]] = {}  # the addresses of each event

    def add(self, event_id: str) -> None:
        """Answer this event's hot routes from now on."""
        room = self._endpoints.room
        streams = room.streams.get(event_id)
        own: dict[tuple[bytes, bytes], Handler] = {}
        if streams is not None:
            own.update(hot_routes_of(room, event_id, streams))
        for route in OF_EVENTS:
            handler = functools.partial(route.endpoint(self._endpoints), event_id)
            method, url = route.method.encode(), route.path.replace("{event_id}", event_id).encode()
            own[method, url] = handler
            if route.takes_query:
                own[method, url + b"?"] = handler
        self._own[event_id] = list(own)
        self.routes.update(own)
        if self.is_ruled is not None:
            self.routes.leave_out(self.is_ruled, f"/v1/events/{event_id}".encode())

    def drop(self, event_id: str) -> None:
        for key in self._own.pop(event_id, ()):
            self.routes.pop(key, None)  # it may have been left out
