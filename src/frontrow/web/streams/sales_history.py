"""The last hour of every event sold here, a point every few seconds, whether or not somebody watches. While nothing
happens there is a point every few minutes.

So a reload of the live page, or a second organiser who opens it in the middle of the sale, sees how it came to this.
A point is counted from memory (the room, the map, this server's answers); the ledger is not asked. Events that are no
longer sold here are forgotten. With a `PointLog` all servers share their points, so one that was started a minute ago
shows the whole hour. Without it, or while it does not answer, a server knows what it has seen itself.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.organiser.model.sales_figures import Percentiles, RoomFigures
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.jobs import Job, every

EVERY_S: Final = 5.0
MAX_POINTS: Final = 720
MAX_EVENTS: Final = 200
QUIET_EVERY_S: Final = 300  # while nobody comes and no seat changes
HELD, SOLD = 1, 2
SPEED: Final = "hold"  # the answer buyers wait for

log = logging.getLogger("frontrow.web")


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


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Point).decode


def _is_quiet(last: Point, now: Point) -> bool:
    """Whether nobody is in the room and no seat has changed."""
    nobody = last.waiting == last.active == now.waiting == now.active == 0  # None: this server cannot tell
    return nobody and (last.held, last.sold) == (now.held, now.sold)


class PointLog(Protocol):
    """Where servers share their points."""

    def share(self, event_id: str, span: int, point: bytes, known_span: int, most: int) -> Awaitable[Sequence[bytes]]:
        """Add the point of a span, unless another server did. The points of all spans after the known one."""


class SalesHistory:
    """Remembers points by event."""

    def __init__(
        self,
        clock: Clock,
        events: Callable[[], Iterable[str]],
        seats_of: Callable[[str], bytes | bytearray | None],
        room_of: Callable[[str], RoomFigures | None],
        speeds: Callable[[], Mapping[str, Percentiles]],
        log: PointLog | None = None,
        mark_of: Callable[[str], object] = lambda event_id: None,
    ) -> None:
        """`mark_of` names what an event's figures were made from: while it is the same, so are they."""
        self._log, self._mark_of = log, mark_of
        self._marks: dict[str, object] = {}
        self._clock, self._events = clock, events
        self._seats_of, self._room_of, self._speeds = seats_of, room_of, speeds
        self._points: dict[str, deque[Point]] = {}

    async def record_points(self) -> None:
        """Add one point for every event that is sold here."""
        at_s, speed = self._clock() // US_PER_S, self._speeds().get(SPEED)
        sold_here = list(self._events())[:MAX_EVENTS]
        for gone in self._points.keys() - set(sold_here):
            del self._points[gone]
            self._marks.pop(gone, None)
        for event_id in sold_here:
            mark = self._mark_of(event_id)
            if mark is not None and self._marks.get(event_id) == mark and self._is_still_quiet(event_id, at_s):
                continue
            self._marks[event_id] = mark
            await asyncio.sleep(0)  # counting 200 large maps in one go would stop the loop for 50 ms
            states, room = self._seats_of(event_id) or b"", self._room_of(event_id)
            point = Point(at_s, states.count(HELD), states.count(SOLD))
            if room is not None:
                point = replace(point, waiting=room.waiting, active=room.active, admitted_per_s=room.admitted_per_s)
            if speed is not None:
                point = replace(point, p50_ms=speed.p50_ms, p99_ms=speed.p99_ms)
            ring = self._points.setdefault(event_id, deque(maxlen=MAX_POINTS))
            last = ring[-1] if ring else None
            if last is not None and _is_quiet(last, point):
                if point.at_s < last.at_s + QUIET_EVERY_S:
                    continue
            elif last is not None and point.at_s > last.at_s + 2 * EVERY_S:  # it was quiet until a moment ago
                await self._add(event_id, ring, replace(last, at_s=int(point.at_s - EVERY_S)))
            await self._add(event_id, ring, point)

    def _is_still_quiet(self, event_id: str, at_s: int) -> bool:
        """Whether nobody was there at the last point, and the next one is not due yet."""
        ring = self._points.get(event_id)
        last = ring[-1] if ring else None
        return last is not None and _is_quiet(last, last) and at_s < last.at_s + QUIET_EVERY_S

    async def _add(self, event_id: str, ring: "deque[Point]", point: Point) -> None:
        for new in await self._share(event_id, point, ring[-1].at_s if ring else 0):
            if not ring or ring[-1].at_s < new.at_s:  # a clock that was set back waits until time has caught up
                ring.append(new)

    async def _share(self, event_id: str, point: Point, known_s: int) -> list[Point]:
        """This point, or what all servers noted since the last one."""
        if self._log is None:
            return [point]
        spans = int(point.at_s // EVERY_S), int(known_s // EVERY_S)
        try:
            found = await self._log.share(event_id, spans[0], _encode(point), spans[1], MAX_POINTS)
        except Exception as error:
            log.info("the history of figures is not shared now: %s: %s", type(error).__name__, error)
            return [point]
        return [_decode(each) for each in found]

    def of(self, event_id: str) -> list[Point]:
        """The points of an event, oldest first."""
        return list(self._points.get(event_id, ()))

    def job(self) -> Job:
        """What goes on by itself in every server."""
        return every("figures history", self.record_points, EVERY_S)
