"""Open streams: resident bytes per connection and CPU of one broadcast, against a bare asyncio writer.

What a server uses before the first reader comes, for its loops and timers, is no part of a broadcast's CPU.
"""

import asyncio
import contextlib
import resource
import time
from collections.abc import Iterator
from typing import Any

import psutil
import uvloop

from bench.http_load import server
from tests.support.servers import Valkey

HEAD = b"Host: localhost\r\nUser-Agent: bench\r\nAccept: text/event-stream\r\n"
REQUEST = b"GET /stream HTTP/1.1\r\n" + HEAD + b"\r\n"
BATCH = 200
HEARTBEATS = 3
IDLE_S = 3.0
WANTED = {"bytes_each": 5_000, "cpu_us_each": 10, "opened": 50_000}
OPEN_WITHIN_S = 120


class _Reader(asyncio.Protocol):
    opened = 0
    frames = 0
    request = REQUEST
    mark = b"event: now-serving"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(_Reader.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        _Reader.frames += data.count(_Reader.mark)
        _Reader.opened += data.startswith(b"HTTP/1.1 200")


async def hold_open(
    pid: int, port: int, count: int, request: bytes = REQUEST, mark: bytes = b"event: now-serving"
) -> dict[str, float]:
    """Open `count` readers, then watch the server through some broadcasts, known by `mark`."""
    loop, process = asyncio.get_running_loop(), psutil.Process(pid)
    _Reader.opened = _Reader.frames = 0
    _Reader.request, _Reader.mark = request, mark
    idle_from_s = _cpu_s(process)
    await asyncio.sleep(IDLE_S)
    idle_per_s = (_cpu_s(process) - idle_from_s) / IDLE_S
    before = process.memory_info().rss
    transports = []
    for start in range(0, count, BATCH):
        many = range(min(BATCH, count - start))
        made = await asyncio.gather(*(loop.create_connection(_Reader, "127.0.0.1", port) for _ in many))
        transports += [transport for transport, _ in made]
    deadline_s = time.monotonic() + OPEN_WITHIN_S
    while _Reader.opened < count and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    resident = process.memory_info().rss - before
    deadline_s = time.monotonic() + OPEN_WITHIN_S
    start_cpu_s, start_s, start_frames = _cpu_s(process), time.monotonic(), _Reader.frames
    while _Reader.frames - start_frames < HEARTBEATS * count and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    cpu_s = _cpu_s(process) - start_cpu_s - idle_per_s * (time.monotonic() - start_s)
    sent = _Reader.frames - start_frames
    for transport in transports:
        transport.abort()
    return {"opened": _Reader.opened, "bytes_each": resident / count, "cpu_us_each": cpu_s / max(1, sent) * 1e6}


def _cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return used.user + used.system


@contextlib.contextmanager
def many_files() -> Iterator[int]:
    """As many open files as this machine allows a process; so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def streams(count: int) -> dict[str, Any]:
    """The room's streams and a bare writer's, one after the other."""
    with many_files() as most, Valkey() as valkey:
        count = min(count, most - 1000)
        found: dict[str, Any] = {"connections": count}
        for kind in ("bare-writer", "room"):
            with server("bench.room_servers", kind, valkey.url) as (pid, port):
                time.sleep(1.5)  # let it finish starting before its memory is read
                found[kind] = uvloop.run(hold_open(pid, port, count))
    show_streams(found)
    return found


def show_streams(found: dict[str, Any]) -> None:
    """The table, and each kind beside what is wanted of it. A machine that allows fewer open files opens fewer."""
    print(f"\n{found['connections']} open streams           bytes each   CPU us each and broadcast   opened")
    for kind, row in found.items():
        if kind != "connections":
            print(f"{kind:24} {row['bytes_each']:11.0f} {row['cpu_us_each']:27.1f} {row['opened']:8.0f}")
    print(f"{'wanted':24} {WANTED['bytes_each']:11} {WANTED['cpu_us_each']:27} {WANTED['opened']:8}")
