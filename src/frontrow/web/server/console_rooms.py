"""Opens and closes rooms of the console while the server runs: human check, streams, the fast path's routes."""

from collections.abc import Callable

from frontrow.waitingroom.ports import HumanCheck
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.fastpath.pending_replies import Handler
from frontrow.web.fastpath.room_routes import hot_routes_of
from frontrow.web.streams.positions import Streams
from frontrow.web.streams.room_streams import RoomStreams


class ServedRooms:
    """Implements the console's `RoomOpener` for one process."""

    def __init__(
        self,
        endpoints: ShardedEndpoints,
        routes: dict[tuple[bytes, bytes], Handler],
        running: RoomStreams,
        make_streams: Callable[[], Streams],
        make_check: Callable[[str], HumanCheck | None],
    ) -> None:
        self._endpoints, self._routes, self._running = endpoints, routes, running
        self._make_streams, self._make_check = make_streams, make_check

    async def open_room(self, name: str) -> None:
        """Serve the room. One that is served since the start stays as it is."""
        rooms = self._endpoints.rooms
        if name in rooms.streams:
            return
        rooms.entry.set_check(name, self._make_check(name))
        streams = rooms.streams[name] = self._make_streams()
        self._running.start(name, streams)
        self._routes |= hot_routes_of(rooms, name, streams)

    async def close_room(self, name: str) -> None:
        """Serve it no longer: its routes answer that there is no such room."""
        rooms = self._endpoints.rooms
        streams = rooms.streams.pop(name, None)
        if streams is None:
            return
        for address in hot_routes_of(rooms, name, streams):
            self._routes.pop(address, None)
        await self._running.stop(name)
        rooms.entry.set_check(name, None)
