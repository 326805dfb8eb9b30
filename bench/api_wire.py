"""What the API's benchmark asks with: keep-alive connections that time each answer, and CPU of process trees."""

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psutil

from bench.http_load import cpu_s

Thing = TypeVar("Thing")


class Line:
    """One connection; one request at a time."""

    def __init__(self, host: str, port: int, times: "Times") -> None:
        self._host, self._port, self._times = host, port, times
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(
        self, step: str, method: str, path: str, body: Any = None, headers: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """(status, JSON of the answer), timed under `step`."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        assert self._reader is not None
        content = b"" if body is None else json.dumps(body).encode()
        kind = "content-type: application/json\r\n" if content else ""
        length = f"content-length: {len(content)}\r\n" if method != "GET" else ""
        began_ns = time.perf_counter_ns()
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}{kind}{length}\r\n".encode() + content
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        at = lower.find(b"content-length: ")
        size = int(lower[at + 16 : lower.find(b"\r", at)]) if at >= 0 else 0
        data = await self._reader.readexactly(size) if size else b""
        self._times.took(step, time.perf_counter_ns() - began_ns)
        return int(head[9:12]), json.loads(data) if b"json" in lower else {}

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class Times:
    """Nanoseconds by step."""

    def __init__(self) -> None:
        self.by_step: defaultdict[str, list[int]] = defaultdict(list)

    def took(self, step: str, ns: int) -> None:
        self.by_step[step].append(ns)

    def table(self) -> dict[str, dict[str, float]]:
        told = {}
        for step, all_ns in self.by_step.items():
            many = sorted(all_ns)
            told[step] = {
                "count": len(many),
                "p50_ms": many[len(many) // 2] / 1e6,
                "p99_ms": many[min(len(many) - 1, len(many) * 99 // 100)] / 1e6,
            }
        return told


async def in_parallel(
    things: Sequence[Thing], each: Callable[[Line, Thing], Awaitable[None]], port: int, lines: int, times: Times
) -> None:
    """`each` for all things, over so many connections."""
    waiting = iter(things)

    async def worker() -> None:
        line = Line("127.0.0.1", port, times)
        try:
            for thing in waiting:
                await each(line, thing)
        finally:
            line.close()

    await asyncio.gather(*(worker() for _ in range(min(lines, len(things)))))


def tree_cpu_s(pid: int) -> float:
    """CPU of a process and its children."""
    total = cpu_s(pid)
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, OSError):
                total += cpu_s(child.pid)
    return total


@contextlib.asynccontextmanager
async def cpu_of(parts: dict[str, int]) -> AsyncIterator[dict[str, float]]:
    """CPU seconds of each part (and of this client), and the wall's, filled in at the end."""
    told: dict[str, float] = {}
    before = {name: tree_cpu_s(pid) for name, pid in parts.items()}
    own_s, wall_s = time.process_time(), time.perf_counter()
    yield told
    told.update({name: tree_cpu_s(pid) - before[name] for name, pid in parts.items()})
    told["client"] = time.process_time() - own_s
    told["wall"] = time.perf_counter() - wall_s
