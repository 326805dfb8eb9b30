"""Runs the live streams of rooms: each follows its room's now-serving document while the room is served here."""

import asyncio
from collections.abc import Callable

from frontrow.core.background_tasks import start_loop
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.streams.positions import Streams


class RoomStreams:
    """The streams of this process by room, which rooms join and leave while it runs."""

    def __init__(self, room: WaitingRoom) -> None:
        self._room = room
        self._stops: dict[str, Callable[[], None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, event: str, streams: Streams) -> None:
        """Show the room's document to whoever listens, from now on."""
        if event in self._tasks:
            return
        room = self._room.cache.find(event)
        streams.show(room.now_serving().body)
        self._stops[event] = room.subscribe(lambda document: streams.show(document.body))
        self._tasks[event] = start_loop(streams.run, "streams", event_id=event)

    async def stop(self, event: str) -> None:
        """End the room's streams."""
        stop, task = self._stops.pop(event, None), self._tasks.pop(event, None)
        if stop is not None:
            stop()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def aclose(self) -> None:
        """End all of them."""
        await asyncio.gather(*map(self.stop, list(self._tasks)))
