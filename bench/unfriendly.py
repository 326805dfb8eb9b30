"""`python -m bench.unfriendly`: attacks on a real `frontrow serve`, while other fans go on. Part of `make soak`.

Attackers come from 20 addresses (127.0.0.2 and up), capped and limited as by default. Fans come from 127.0.0.1 at a
steady pace, in a process of their own. Printed per attack: the fans' p50 and p99, how many were not served, and how
much memory the server took. The run fails when a fan waits longer than 250 ms at the 99th percentile or is not served,
or when the server grows by more than its bound. Run it on a quiet machine.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import random
import resource
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from frontrow.app.wiring import open_platform
from tests.support.processes import Process
from tests.support.tls_proxy import TlsProxy
from tests.web.api.support import EVENT_ID, one_row, put_event, settings_for

P99_MS = 250.0
MAX_GROWTH_MB = 150.0
FANS_PER_S = 40
ROOM = f"/v1/events/{EVENT_ID}/room"
PATHS = (f"{ROOM}/now-serving", f"/v1/events/{EVENT_ID}", f"/events/{EVENT_ID}", f"/v1/events/{EVENT_ID}/seats.bin")
SEATS = 20_000  # so that one answer of the map has weight


class FanFigures(NamedTuple):
    p50_ms: float
    p99_ms: float
    answers: int
    failures: int


def ask(port: int, path: str) -> bool:
    """One request of a fan on a connection of its own; whether it was answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: fans\r\nConnection: close\r\n\r\n".encode())
            head = b""
            while part := sock.recv(65_536):
                head = head or part
            return head[9:12] in (b"200", b"304")
    except OSError:
        return False


def be_fans(port: int, seconds: float, told: Connection) -> None:
    """Ask at a steady pace; who waits makes the next ones wait too, and that time counts."""
    took, failures, began_s = [], 0, time.monotonic()
    for number in range(int(seconds * FANS_PER_S)):
        due_s = began_s + number / FANS_PER_S
        time.sleep(max(0.0, due_s - time.monotonic()))
        failures += not ask(port, PATHS[number % len(PATHS)])
        took.append(time.monotonic() - due_s)
    took.sort()
    told.send(FanFigures(took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3, len(took) - failures, failures))


