"""The hot lane's table of the platform: the room's and the seats' routes of every event on sale, kept while running."""

import functools

from frontrow.web.event_views import EventViews
from frontrow.web.hot_replies import Handler
from frontrow.web.room_app import hot_routes_of
from frontrow.web.room_endpoints import RoomEndpoints
from frontrow.web.shop import ShopEndpoints

# (method, path below the event, endpoint of `ShopEndpoints`, whether a query may follow)
SHOP_ROUTES = (
    ("POST", "/holds", "hold", False),
    ("GET", "/seats.bin", "seats_bin", False),
    ("GET", "/seats/poll", "poll", True),
    ("GET", "/seats/stream", "stream", True),
)


class HotTable:
    """`routes` is what uvicorn's protocol looks into; a path that ends in `?` takes any query."""

    def __init__(self, room: RoomEndpoints, shop: ShopEndpoints) -> None:
        self._room, self._shop = room, shop
        self.routes: dict[tuple[bytes, bytes], Handler] = {}
        self.shown: EventViews | None = None

    def add(self, event_id: str) -> None:
        """Answer this event's hot routes from now on."""
        streams = self._room.streams.get(event_id)
        if streams is not None:
            self.routes.update(hot_routes_of(self._room, event_id, streams))
        if self.shown is not None:
            self.routes[b"GET", f"/v1/events/{event_id}".encode()] = functools.partial(self.shown.event, event_id)
        for method, path, name, query in SHOP_ROUTES:
            handler = functools.partial(getattr(self._shop, name), event_id)
            url = f"/v1/events/{event_id}{path}"
            self.routes[method.encode(), url.encode()] = handler
            if query:
                self.routes[method.encode(), f"{url}?".encode()] = handler

    def drop(self, event_id: str) -> None:
        own = f"/v1/events/{event_id}".encode()
        for key in [key for key in self.routes if key[1] == own or key[1].startswith(own + b"/")]:
            del self.routes[key]
