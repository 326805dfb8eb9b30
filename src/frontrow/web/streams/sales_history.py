"""The last hour of every event sold here, a point every few seconds, whether or not somebody watches.

So a reload of the live page, or a second organiser who opens it in the middle of the sale, sees how it came to this.
A point is counted from memory (the room, the map, this server's answers); the ledger is not asked. Events that are no
longer sold here are forgotten; a server that was started a minute ago knows a minute.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.jobs.background_jobs import Job, every
from frontrow.boxoffice.model.sales_figures import Percentiles, RoomFigures
from frontrow.core.clock import US_PER_S, Clock

EVERY_S: Final = 5.0
MAX_POINTS: Final = 720
MAX_EVENTS: Final = 200
HELD, SOLD = 1, 2
SPEED: Final = "hold"  # the answer buyers wait for


class Point(msgspec.Struct, frozen=True, array_like=True):
    """How it was at one moment; None where this server cannot tell."""

    at_s: int
    held: int
    sold: int
    waiting: int | None = None
    active: int | None = None
    admitted_per_s: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None


class SalesHistory:
    """Remembers points by event."""

    def __init__(
        self,
        clock: Clock,
        events: Callable[[], Iterable[str]],
        seats_of: Callable[[str], bytes | bytearray | None],
        room_of: Callable[[str], RoomFigures | None],
        speeds: Callable[[], Mapping[str, Percentiles]],
    ) -> None:
        self._clock, self._events = clock, events
        self._seats_of, self._room_of, self._speeds = seats_of, room_of, speeds
        self._points: dict[str, deque[Point]] = {}

    async def record_points(self) -> None:
        """Add one point for every event that is sold here."""
        at_s, speed = self._clock() // US_PER_S, self._speeds().get(SPEED)
        sold_here = list(self._events())[:MAX_EVENTS]
        for gone in self._points.keys() - set(sold_here):
            del self._points[gone]
        for event_id in sold_here:
            states, room = self._seats_of(event_id) or b"", self._room_of(event_id)
            point = Point(at_s, states.count(HELD), states.count(SOLD))
            if room is not None:
                point = replace(point, waiting=room.waiting, active=room.active, admitted_per_s=room.admitted_per_s)
            if speed is not None:
                point = replace(point, p50_ms=speed.p50_ms, p99_ms=speed.p99_ms)
            ring = self._points.setdefault(event_id, deque(maxlen=MAX_POINTS))
            if not ring or ring[-1].at_s < at_s:  # a clock that was set back waits until time has caught up
                ring.append(point)

    def of(self, event_id: str) -> list[Point]:
        """The points of an event, oldest first."""
        return list(self._points.get(event_id, ()))

    def job(self) -> Job:
        """What goes on by itself in every server."""
        return every("figures history", self.record_points, EVERY_S)
