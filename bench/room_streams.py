"""Open streams: resident bytes per connection and CPU of one broadcast, against a bare asyncio writer."""

import asyncio
import resource
import time
from typing import Any

import psutil
import uvloop

from bench.http_load import server
from frontrow.rehearsal.servers import Valkey

REQUEST = b"GET /stream HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: text/event-stream\r\n\r\n"
BATCH = 200
HEARTBEATS = 3


class _Reader(asyncio.Protocol):
    opened = 0
    frames = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(REQUEST)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        _Reader.frames += data.count(b"event: now-serving")
        _Reader.opened += data.startswith(b"HTTP/1.1 200")


async def _hold(pid: int, port: int, count: int) -> dict[str, float]:
    """Open `count` readers, then watch the server through some heartbeats."""
    loop, process = asyncio.get_running_loop(), psutil.Process(pid)
    _Reader.opened = _Reader.frames = 0
    before = process.memory_info().rss
    transports = []
    for start in range(0, count, BATCH):
        many = range(min(BATCH, count - start))
        made = await asyncio.gather(*(loop.create_connection(_Reader, "127.0.0.1", port) for _ in many))
        transports += [transport for transport, _ in made]
    deadline_s = time.monotonic() + 60
    while _Reader.opened < count and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    resident = process.memory_info().rss - before
    start_cpu, start_frames = process.cpu_times(), _Reader.frames
    while _Reader.frames - start_frames < HEARTBEATS * count and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    end_cpu = process.cpu_times()
    cpu_s = end_cpu.user + end_cpu.system - start_cpu.user - start_cpu.system
    sent = _Reader.frames - start_frames
    for transport in transports:
        transport.abort()
    return {"opened": _Reader.opened, "bytes_each": resident / count, "cpu_us_each": cpu_s / max(1, sent) * 1e6}


def streams(count: int) -> dict[str, Any]:
    """The room's streams and a bare writer's, one after the other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(count, hard - 1000)
    found: dict[str, Any] = {"connections": count}
    try:
        with Valkey() as valkey:
            for kind in ("bare-writer", "room"):
                with server("bench.room_servers", kind, valkey.url) as (pid, port):
                    time.sleep(1.5)  # let it finish starting before its memory is read
                    found[kind] = uvloop.run(_hold(pid, port, count))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(f"\n{count} open streams           bytes each   CPU us each and broadcast   opened")
    for kind in ("bare-writer", "room"):
        row = found[kind]
        print(f"{kind:24} {row['bytes_each']:11.0f} {row['cpu_us_each']:27.1f} {row['opened']:8}")
    return found
