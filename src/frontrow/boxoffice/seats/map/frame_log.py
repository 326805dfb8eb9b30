"""The frame log in memory, for events that one process sells alone. The contract is `seats.ports.seat_map.FrameLog`."""

import asyncio
from collections import deque
from collections.abc import Callable

from frontrow.boxoffice.seats.model.map_format import Frame
from frontrow.boxoffice.seats.ports.seat_map import Exchange
from frontrow.core.clock import Clock

MAX_FRAMES = 600  # kept per event


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
