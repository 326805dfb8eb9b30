"""The waiting rooms of the events on sale: made while running, opened when the sale begins, with their live streams.

A room is made as soon as its event is published. Before the sale begins it is a pre-queue, whose order is drawn at the
opening; every server tries to open it, and the store lets it happen once.
"""

import asyncio
import contextlib
from collections.abc import Callable

from frontrow.boxoffice.model.events import Event
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.config import Phase, RoomConfig
from frontrow.waitingroom.humans import HumanCheck
from frontrow.web.live import Streams
from frontrow.web.room_endpoints import RoomEndpoints

EVERY_S = 0.25


class Rooms:
    """Makes and opens the rooms of this process, and runs their streams."""

    def __init__(
        self,
        endpoints: RoomEndpoints,
        config: RoomConfig,
        clock: Clock,
        make_streams: Callable[[], Streams],
        make_check: Callable[[str], HumanCheck | None] = lambda event: None,
    ) -> None:
        self._endpoints, self._config, self._clock = endpoints, config, clock
        self._make_streams, self._make_check = make_streams, make_check
        self._starts_at_us: dict[str, int] = {}
        self._stops: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, event: Event) -> None:
        """Make the event's room unless it is there; called for every new or changed event."""
        endpoints, room = self._endpoints, self._endpoints.room
        self._starts_at_us[event.id] = event.sale_starts_at_us
        if event.id in endpoints.streams:
            return
        early = self._clock() < event.sale_starts_at_us
        await room.create(event.id, self._config, Phase.PREQUEUE if early else Phase.OPEN)
        check = self._make_check(event.id)
        if check is not None:
            endpoints.entry.learn(event.id, check)
        streams = self._make_streams()
        streams.show(room.now_serving(event.id).body)
        self._stops.append(room.subscribe(event.id, lambda document: streams.show(document.body)))
        self._tasks.append(asyncio.create_task(streams.run(), name=f"streams {event.id}"))
        endpoints.streams[event.id] = streams

    async def open_due(self) -> None:
        """Open the pre-queues whose sale has begun."""
        now_us, room = self._clock(), self._endpoints.room
        for event_id, starts_at_us in list(self._starts_at_us.items()):
            if now_us < starts_at_us or event_id not in self._endpoints.streams:
                continue
            if room.view(event_id).state.phase is Phase.PREQUEUE:
                await room.open(event_id)

    async def run(self) -> None:
        """Look for pre-queues to open until cancelled."""
        while True:
            with contextlib.suppress(FrontrowError):  # the room's store is away: tried again
                await self.open_due()
            await asyncio.sleep(EVERY_S)

    async def aclose(self) -> None:
        for stop in self._stops:
            stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
