"""The port of the frame log, which numbers the map frames of an event for all servers; in memory for one process.

`exchange` appends a frame (or nothing) and returns all frames the caller has not seen. It is one atomic step, so every
server sees the same order. `listen` delivers new frames quickly but may lose some. `exchange` then fills the gap, or
reports that it cannot; the caller must then resync.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from frontrow.boxoffice.seats.model.map_format import Frame
from frontrow.core.clock import Clock

MAX_FRAMES = 600  # kept per event


class Exchange(NamedTuple):
    """The last number of the log, and the frames the caller missed; None when the log no longer has them."""

    epoch: int
    seq: int
    frames: tuple[Frame, ...] | None


class FrameLog(Protocol):
    """The numbered frames of one event.

    - The n-th frame of an epoch has seq n and prev n-1, whoever appends it, also with many callers at once.
    - `exchange(body, epoch, seq)` appends `body` unless it is empty. Then it returns all frames after (epoch, seq),
      including its own; None when the epoch differs, the log no longer reaches back, or `seq` is not in it.
    - A log that lost its content begins a new epoch, greater than all before.
    - `listen` calls back for each frame appended after it began, in order, possibly missing some, until cancelled. It
      raises when the connection is lost.
    """

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange: ...

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None: ...


class FrameLogs(Protocol):
    """The frame logs of all events, over shared connections."""

    def log_of(self, event_id: str) -> FrameLog: ...

    async def aclose(self) -> None: ...


class MemoryFrameLogs:
    """The frame logs of events that one process sells alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def log_of(self, event_id: str) -> "MemoryFrameLog":
        return MemoryFrameLog(self._clock())

    async def aclose(self) -> None:
        """Nothing is open."""


class MemoryFrameLog:
    """Frames of one event inside one process."""

    def __init__(self, epoch: int, max_frames: int = MAX_FRAMES) -> None:
        self._epoch = epoch
        self._seq = 0
        self._frames: deque[Frame] = deque(maxlen=max_frames)
        self._listeners: list[Callable[[Frame], None]] = []

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange:
        if body:
            frame = Frame(self._epoch, self._seq, self._seq + 1, body)
            self._seq += 1
            self._frames.append(frame)
            for listener in self._listeners:
                listener(frame)
        missing = self._seq - seq
        if epoch != self._epoch or not 0 <= missing <= len(self._frames):
            return Exchange(self._epoch, self._seq, None)
        return Exchange(self._epoch, self._seq, tuple(self._frames)[len(self._frames) - missing :])

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        self._listeners.append(on_frame)
        try:
            on_ready()
            await asyncio.get_running_loop().create_future()  # until cancelled
        finally:
            self._listeners.remove(on_frame)
