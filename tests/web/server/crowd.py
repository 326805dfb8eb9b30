"""A crowd on raw keep-alive connections: each sends its request again as soon as it is answered."""

import asyncio
import contextlib
import json
import math
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.support.eventually import eventually

Seen = Counter[tuple[str, int]]


def request_bytes(method: str, path: str) -> bytes:
    length = b"content-length: 0\r\n" if method != "GET" else b""
    return f"{method} {path} HTTP/1.1\r\nhost: a\r\n".encode() + length + b"\r\n"


async def one(port: int, name: str, request: bytes, seen: Counter[tuple[str, int]], until: asyncio.Event) -> None:
    """Ask until told to stop; counts (name, status). A closed connection is opened again, at most so often."""
    for _ in range(100):
        if until.is_set():
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while not until.is_set():
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                await reader.readexactly(length)
                seen[name, int(head[9:12])] += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            seen[name, 0] += 1
        finally:
            writer.close()


async def crowd(
    port: int, asks: dict[str, tuple[str, str]], each: int, most_s: float, enough: Callable[[Seen], bool]
) -> Seen:
    """`each` connections for every kind of request, until enough was answered; what was answered."""
    seen: Counter[tuple[str, int]] = Counter()
    until = asyncio.Event()
    tasks = [
        asyncio.create_task(one(port, name, request_bytes(*ask), seen, until))
        for name, ask in asks.items()
        for _ in range(each)
    ]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(most_s):
            await eventually(lambda: enough(seen), math.inf)
    until.set()
    _, late = await asyncio.wait(tasks, timeout=0.2)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def counts_of(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as told:
        counts: dict[str, Any] = json.loads(told.read())
        return counts
