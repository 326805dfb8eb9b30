"""The live map of one event on one server: learns what changed, publishes it, and feeds any number of viewers.

Whoever changes seats calls `notify(indexes)`. Every tick the feed asks the truth (the claim store) what those seats are
now, publishes the differences as one frame, and takes in what the others published. A notified seat is looked at once
more on the next tick, because two servers may publish in another order than the seats changed; and every tick a slice
of all seats is audited, so that a change whose server died, or a hold that ran out, reaches the map without anybody
telling. Viewers keep only a position: slow ones are reset, none can make the server's memory grow.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from frontrow.boxoffice.model.map_format import Frame, encode_changes
from frontrow.boxoffice.seatmap.frame_log import Exchange, FrameLog
from frontrow.boxoffice.seatmap.map_ring import HEARTBEAT, MapRing, OnChanges
from frontrow.core.errors import FrontrowError, Overloaded

MAX_STOP_TRIES = 50
MAX_LOOKS = 2_000  # a tick; the others wait for the next ones


class SeatTruth(Protocol):
    """Answers the state (0 to 3) of each asked seat, now."""

    async def __call__(self, indexes: Sequence[int]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Bounds and paces of a feed."""

    tick_s: float = 0.25
    heartbeat_ticks: int = 40
    poll_ticks: int = 2  # the log is asked for news at least so often, even if nobody says there are any
    audit_ticks: int = 80  # the whole plan is compared with the truth once in so many ticks
    max_viewers: int = 15_000
    max_frames: int = 600
    retry_s: float = 0.5


class MapFeed:
    """One event's map on this server. `start` and `stop` run it; `tick` is one step of it."""

    def __init__(
        self,
        seats: int,
        log: FrameLog,
        truth: SeatTruth,
        settings: FeedSettings | None = None,
        on_changes: OnChanges | None = None,
        on_sync: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings or FeedSettings()
        self.ring = MapRing(seats, self.settings.max_frames, on_changes)
        self._on_sync = on_sync  # called whenever the map is as the log has it
        self.viewers = 0
        self.resyncs = 0
        self.failures = 0
        self._seats = seats
        self._log = log
        self._truth = truth
        self._dirty: set[int] = set()
        self._again: set[int] = set()
        self._curious: set[int] = set()
        self._audit_at = 0
        self._ticks = 0
        self._behind = True  # a gap was seen: the next tick closes it
        self._woken = asyncio.Event()
        self._hurry = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def notify(self, indexes: Iterable[int]) -> None:
        """These seats may have changed."""
        self._dirty.update(indexes)

    def look(self, indexes: Iterable[int]) -> None:
        """Have the truth asked about these seats soon, for whoever listens to it."""
        self._curious.update(indexes)

    def snapshot(self) -> bytes:
        """The snapshot document for a viewer who begins."""
        return self.ring.snapshot()

    def state(self, index: int) -> int:
        """What the map says of a seat, without asking anybody."""
        return self.ring.states[index]

    async def start(self) -> None:
        """Take the map over from the truth, then keep it going in the background."""
        self._stopping = False
        await self.resync()
        self._tasks = [asyncio.create_task(self._tick_forever()), asyncio.create_task(self._listen_forever())]

    async def stop(self) -> None:
        """End the background work; viewers see their streams end."""
        self._stopping = True
        for _ in range(MAX_STOP_TRIES):  # a library below may swallow a cancellation: ask again
            for task in self._tasks:
                task.cancel()
            if self._tasks and (await asyncio.wait(self._tasks, timeout=0.2))[1]:
                continue
            break
        self._tasks = []

    async def resync(self) -> None:
        """Take all states from the truth and stand where the log stands now."""
        self._behind = False  # before asking: a frame that arrives meanwhile sets it again
        now = await self._log.exchange("", -1, 0)
        states = await self._truth(range(self._seats))
        self.ring.reset(states, now.epoch, now.seq)
        self.resyncs += 1
        self._wake()

    async def tick(self) -> None:
        """Look at what may have changed, publish it, take in what others published."""
        fresh, again = self._dirty, self._again
        self._dirty, self._again = set(), set()
        curious = set(itertools.islice(self._curious, MAX_LOOKS))
        self._curious -= curious
        try:
            looked = sorted(fresh | again | curious | self._audit())
            states = await self._truth(looked)
            mine = self.ring.states
            changes = {i: state for i, state in zip(looked, states, strict=True) if mine[i] != state}
            if changes or self._behind or self._ticks % self.settings.poll_ticks == 0:
                self._behind = False  # before asking: a frame that arrives meanwhile sets it again
                await self._take(await self._log.exchange(encode_changes(changes), self.ring.epoch, self.ring.seq))
                if self._on_sync is not None:
                    self._on_sync()
            self._again |= fresh
        except BaseException:
            self._dirty |= fresh | again  # nothing is forgotten: the next tick looks again
            self._behind = True
            raise
        self._ticks += 1
        if self._ticks % self.settings.heartbeat_ticks == 0:
            self._wake()

    async def follow(self, epoch: int, seq: int) -> AsyncGenerator[bytes, None]:
        """The stream for one viewer who has (epoch, seq): server-sent events until the viewer goes away."""
        if self.viewers >= self.settings.max_viewers:
            raise Overloaded(f"{self.viewers} viewers are connected; poll instead", retry_after_s=5.0)
        self.viewers += 1
        try:
            while True:
                woken = self._woken
                chunk = self.ring.since(epoch, seq)
                epoch, seq = self.ring.epoch, self.ring.seq
                if chunk:
                    yield chunk
                else:
                    await woken.wait()
                    if (epoch, seq) == (self.ring.epoch, self.ring.seq):
                        yield HEARTBEAT
        finally:
            self.viewers -= 1

    async def woken(self) -> None:
        """Until the map changes or a heartbeat is due; for whoever passes frames on to many viewers."""
        await self._woken.wait()

    def _audit(self) -> set[int]:
        """The next slice of the plan to compare with the truth."""
        size = -(-self._seats // self.settings.audit_ticks)
        first = self._audit_at
        self._audit_at = (first + size) if first + size < self._seats else 0
        return set(range(first, min(first + size, self._seats)))

    async def _take(self, answer: Exchange) -> None:
        if answer.epoch != self.ring.epoch or answer.frames is None:
            await self.resync()
            return
        for frame in answer.frames:
            self.ring.apply(frame)
        if answer.frames:
            self._wake()

    def _on_frame(self, frame: Frame) -> None:
        before = self.ring.seq
        if not self.ring.apply(frame):
            self._behind = True
            self._hurry.set()
        elif self.ring.seq != before:
            self._wake()

    def _on_ready(self) -> None:
        """Just subscribed: what was published before is fetched."""
        self._behind = True
        self._hurry.set()

    def _wake(self) -> None:
        self._woken.set()
        self._woken = asyncio.Event()

    async def _tick_forever(self) -> None:
        while not self._stopping:
            with contextlib.suppress(TimeoutError):  # not wait_for: in Python 3.11 it can swallow a cancellation
                async with asyncio.timeout(self.settings.tick_s):
                    await self._hurry.wait()
            self._hurry.clear()
            try:
                await self.tick()
            except FrontrowError:
                self.failures += 1
                await asyncio.sleep(self.settings.retry_s)

    async def _listen_forever(self) -> None:
        while not self._stopping:  # a lost connection is taken up again after a pause
            try:
                await self._log.listen(self._on_frame, self._on_ready)
            except FrontrowError:
                self.failures += 1
            await asyncio.sleep(self.settings.retry_s)
