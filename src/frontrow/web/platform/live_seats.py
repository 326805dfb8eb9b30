"""The live maps of the events on sale: streams that run while an event's feed does."""

import asyncio

from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.core.background_tasks import start_loop
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.streams.seat_map import SeatStreams


class LiveSeats:
    """The streams of every map of this process, kept in step with what is on sale."""

    def __init__(self, max_streams: int, caps: AddressCaps) -> None:
        self._max_streams, self._caps = max_streams, caps
        self.streams: dict[str, SeatStreams] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def opened(self, event_id: str, feed: MapFeed | None) -> None:
        """An event's feed runs from now on; without a feed: the event is over."""
        if feed is None:
            self.streams.pop(event_id, None)
            task = self._tasks.pop(event_id, None)
            if task is not None:
                task.cancel()
            return
        streams = self.streams[event_id] = SeatStreams(feed, self._max_streams, self._caps)
        self._tasks[event_id] = start_loop(streams.run, "seat streams", event_id=event_id)

    async def aclose(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
