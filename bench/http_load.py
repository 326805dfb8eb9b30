"""A small closed-loop HTTP client for benchmarks: N keep-alive connections, one request each in flight.

With `together` all connections ask at once, and again when all have their answers: the server then works through a
crowd, however slow this client is. Otherwise a cheap answer is punished by a wake-up of its own for nearly each request
(the client cannot keep up), which a dear one does not pay, and the two cannot be compared.
The figure of interest is the server's CPU per request (user + system, read from the process table), not the rate: the
client shares the machine. It begins when all connections are open: taking them would be a tenth of 300 payments, and
nothing of 6,000 hellos.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import uvloop

TAKEN_S = 0.05  # until the server has taken the last connection
Maker = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of requests cost the server."""

    requests: int
    failed: int
    cpu_us: float
    per_s: float


class _Client(asyncio.Protocol):
    """Sends the next request when the whole answer has come (by its content-length)."""

    def __init__(self, make: Maker, counter: "_Counter", ok: bytes) -> None:
        self.make, self.counter, self.ok = make, counter, ok
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.counter.clients.add(self)
        if not self.counter.opening and not self.counter.together:
            self.send()

    def answered(self) -> None:
        counter = self.counter
        counter.done += 1
        if not counter.together:
            self.send()
            return
        counter.pending -= 1
        if counter.pending == 0:
            counter.pending = len(counter.clients)
            for client in tuple(counter.clients):
                client.send()

    def send(self) -> None:
        number = self.counter.take()
        if number < 0:
            self.counter.clients.discard(self)
            self.counter.pending -= 1
            self.transport.close()
        else:
            self.transport.write(self.make(number))

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer + data if self.buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            at = buffer.find(b"ontent-length: ", 0, end)
            if at < 0:
                at = buffer.find(b"ontent-Length: ", 0, end)
            length = int(buffer[at + 15 : buffer.find(b"\r", at)]) if at >= 0 else 0
            if len(buffer) >= end + 4 + length:
                self.buffer = b""
                if not buffer.startswith(self.ok, 9):
                    self.counter.failed += 1
                if self.counter.answers is not None:
                    self.counter.answers.append(buffer)
                self.answered()
                return
        self.buffer = buffer

    def connection_lost(self, exc: Exception | None) -> None:
        self.counter.open -= 1
        if not self.counter.open:
            self.counter.finished.set()


class _Counter:
    def __init__(self, total: int, open_: int, together: bool = False) -> None:
        self.total, self.next, self.done, self.failed, self.open = total, 0, 0, 0, open_
        self.finished = asyncio.Event()
        self.together = together
        self.clients: set[_Client] = set()
        self.pending = open_
        self.answers: list[bytes] | None = None
        self.opening = False  # nobody asks before all connections are open

    def take(self) -> int:
        if self.next >= self.total:
            return -1
        self.next += 1
        return self.next - 1


async def _run(
    port: int,
    make: Maker,
    total: int,
    connections: int,
    ok: bytes,
    together: bool,
    answers: list[bytes] | None,
    begin: Callable[[], None],
) -> _Counter:
    counter = _Counter(total, connections, together)
    counter.answers, counter.opening = answers, True
    loop = asyncio.get_running_loop()
    for _ in range(connections):
        await loop.create_connection(lambda: _Client(make, counter, ok), "127.0.0.1", port)
    await asyncio.sleep(TAKEN_S)
    counter.opening = False
    begin()
    for client in tuple(counter.clients):
        client.send()
    await asyncio.wait_for(counter.finished.wait(), 300)
    return counter


def load(
    pid: int,
    port: int,
    make: Maker | bytes,
    *,
    total: int,
    connections: int = 64,
    ok: bytes = b"200",
    idle_per_s: float = 0.0,
    together: bool = False,
    answers: list[bytes] | None = None,
) -> Load:
    """Send `total` requests and answer what they cost the server's process, less what it uses anyway when idle.

    `answers` is filled with what came back, whole and in the order of its coming.
    """
    maker: Maker = (lambda _: make) if isinstance(make, bytes) else make
    before_s = start_s = 0.0

    def begin() -> None:
        nonlocal before_s, start_s
        before_s, start_s = cpu_s(pid), time.perf_counter()

    counter = uvloop.run(_run(port, maker, total, connections, ok, together, answers, begin))
    took_s, used_s = time.perf_counter() - start_s, cpu_s(pid) - before_s
    used_s -= idle_per_s * took_s
    return Load(counter.done, counter.failed, used_s / max(1, counter.done) * 1e6, counter.done / took_s)


def cpu_s(pid: int) -> float:
    """CPU the process has used, all threads; to the nanosecond where the kernel tells (else 10 ms ticks)."""
    try:
        tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
    except OSError:
        used = psutil.Process(pid).cpu_times()
        return float(used.user + used.system)


@contextlib.contextmanager
def server(module: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run `python -m module arguments…`, which prints its port on its first line; yields (pid, port)."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
