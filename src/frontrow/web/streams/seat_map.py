"""The live map by server-sent events. Frames are shared by all viewers, on the fast path and behind the framework.

On each change, every viewer at the frame before gets the same bytes, already wrapped as an HTTP chunk. A viewer who
reads too slowly is skipped and brought up to date when the connection drains: by the missed frames, or by `reset` when
the ring no longer reaches back that far. A connection that does not drain at all is closed after a while.
"""

import asyncio
import secrets
from typing import Any

from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.seats.map.map_ring import HEARTBEAT
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.streams.positions import MAX_INPUT_BYTES, MAX_MISSED, begin_stream
from frontrow.web.streams.positions import chunk as wrapped

PORTION = 250
HIGH_WATER_BYTES = 64 * 1024


class SeatStream(asyncio.Protocol):
    """One viewer's connection."""

    __slots__ = (
        "_address",
        "_connections",
        "_input_bytes",
        "_missed",
        "_paused",
        "_streams",
        "_transport",
        "epoch",
        "seq",
    )

    def __init__(
        self,
        streams: "SeatStreams",
        transport: asyncio.Transport,
        connections: set[Any],
        position: tuple[int, int],
        address: str,
    ) -> None:
        self._streams, self._transport, self._connections = streams, transport, connections
        self.epoch, self.seq = position
        self._address = address
        streams.caps.add(address)
        self._paused = False
        self._missed = self._input_bytes = 0
        connections.add(self)
        streams.readers.add(self)

    def bring(self, epoch: int, seq: int, shared: bytes, before: int) -> None:
        """Move this viewer to (epoch, seq); `shared` is the chunk that leads there from `before`."""
        if self._paused:
            self._missed += 1
            if self._missed > MAX_MISSED:
                self._transport.abort()
            return
        if (self.epoch, self.seq) == (epoch, before):
            self._transport.write(shared)
            self.epoch, self.seq = epoch, seq
        else:
            self._catch_up()

    def _catch_up(self) -> None:
        ring = self._streams.feed.ring
        self._transport.write(self._streams.since(self.epoch, self.seq))
        self.epoch, self.seq = ring.epoch, ring.seq

    def data_received(self, data: bytes) -> None:
        """Nothing is expected from a viewer; a flood ends the connection."""
        self._input_bytes += len(data)
        if self._input_bytes > MAX_INPUT_BYTES:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused, self._missed = False, 0
        ring = self._streams.feed.ring
        if (self.epoch, self.seq) != (ring.epoch, ring.seq):
            self._catch_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._streams.readers.discard(self)
        self._streams.caps.remove(self._address)
        self._connections.discard(self)

    def shutdown(self) -> None:
        """uvicorn is stopping: end the body properly, so that the browser reconnects elsewhere."""
        self._transport.write(b"0\r\n\r\n")
        self._transport.close()


class SeatStreams:
    """All viewers of one event's map in this process."""

    def __init__(self, feed: MapFeed, max_open: int, caps: AddressCaps | None = None) -> None:
        self.feed, self.max_open = feed, max_open
        self.caps = caps or AddressCaps(max_open)
        self.readers: set[SeatStream] = set()
        self.sent = 0

    def __len__(self) -> int:
        return len(self.readers) + self.feed.viewers

    def retry_after_s(self) -> int:
        """When a refused viewer should try the stream again: not all at once."""
        return 10 + secrets.randbelow(10)

    def since(self, epoch: int, seq: int) -> bytes:
        """What brings a viewer from there to now, as an HTTP chunk; a heartbeat when there is nothing."""
        return wrapped(self.feed.ring.since(epoch, seq) or HEARTBEAT)

    def take(
        self,
        transport: asyncio.Transport,
        connections: set[Any],
        lines: bytes | None,
        position: tuple[int, int],
        address: str = "",
    ) -> SeatStream:
        """Take over a connection, from this position on. Without `lines` its head is written already."""
        self.feed.use()
        ring = self.feed.ring
        first = self.since(*position)
        stream = SeatStream(self, transport, connections, (ring.epoch, ring.seq), address)
        transport.write(begin_stream(lines, first))
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        return stream

    async def run(self) -> None:
        """Until cancelled: pass on every change and heartbeat of the feed."""
        ring = self.feed.ring
        epoch, seq = ring.epoch, ring.seq
        while True:
            if (epoch, seq) == (ring.epoch, ring.seq):  # else it changed during the broadcast
                await self.feed.woken()
            now, before = (ring.epoch, ring.seq), seq
            shared = wrapped(ring.since(epoch, seq) or HEARTBEAT)
            epoch, seq = now
            readers = list(self.readers)
            if readers:
                self.feed.use()
            for start in range(0, len(readers), PORTION):
                for reader in readers[start : start + PORTION]:
                    reader.bring(epoch, seq, shared, before)
                await asyncio.sleep(0)
            self.sent += 1
