"""Open streams: resident bytes per connection and CPU of one broadcast, against a bare asyncio writer.

Memory is read from outside after each step of opening, and what one viewer costs is the slope of the line through these
points. What a server uses for one reader, for its loops and timers, is no part of a broadcast's CPU.

No process may have more files open than the system allows, so the line says what 50,000 streams would need. `own_part`
really opens 50,000, on transports in memory: it counts what our code adds to the event loop's transports and sockets.
"""

import asyncio
import contextlib
import gc
import os
import resource
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import uvloop

from bench.http_load import server
from frontrow.web.streams.positions import Streams
from tests.support.servers import Valkey

HEAD = b"Host: localhost\r\nUser-Agent: bench\r\nAccept: text/event-stream\r\n"
REQUEST = b"GET /stream HTTP/1.1\r\n" + HEAD + b"\r\n"
BATCH = 200
STEPS = (0.25, 0.5, 0.75, 1.0)  # of the viewers
HEARTBEATS = 3
IDLE_S = 6.0
WANTED = {"bytes_each": 5_000, "cpu_us_each": 10, "opened": 50_000}
OPEN_WITHIN_S = 120
SPARE_FILES = 1_000
OWN_BROADCASTS = 5
OWN_PART = "own part, no sockets"


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
    transports: list[asyncio.Transport] = []

    async def open_until(wanted: int) -> None:
        while len(transports) < wanted:
            many = range(min(BATCH, wanted - len(transports)))
            made = await asyncio.gather(*(loop.create_connection(_Reader, "127.0.0.1", port) for _ in many))
            transports.extend(transport for transport, _ in made)
        await _until(lambda: _Reader.opened >= wanted)

    await open_until(1)
    await asyncio.sleep(1.0)
    idle_from_s = _cpu_s(process)
    await asyncio.sleep(IDLE_S)
    idle_per_s = (_cpu_s(process) - idle_from_s) / IDLE_S
    resident = [(1, process.memory_info().rss)]
    for step in STEPS:
        await open_until(round(step * count))
        resident.append((_Reader.opened, process.memory_info().rss))
    start_cpu_s, start_s, start_frames = _cpu_s(process), time.monotonic(), _Reader.frames
    await _until(lambda: _Reader.frames - start_frames >= HEARTBEATS * count)
    cpu_s = _cpu_s(process) - start_cpu_s - idle_per_s * (time.monotonic() - start_s)
    sent = _Reader.frames - start_frames
    for transport in transports:
        transport.abort()
    if not sent:
        raise SystemExit(f"no frame reached the {_Reader.opened} viewers within {OPEN_WITHIN_S} s")
    line = statistics.linear_regression(*zip(*resident, strict=True))
    return {
        "opened": _Reader.opened,
        "bytes_each": line.slope,
        "cpu_us_each": cpu_s / sent * 1e6,
        "megabytes_at_50k": (line.intercept + WANTED["opened"] * line.slope) / 1e6,
    }


async def _until(is_so: Callable[[], bool]) -> None:
    """Wait until it is so, or for OPEN_WITHIN_S."""
    deadline_s = time.monotonic() + OPEN_WITHIN_S
    while not is_so() and time.monotonic() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


class _NoSocket:
    """A transport that sends nothing anywhere."""

    __slots__ = ()

    def write(self, frame: bytes) -> None:
        pass

    def set_write_buffer_limits(self, high: int) -> None:
        pass


async def own_part(count: int = WANTED["opened"]) -> dict[str, float]:
    """Bytes and CPU of our own code for so many readers of a room, without sockets."""
    streams, connections, transport = Streams(max_open=count), set[Any](), _NoSocket()
    gc.collect()
    tracemalloc.start()
    for number in range(count):
        streams.take(transport, connections, b"", f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")  # type: ignore[arg-type]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    began_s = time.process_time()
    for _ in range(OWN_BROADCASTS):
        await streams.broadcast()
    cpu_us = (time.process_time() - began_s) / OWN_BROADCASTS / count * 1e6
    return {"opened": len(streams), "bytes_each": size / count, "cpu_us_each": cpu_us}


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
        count = min(count, most - SPARE_FILES)
        found: dict[str, Any] = {"connections": count}
        for kind in ("bare-writer", "room"):
            with server("bench.room_servers", kind, valkey.url) as (pid, port):
                time.sleep(1.5)  # let it finish starting before its memory is read
                found[kind] = uvloop.run(hold_open(pid, port, count))
    found[OWN_PART] = uvloop.run(own_part())
    found["load"] = os.getloadavg()[0]
    show_streams(found)
    return found


def show_streams(found: dict[str, Any]) -> None:
    """The table, and each kind beside what is wanted of it. A machine that allows fewer open files opens fewer."""
    print(
        f"\n{found['connections']} open streams           bytes each   CPU us each and broadcast   opened   50,000: MB"
    )
    for kind, row in found.items():
        if isinstance(row, dict):
            whole = f"{row['megabytes_at_50k']:14.0f}" if "megabytes_at_50k" in row else ""
            print(f"{kind:24} {row['bytes_each']:11.0f} {row['cpu_us_each']:27.1f} {row['opened']:8.0f} {whole}")
    print(f"{'wanted':24} {WANTED['bytes_each']:11} {WANTED['cpu_us_each']:27} {WANTED['opened']:8}")
