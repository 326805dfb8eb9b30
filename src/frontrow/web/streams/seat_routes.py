"""Serves an event's seats once its feed runs: the streams of its map, and its routes in the hot lane."""

import asyncio
from collections.abc import Callable

from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.core.background_tasks import start_loop
from frontrow.web.endpoints.event_details import EventViews
from frontrow.web.endpoints.passes import Passes
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.seats import ShopEndpoints
from frontrow.web.lane.route_table import HotTable
from frontrow.web.server.address_caps import AddressCaps
from frontrow.web.streams.seat_map import SeatStreams


class LiveSeats:
    """The shop's endpoints and the hot table of this process, kept in step with what is on sale."""

    def __init__(
        self,
        room: RoomEndpoints,
        holds: HoldService,
        purchases: Purchases,
        feeds: dict[str, MapFeed],
        passes: Passes,
        views: EventViews,
        max_streams: int,
        caps: AddressCaps,
        token_of: Callable[[str], str],
        is_ruled: Callable[[str, str], bool] | None = None,
    ) -> None:
        self.passes, self._max_streams, self._caps = passes, max_streams, caps
        self._streams: dict[str, SeatStreams] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.shop = ShopEndpoints(holds, feeds, self._streams, room.entry, passes, token_of, purchases)
        self.table = HotTable(room, self.shop, views, is_ruled)

    def opened(self, event_id: str, feed: MapFeed | None) -> None:
        """An event's feed runs from now on; without a feed: the event is over."""
        if feed is None:
            self.table.drop(event_id)
            self._streams.pop(event_id, None)
            task = self._tasks.pop(event_id, None)
            if task is not None:
                task.cancel()
            return
        streams = self._streams[event_id] = SeatStreams(feed, self._max_streams, self._caps)
        self._tasks[event_id] = start_loop(streams.run, "seat streams", event_id=event_id)
        self.table.add(event_id)

    async def aclose(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
