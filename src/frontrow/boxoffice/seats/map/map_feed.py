"""The live map of one event on one server: finds what changed, publishes it, and serves any number of viewers.

Code that changes seats calls `notify(indexes)`. Every tick the feed reads the current states of those seats from the
claim store, publishes the differences as one frame, and applies the frames of other servers. A notified seat is read
again on the next tick, because two servers may publish in another order than the seats changed. Every tick also audits
a slice of all seats. So a change whose server died, or a hold that expired, reaches the map without a notice. A viewer
is only a position in the stream: slow viewers are reset, and none can make the server's memory grow.

A map that nobody looks at rests: frames of other servers still arrive, but ticks are rare, so hundreds of quiet events
cost a server nearly nothing. The first one to look (`use`) or a changed seat wakes it, and the whole plan is compared.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from frontrow.boxoffice.seats.map.map_ring import HEARTBEAT, MapRing, OnChanges
from frontrow.boxoffice.seats.model.map_format import Frame, encode_changes
from frontrow.boxoffice.seats.ports.seat_map import Exchange, FrameLog
from frontrow.core.background_tasks import start_loop
from frontrow.core.errors import FrontrowError, Overloaded
from frontrow.core.failures import note_failure

MAX_STOP_TRIES = 50
MAX_OWNER_LOOKUPS = 2_000  # per tick; the rest waits for the next ticks


ReadStates = Callable[[Sequence[int]], Awaitable[bytes]]  # the current state (0 to 3) of each of the seats


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """Bounds and intervals of a feed."""

    tick_s: float = 0.25
    heartbeat_ticks: int = 40
    poll_ticks: int = 2  # the log is read at least this often, even without a notice
    audit_ticks: int = 80  # the whole plan is compared with the claim store once in this many ticks
    max_viewers: int = 1_000_000  # a last bound; a server has its own (server.max_streams)
    max_frames: int = 600
    retry_s: float = 0.5
    rest_after_ticks: int = 120  # without a viewer or a change
    rest_s: float = 600.0  # the pause between two ticks of a resting map
    listening_within_s: float = 1.0  # how long a map that starts waits for its subscription


class MapFeed:
    """The map of one event on this server. `start` and `stop` run it; `tick` is one step."""

    def __init__(
        self,
        seats: int,
        log: FrameLog,
        read_states: ReadStates,
        settings: FeedSettings | None = None,
        on_changes: OnChanges | None = None,
        on_sync: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings or FeedSettings()
        self.ring = MapRing(seats, self.settings.max_frames, on_changes)
        self._on_sync = on_sync  # called whenever the map is in step with the log
        self.viewers = 0
        self.resyncs = 0
        self.failures = 0
        self._seats = seats
        self._log = log
        self._read_states = read_states
        self._changed: set[int] = set()
        self._recheck: set[int] = set()
        self._owners_wanted: set[int] = set()
        self._audit_at = 0
        self._ticks = 0
        self._behind = True  # a gap was found: the next tick closes it
        self._used = False  # since the last tick
        self._unused_ticks = self.settings.rest_after_ticks  # an event rests until somebody comes
        self._resting = False
        self._woken = asyncio.Event()
        self._tick_now = asyncio.Event()
        self._listening = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def notify(self, indexes: Iterable[int]) -> None:
        """These seats may have changed."""
        self._changed.update(indexes)
        self.use()

    def use(self) -> None:
        """Somebody looks at the map: keep it at its usual pace."""
        if not self._used:
            self._used = True
            if self._resting:
                self._tick_now.set()

    def request_owners(self, indexes: Iterable[int]) -> None:
        """Read these seats on one of the next ticks, so that the listener of `ClaimStates` gets their owners."""
        self._owners_wanted.update(indexes)

    def snapshot(self) -> bytes:
        """The snapshot document for a new viewer."""
        self.use()
        return self.ring.snapshot()

    def state(self, index: int) -> int:
        """What the map says of a seat, without asking anybody."""
        return self.ring.states[index]

    async def start(self) -> None:
        """Load the map from the claim store, then keep it up to date in the background.

        It listens before it loads: then no frame is missed between the two, and nothing has to be read again.
        """
        self._stopping = False
        self._tasks = [start_loop(self._listen_forever, "seat map")]
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.listening_within_s):
                    await self._listening.wait()
            self._tick_now.clear()
            await self.resync()
        except BaseException:
            await self.stop()
            raise
        self._tasks.append(start_loop(self._tick_forever, "seat map"))

    async def stop(self) -> None:
        """End the background work. The streams of viewers end."""
        self._stopping = True
        for _ in range(MAX_STOP_TRIES):  # a client library may swallow a cancellation: cancel again
            for task in self._tasks:
                task.cancel()
            if self._tasks and (await asyncio.wait(self._tasks, timeout=0.2))[1]:
                continue
            break
        self._tasks = []

    async def resync(self) -> None:
        """Load all states from the claim store and continue at the current end of the log."""
        self._behind = False  # set before the call: a frame that arrives meanwhile sets it again
        now = await self._log.exchange("", -1, 0)
        states = await self._read_states(range(self._seats))
        self.ring.reset(states, now.epoch, now.seq)
        self.resyncs += 1
        self._wake()

    async def tick(self) -> None:
        """Read the seats that may have changed, publish the differences, apply the frames of others."""
        changed, recheck = self._changed, self._recheck
        self._changed, self._recheck = set(), set()
        owners_wanted = set(itertools.islice(self._owners_wanted, MAX_OWNER_LOOKUPS))
        self._owners_wanted -= owners_wanted
        try:
            indexes = sorted(changed | recheck | owners_wanted | self._next_audit())
            states = await self._read_states(indexes)
            shown = self.ring.states
            changes = {i: state for i, state in zip(indexes, states, strict=True) if shown[i] != state}
            if changes or self._behind or self._ticks % self.settings.poll_ticks == 0:
                self._behind = False  # set before the call: a frame that arrives meanwhile sets it again
                await self._apply(await self._log.exchange(encode_changes(changes), self.ring.epoch, self.ring.seq))
                if self._on_sync is not None:
                    self._on_sync()
            self._recheck |= changed
        except BaseException:
            self._changed |= changed | recheck  # the next tick reads them again
            self._behind = True
            raise
        self._ticks += 1
        if self._ticks % self.settings.heartbeat_ticks == 0:
            self._wake()

    async def follow(self, epoch: int, seq: int) -> AsyncGenerator[bytes, None]:
        """The stream for one viewer at (epoch, seq): server-sent events until the viewer disconnects."""
        if self.viewers >= self.settings.max_viewers:
            raise Overloaded(f"{self.viewers} viewers are connected; poll instead", retry_after_s=5.0)
        self.viewers += 1
        self.use()
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
        """Wait until the map changes or a heartbeat is due. For code that passes frames on to many viewers."""
        await self._woken.wait()

    def _next_audit(self) -> set[int]:
        """The next slice of the plan to compare with the claim store."""
        size = -(-self._seats // self.settings.audit_ticks)
        first = self._audit_at
        self._audit_at = (first + size) if first + size < self._seats else 0
        return set(range(first, min(first + size, self._seats)))

    async def _apply(self, exchange: Exchange) -> None:
        if exchange.epoch != self.ring.epoch or exchange.frames is None:
            await self.resync()
            return
        for frame in exchange.frames:
            self.ring.apply(frame)
        if exchange.frames:
            self._wake()

    def _on_frame(self, frame: Frame) -> None:
        before = self.ring.seq
        if not self.ring.apply(frame):
            self._behind = True
            self._tick_now.set()
        elif self.ring.seq != before:
            self._wake()

    def _on_ready(self) -> None:
        """The subscription is active: fetch what was published before it."""
        self._listening.set()
        self._behind = True
        self._tick_now.set()

    def _wake(self) -> None:
        self._woken.set()
        self._woken = asyncio.Event()

    async def _tick_forever(self) -> None:
        while not self._stopping:
            self._resting = self._may_rest()
            with contextlib.suppress(TimeoutError):  # not wait_for: in Python 3.11 it can swallow a cancellation
                async with asyncio.timeout(self.settings.rest_s if self._resting else self.settings.tick_s):
                    await self._tick_now.wait()
            self._tick_now.clear()
            if self._resting and self._used:  # what happened meanwhile without a notice, an expired hold for example
                self._changed.update(range(self._seats))
            try:
                await self.tick()
            except FrontrowError as error:
                self.failures += 1
                note_failure(error)
                await asyncio.sleep(self.settings.retry_s)

    def _may_rest(self) -> bool:
        """Whether nobody looked at the map and nothing changed for a while."""
        busy = self._used or self.viewers or self._changed or self._recheck or self._owners_wanted
        self._used = False
        self._unused_ticks = 0 if busy else self._unused_ticks + 1
        return self._unused_ticks > self.settings.rest_after_ticks

    async def _listen_forever(self) -> None:
        while not self._stopping:  # reconnect after a pause
            try:
                await self._log.listen(self._on_frame, self._on_ready)
            except FrontrowError as error:
                self.failures += 1
                note_failure(error)
            await asyncio.sleep(self.settings.retry_s)
