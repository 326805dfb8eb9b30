"""Live position (W9) and what happens when there are too many readers (W10, N7)."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from frontrow.web.fastpath.protocol import FastPathProtocol
from frontrow.web.guard.guarded_protocol import GuardedProtocol
from frontrow.web.streams.positions import MAX_MISSED, Streams
from tests.support.eventually import eventually_sync
from tests.web.room.conftest import ServedRoom, endpoints_of, opened
from tests.web.room.served import Line
from tests.web.room.simple_room import SimpleRoom

GET = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"


class Sink:
    """A transport that only remembers."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = self.aborted = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


def opened_on(streams: Streams, sink: Sink) -> Any:
    return streams.take(sink, set(), b"date: today\r\n")  # type: ignore[arg-type]


async def test_everybody_gets_the_same_bytes_made_once() -> None:
    """W9, N7: the same object is written to all."""
    streams = Streams(portion=10)
    sinks = [Sink() for _ in range(100)]
    for sink in sinks:
        opened_on(streams, sink)
    streams.show(b'{"e":"aurora"}')
    await streams.broadcast()
    last = {id(sink.written[-1]) for sink in sinks}
    assert len(last) == 1
    assert sinks[0].written[-1] == b'29\r\nevent: now-serving\ndata: {"e":"aurora"}\n\n\r\n'
    size, _, rest = sinks[0].written[-1].partition(b"\r\n")
    assert int(size, 16) == len(rest) - 2


async def test_a_broadcast_lets_the_loop_turn_after_each_portion() -> None:
    streams = Streams(portion=10)
    sinks = [Sink() for _ in range(95)]
    for sink in sinks:
        opened_on(streams, sink)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count())
    await asyncio.sleep(0)
    await streams.broadcast()
    counter.cancel()
    assert turns >= 10


async def test_a_slow_reader_misses_frames_and_is_closed_after_too_many() -> None:
    streams = Streams()
    slow, quick = Sink(), Sink()
    stream = opened_on(streams, slow)
    opened_on(streams, quick)
    stream.pause_writing()
    for _ in range(MAX_MISSED):
        await streams.broadcast()
    assert (len(slow.written), slow.aborted) == (1, False)
    assert len(quick.written) == 1 + MAX_MISSED
    stream.resume_writing()
    await streams.broadcast()
    assert len(slow.written) == 2, "each frame is complete: catching up is one frame"
    stream.pause_writing()
    for _ in range(MAX_MISSED + 1):
        await streams.broadcast()
    assert slow.aborted


async def test_a_reader_who_talks_back_is_cut_off_and_one_who_leaves_is_forgotten() -> None:
    streams, connections = Streams(), set[Any]()
    sink = Sink()
    stream = streams.take(sink, connections, b"")  # type: ignore[arg-type]
    assert (len(streams), len(connections)) == (1, 1)
    stream.data_received(b"x" * 5000)
    assert sink.aborted
    stream.connection_lost(None)
    assert (len(streams), len(connections)) == (0, 0)


async def test_without_readers_nothing_is_broadcast_and_the_first_reader_gets_every_later_frame() -> None:
    streams, sink = Streams(heartbeat_s=60), Sink()
    running = asyncio.create_task(streams.run())
    for number in range(3):
        streams.show(b"%d" % number)
        await asyncio.sleep(0)
    assert streams.sent == 0, "hundreds of quiet rooms cost nothing"
    opened_on(streams, sink)
    assert b"data: 2" in sink.written[0]
    streams.show(b"3")
    for _ in range(10):
        await asyncio.sleep(0)
    assert b"data: 3" in sink.written[-1]
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_the_same_document_again_is_no_change() -> None:
    streams = Streams(heartbeat_s=60)
    opened_on(streams, Sink())
    streams.show(b"{}")
    running = asyncio.create_task(streams.run())
    for _ in range(10):
        await asyncio.sleep(0)
    sent = streams.sent
    streams.show(b"{}")
    for _ in range(10):
        await asyncio.sleep(0)
    assert (sent, streams.sent) == (1, 1)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def events(line: Line) -> Iterator[bytes]:
    """The documents of a raw stream."""
    while True:
        size = int(line.until(b"\r\n"), 16)
        yield line.exactly(size + 2)[:-2].removeprefix(b"event: now-serving\ndata: ").rstrip(b"\n")


