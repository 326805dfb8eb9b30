"""The live now-serving document by server-sent events: the same bytes for everybody, on every change and every few
seconds.

A frame is made once per document, already wrapped as an HTTP chunk, and written to the open connections in portions, so
that 10,000 readers never hold the event loop for the whole broadcast. A slow reader misses frames (each one is
complete) and is closed after missing too many. Beyond `max_open` connections readers get 503, `Retry-After` and the
document, and poll instead.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import Any

from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.guard.response_head import STATUS_LINES

STREAM_HEAD = b"content-type: text/event-stream\r\ncache-control: no-store\r\nx-accel-buffering: no\r\n"
MAX_MISSED = 12
MAX_INPUT_BYTES = 4096


class Stream(asyncio.Protocol):
    """One open connection of a reader, as small as it can be."""

    __slots__ = ("_address", "_connections", "_input_bytes", "_missed", "_paused", "_streams", "_transport")

    def __init__(self, streams: "Streams", transport: asyncio.Transport, connections: set[Any], address: str) -> None:
        self._streams = streams
        self._transport = transport
        self._connections = connections
        self._address = address
        streams.caps.add(address)
        self._paused = False
        self._missed = 0
        self._input_bytes = 0
        connections.add(self)
        streams.readers.add(self)

    def send(self, frame: bytes) -> None:
        """Write a frame, or count it as missed when the last ones have not left yet."""
        if not self._paused:
            self._transport.write(frame)
            return
        self._missed += 1
        if self._missed > MAX_MISSED:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Nothing is expected from a reader; a flood ends the connection."""
        self._input_bytes += len(data)
        if self._input_bytes > MAX_INPUT_BYTES:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._missed = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._streams.readers.discard(self)
        self._streams.caps.remove(self._address)
        self._connections.discard(self)

    def shutdown(self) -> None:
        """uvicorn is stopping: end the body properly, so that the browser reconnects elsewhere."""
        self._transport.write(b"0\r\n\r\n")
        self._transport.close()


class Streams:
    """All readers of one room in this process. `caps` counts the streams of each address, over all rooms and maps."""

    def __init__(
        self,
        *,
        max_open: int = 10_000,
        heartbeat_s: float = 5.0,
        portion: int = 250,
        caps: AddressCaps | None = None,
    ) -> None:
        self.max_open = max_open
        self.caps = caps or AddressCaps(max_open)
        self.readers: set[Stream] = set()
        self.others = 0  # readers through Litestar
        self.sent = 0
        self._heartbeat_s = heartbeat_s
        self._portion = portion
        self._event = b": waiting\n\n"
        self._frame = chunk(self._event)
        self._changed = asyncio.Event()
        self._has_readers = asyncio.Event()
        self._next: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self.readers) + self.others

    def show(self, document: bytes) -> None:
        """Send this document from now on, and at once if it differs from the last."""
        event = b"event: now-serving\ndata: " + document + b"\n\n"
        if event == self._event:
            return
        self._event, self._frame = event, chunk(event)
        self._changed.set()

    def is_full(self, address: str = "") -> bool:
        """Whether nobody, or nobody of this address, gets one more stream."""
        return len(self) >= self.max_open or self.caps.is_full(address)

    def retry_after_s(self) -> int:
        """When a refused reader should try again; spread, so that not all come at once."""
        return max(1, round(self._heartbeat_s * 2)) + secrets.randbelow(6)

    def take(
        self, transport: asyncio.Transport, connections: set[Any], lines: bytes | None, address: str = ""
    ) -> Stream:
        """Take over a connection: write the head, with uvicorn's `lines`, and the latest frame. None: it has a head."""
        stream = Stream(self, transport, connections, address)
        self._has_readers.set()
        transport.write(begin_stream(lines, self._frame))
        transport.set_write_buffer_limits(high=16 * 1024)
        return stream

    async def events(self, address: str = "") -> AsyncGenerator[bytes, None]:
        """The same events for a reader through Litestar."""
        self.others += 1
        self._has_readers.set()
        self.caps.add(address)
        try:
            while True:
                yield self._event
                if self._next is None or self._next.done():
                    self._next = asyncio.get_running_loop().create_future()
                await asyncio.shield(self._next)
        finally:
            self.others -= 1
            self.caps.remove(address)

    async def run(self) -> None:
        """Broadcast on every change and every heartbeat until cancelled. Without readers it sleeps."""
        while True:
            if not len(self):
                self._has_readers.clear()
                await self._has_readers.wait()
            try:
                async with asyncio.timeout(self._heartbeat_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            await self.broadcast()

    async def broadcast(self) -> None:
        """Write the latest frame to everybody, a portion per turn of the loop."""
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        readers = list(self.readers)
        for start in range(0, len(readers), self._portion):
            frame = self._frame  # a newer one may have come meanwhile
            for reader in readers[start : start + self._portion]:
                reader.send(frame)
            await asyncio.sleep(0)
        self.sent += 1


def begin_stream(lines: bytes | None, first: bytes) -> bytes:
    """The head of a stream and its first chunk. Without `lines` the head is written already."""
    if lines is None:
        return first
    return b"".join((STATUS_LINES[200], lines, STREAM_HEAD, b"transfer-encoding: chunked\r\n\r\n", first))


def chunk(event: bytes) -> bytes:
    """An event as one chunk of an HTTP body."""
    return b"%x\r\n%b\r\n" % (len(event), event)
