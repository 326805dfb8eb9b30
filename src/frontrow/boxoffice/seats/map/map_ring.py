"""The map of an event in one server's memory: the states, their position in the numbered stream, and the last frames.

No I/O: frames go in, bytes for viewers come out. Each frame is encoded once and shared by all viewers. A viewer whose
position is older than the ring is told to fetch a new snapshot.
"""

from collections import deque
from collections.abc import Callable, Mapping

from frontrow.boxoffice.seats.model.map_format import Frame, Snapshot, decode_changes, write_snapshot

HEARTBEAT = b"event: hb\ndata:\n\n"
OnChanges = Callable[[Mapping[int, int]], None]


def encode_frame(frame: Frame) -> bytes:
    """A frame as a server-sent event."""
    return f"event: d\nid: {frame.epoch}-{frame.seq}\ndata: {frame.line()}\n\n".encode()


def encode_reset(epoch: int, seq: int) -> bytes:
    """Tells a viewer to fetch a new snapshot."""
    return f"event: reset\ndata: {epoch} {seq}\n\n".encode()


class MapRing:
    """States of all seats after frame `seq` of `epoch`, and the frames that led there, at most `max_frames`.

    `on_changes` is called with each applied change (seat → state), for other parts of this server.
    """

    def __init__(self, seats: int, max_frames: int = 600, on_changes: OnChanges | None = None) -> None:
        self.states = bytearray(seats)
        self.epoch = 0
        self.seq = 0
        self._frames: deque[tuple[Frame, bytes]] = deque(maxlen=max_frames)
        self._snapshot: bytes | None = None
        self._on_changes = on_changes

    def reset(self, states: bytes, epoch: int, seq: int) -> None:
        """Replace all states. Viewers cannot get here by frames; they fetch a snapshot."""
        if len(states) != len(self.states):
            raise ValueError(f"{len(states)} states for {len(self.states)} seats")
        changes = {i: state for i, state in enumerate(states) if self.states[i] != state} if self._on_changes else {}
        self.states[:] = states
        if self._on_changes and changes:
            self._on_changes(changes)
        self.epoch, self.seq = epoch, seq
        self._frames.clear()
        self._snapshot = None

    def apply(self, frame: Frame) -> bool:
        """Apply the frame if it is the next one. True also for a frame already applied; False for a gap."""
        if frame.epoch != self.epoch or frame.prev > self.seq:
            return False
        if frame.seq <= self.seq:
            return True
        changes = decode_changes(frame.body, len(self.states))
        for index, state in changes.items():
            self.states[index] = state
        if self._on_changes:
            self._on_changes(changes)
        self.seq = frame.seq
        self._frames.append((frame, encode_frame(frame)))
        self._snapshot = None
        return True

    def snapshot(self) -> bytes:
        """The snapshot document, encoded once per state of the map."""
        if self._snapshot is None:
            self._snapshot = write_snapshot(Snapshot(bytes(self.states), self.seq, self.epoch))
        return self._snapshot

    def since(self, epoch: int, seq: int) -> bytes:
        """The bytes that bring a viewer up to date: frames, a reset, or nothing."""
        if (epoch, seq) == (self.epoch, self.seq):
            return b""
        missing = self.seq - seq
        if epoch != self.epoch or not 0 < missing <= len(self._frames):
            return encode_reset(self.epoch, self.seq)
        if missing == 1:
            return self._frames[-1][1]  # the usual case: the same bytes object for every viewer
        return b"".join(self._frames[position][1] for position in range(-missing, 0))