def test_a_change_reaches_the_reader_at_once_and_heartbeats_follow(server: ServedRoom) -> None:
    """W9."""
    with Line(server.port) as line:
        line.send(GET)
        head = line.until(b"\r\n\r\n")
        assert b"content-type: text/event-stream" in head
        assert b"cache-control: no-store" in head
        found = events(line)
        first = next(found)
        assert first == server.client.get("/now-serving").content
        server.room.move(hi=42)
        told = next(document for document in found if b"[0,42," in document)
        assert told == server.client.get("/now-serving").content
        assert next(found) == told, "the heartbeat repeats it"


def test_over_the_connection_cap_readers_get_503_the_document_and_when_to_come_again(kind: str) -> None:
    """W10, F3, N7: degrade to polling."""
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room, max_open=2)):
        lines = [Line(server.port), Line(server.port)]
        for line in lines:
            line.send(GET)
            line.until(b"data: ")
        refused = server.client.get("/stream")
        assert refused.status_code == 503
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert refused.content == server.client.get("/now-serving").content
        assert server.client.post("/join").status_code == 201, "only streams are full"
        streams = server.endpoints.streams["aurora"]
        lines[0].sock.close()
        eventually_sync(streams.__len__, until=lambda left: left <= 1)  # who left is forgotten
        lines[0] = Line(server.port)
        lines[0].send(GET)
        assert b"200 OK" in lines[0].until(b"\r\n")
        for line in lines:
            line.sock.close()


def kept_objects() -> int:
    """Connections that were given away, responses of the app, and tasks that are still in memory."""
    kinds = (HttpToolsProtocol, GuardedProtocol, RequestResponseCycle, asyncio.Task)
    # by its type: an object may answer isinstance with code of its own, as Django's lazy ones do
    found = [each for each in gc.get_objects() if issubclass(type(each), kinds)]
    return sum(not (isinstance(each, FastPathProtocol) and not each._gone) for each in found)


@pytest.mark.parametrize("kind", ["hot", "behind", "guarded"])
def test_a_stream_keeps_nothing_of_the_request_that_opened_it(kind: str) -> None:
    """The protocol's object, its parser and the app's task go at once, and not when the garbage is collected next."""
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room)):
        gc.collect()
        gc.disable()
        try:
            before = kept_objects()
            lines = [Line(server.port) for _ in range(10)]
            for line in lines:
                line.send(GET)
                line.until(b"data: ")
            deadline_s = time.monotonic() + 60
            while kept_objects() > before:  # the last one may still be on its way out
                assert time.monotonic() < deadline_s, "they wait for the garbage collector"
        finally:
            gc.enable()
        streams = server.endpoints.streams["aurora"]
        assert (len(streams.readers), streams.others) == (10, 0), "all were taken over"
        server.room.move(hi=9)
        for line in lines:
            line.until(b"[0,9,")
            line.sock.close()


@pytest.mark.parametrize("kind", ["behind", "guarded"])
def test_a_stream_that_cannot_be_taken_over_is_served_by_the_app(kind: str) -> None:
    """HTTP/1.0 knows no chunks, and a request that is already waiting behind the stream is the app's."""
    room = SimpleRoom()
    for server in opened(kind, room, endpoints_of(room)):
        streams = server.endpoints.streams["aurora"]
        for hi, request in ((5, GET.replace(b"1.1", b"1.0")), (6, GET + GET)):
            with Line(server.port) as line:
                line.send(request)
                line.until(b"data: ")
                assert (len(streams.readers), streams.others) == (0, 1)
                server.room.move(hi=hi)
                line.until(b"[0,%d," % hi)
            eventually_sync(streams.__len__, until=lambda left: left == 0)  # who left is forgotten


def test_a_stopping_server_ends_streams_properly(kind: str) -> None:
    room = SimpleRoom()
    line = None
    for server in opened(kind, room, endpoints_of(room)):
        line = Line(server.port)
        line.send(GET)
        line.until(b"data: ")
    assert line is not None
    with contextlib.suppress(ConnectionResetError):
        while line.sock.recv(65536):
            pass
    line.sock.close()


@pytest.mark.parametrize("count", [200])
def test_many_readers_are_served_and_the_room_goes_on(server: ServedRoom, count: int) -> None:
    lines = [Line(server.port) for _ in range(count)]
    for line in lines:
        line.send(GET)
    for line in lines:
        line.until(b"data: ")
    server.room.move(hi=7)
    for line in lines:
        line.until(b"[0,7,")
    with httpx.Client(base_url=server.client.base_url, trust_env=False, timeout=20) as client:
        assert client.post("/join").status_code == 201
    for line in lines:
        line.sock.close()
