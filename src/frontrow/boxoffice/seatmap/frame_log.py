"""The port through which the servers of an event number their frames and learn each other's; in memory for one process.

`exchange` appends a frame (or nothing) and answers everything the caller has not seen, in one atomic step, so the order
of frames is the same for everybody. `listen` is the quick way of hearing of new frames; it may lose some, and
`exchange` then fills the gap, or says that it cannot and the caller must start anew.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from frontrow.boxoffice.model.map_format import Frame

MAX_FRAMES = 600


class Exchange(NamedTuple):
    """Where the stream stands, and the frames the caller missed; None when they cannot be had."""

    epoch: int
    seq: int
    frames: tuple[Frame, ...] | None


class FrameLog(Protocol):
    """The numbered frames of one event.

    - The n-th frame of an epoch has seq n and prev n-1, whoever appends it and however many do at once.
    - `exchange(body, epoch, seq)` appends `body` unless it is empty, then answers all frames after (epoch, seq), its
      own included; None when the epoch is another, the log no longer reaches back, or `seq` is not in it at all.
    - A log that lost everything begins a new epoch, greater than all before.
    - `listen` calls back for each frame appended after it began, in order, perhaps missing some, until cancelled; it
      raises when the connection is lost.
    """

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange: ...

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None: ...


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