class Attack:
    """Sockets of attackers, from 20 addresses."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port, self.until_s = port, time.monotonic() + seconds
        self.open: list[socket.socket] = []

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until_s

    async def connect(self, count: int) -> list[socket.socket]:
        """Connections that are established or refused; in portions, so that the listening queue keeps up."""
        loop, made = asyncio.get_running_loop(), []
        for number in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.bind((f"127.0.0.{2 + number % 20}", 0))
            with contextlib.suppress(OSError):
                await loop.sock_connect(sock, ("127.0.0.1", self.port))
            made.append(sock)
            if not self.goes_on:
                break
        self.open += made
        return made

    async def until_end(self) -> None:
        await asyncio.sleep(max(0.0, self.until_s - time.monotonic()))

    def close(self) -> None:
        for sock in self.open:
            sock.close()


async def send(sock: socket.socket, data: bytes, within_s: float = 2.0) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(within_s):
            await asyncio.get_running_loop().sock_sendall(sock, data)


def request(path: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: x", *lines, "", "")).encode()


async def nothing(attack: Attack) -> None:
    await attack.until_end()


async def be_idle(attack: Attack) -> None:
    """10,000 connections that say nothing."""
    await attack.connect(10_000)
    await attack.until_end()


async def read_slowly(attack: Attack) -> None:
    """Pipelined requests for the whole map, and nobody reads."""
    for sock in await attack.connect(200):
        await send(sock, request(PATHS[3]) * 500, 0.05)
    await attack.until_end()


async def write_slowly(attack: Attack) -> None:
    """1,000 requests, a byte at a time."""
    socks = await attack.connect(1_000)
    while attack.goes_on:
        for sock in socks:
            await send(sock, b"G", 0.01)
        await asyncio.sleep(0.5)


async def half_close(attack: Attack) -> None:
    """Requests whose senders close their half at once."""
    while attack.goes_on:
        for sock in await attack.connect(20):
            await send(sock, request(PATHS[1]))
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
        await asyncio.sleep(0.05)


async def bomb_heads(attack: Attack) -> None:
    """Heads of 2 MB, of tiny headers."""
    while attack.goes_on:
        for sock in await attack.connect(5):
            await send(sock, b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 500_000, 0.2)
        await asyncio.sleep(0.05)


async def hold_streams(attack: Attack) -> None:
    """Live streams from 20 addresses, as many as they get."""
    for sock in await attack.connect(8_000):
        await send(sock, request(f"{ROOM}/stream"), 0.05)
    await attack.until_end()


async def talk_rubbish(attack: Attack) -> None:
    """Random bytes, TLS handshakes and cut requests."""
    chance = random.Random(1)
    handshake, other = b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n"
    starts = [request("/"), request(ROOM + "/join", method="POST"), handshake, other]
    while attack.goes_on:
        for sock in await attack.connect(20):
            start = chance.choice(starts)
            await send(sock, start[: chance.randrange(1, len(start))] + chance.randbytes(chance.randrange(2_000)))
        await asyncio.sleep(0.05)


Act = Callable[[Attack], Awaitable[None]]
ATTACKS: dict[str, Act] = {
    "nothing (for comparison)": nothing,
    "10,000 idle connections": be_idle,
    "slow readers": read_slowly,
    "slow writers": write_slowly,
    "half-closed": half_close,
    "header bombs": bomb_heads,
    "all the streams": hold_streams,
    "rubbish": talk_rubbish,
}


def memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


async def make_attack(act: Act, port: int, seconds: float, fans_port: int) -> FanFigures:
    """The fans' figures while the attack goes on, perhaps at another port."""
    ours, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    fans = spawn.Process(target=be_fans, args=(fans_port, seconds, theirs))
    attack = Attack(port, seconds + 3)  # the fans' process takes a moment to start
    fans.start()
    try:
        await act(attack)
        figures: FanFigures = await asyncio.to_thread(ours.recv)
    finally:
        attack.close()
        fans.join(30)
    return figures


async def run(seconds: float, only: str = "") -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    fine = True
    with tempfile.TemporaryDirectory(prefix="frontrow-unfriendly-") as folder:
        async with open_platform(settings_for(Path(folder))) as platform:
            await put_event(platform, one_row(SEATS))
            ledger = platform.settings.ledger_url
        env = {"FRONTROW_OVERLOAD_UNCAPPED": "127.0.0.1", "FRONTROW_SERVER_PER_IP": "50/second"}
        server = Process(["serve", "--port", "0"], Path(folder), FRONTROW_LEDGER_URL=ledger, **env)
        try:
            port = int(server.listening().rpartition(":")[2])
            await server.alive()
            with TlsProxy(Path(folder), port) as proxy:
                await make_attack(nothing, port, 2, port)  # warm
                for name, act in ATTACKS.items():
                    if only not in name:
                        continue
                    before = memory_mb(server.process.pid)
                    figures = await make_attack(act, port, seconds, port)
                    grown = memory_mb(server.process.pid) - before
                    fine &= report(name, figures, grown)
                figures = await make_attack(talk_rubbish, proxy.port, seconds, port)
                fine &= report("rubbish at a TLS proxy", figures, 0.0)
        finally:
            server.stop()
    return fine


def report(name: str, figures: FanFigures, grown_mb: float) -> bool:
    fine = figures.p99_ms <= P99_MS and not figures.failures and grown_mb <= MAX_GROWTH_MB
    times = f"p50 {figures.p50_ms:6.1f} ms  p99 {figures.p99_ms:6.1f} ms (≤ {P99_MS:.0f})"
    counts = f"{figures.answers:5d} answers  {figures.failures:3d} failures"
    memory = f"memory {grown_mb:+6.1f} MB (≤ {MAX_GROWTH_MB:.0f})"
    print(f"{name:<28} {times}  {counts}  {memory}{'' if fine else '  TOO MUCH'}", flush=True)
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each attack")
    parser.add_argument("--only", default="", help="attacks whose name has this in it")
    given = parser.parse_args()
    sys.exit(0 if asyncio.run(run(given.seconds, given.only)) else 1)


if __name__ == "__main__":
    main()
