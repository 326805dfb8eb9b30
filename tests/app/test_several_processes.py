"""`frontrow serve --workers 2` as real processes on one Redis and PostgreSQL: one server to whoever talks to it.

Whichever worker answers, a purchase goes on; /metrics is the sum; a killed worker is replaced; told to stop, it
answers everybody whose request it has (F5, B19).
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from tests.boxoffice.plan_samples import small_plan
from tests.support.eventually import eventually, eventually_sync
from tests.support.processes import Process
from tests.web.api.script import Buyer, read_document
from tests.web.api.support import EVENT_ID, put_into

WORKERS = 2
WITHIN_S = 120
EACH_S = 0.05


@contextlib.asynccontextmanager
async def serving(tmp_path, redis_url, postgres_ledger_url):
    """The server, its ledger, and a client whose requests go from worker to worker."""
    ledger = await open_ledger(postgres_ledger_url)
    await put_into(ledger, SystemClock()(), small_plan(rows=8), hold_ttl_s=300)
    stores = {"FRONTROW_REDIS_URL": redis_url, "FRONTROW_LEDGER_URL": postgres_ledger_url}
    env = {"FRONTROW_SERVER_DRAIN_S": "60", "FRONTROW_SERVER_REQUEST_WITHIN_S": "120"}  # of a busy machine
    server = Process(["serve", "--port", "0", "--workers", str(WORKERS)], tmp_path, **stores, **env)
    try:
        server.listening()
        await server.ready()
        async with httpx.AsyncClient(base_url=server.url, timeout=60, transport=InTurn(server)) as client:
            yield server, ledger, client
    finally:
        server.stop()
        await ledger.aclose()


def workers_of(server: Process) -> list[int]:
    """The pids of the server's worker processes."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in _cmdline(child)]


def _cmdline(pid: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def only(server: Process, pid: int) -> Iterator[None]:
    """While this goes on, nobody but this worker can take a connection: the others are stopped."""
    others = [other for other in workers_of(server) if other != pid]
    for other in others:
        os.kill(other, signal.SIGSTOP)
    try:
        yield
    finally:
        for other in others:
            os.kill(other, signal.SIGCONT)


class InTurn(httpx.AsyncBaseTransport):
    """Sends each request to another worker than the one before, over a connection of its own."""

    def __init__(self, server: Process) -> None:
        self._server, self._asked = server, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        pids = sorted(workers_of(self._server))
        self._asked += 1
        async with httpx.AsyncHTTPTransport(verify=False) as transport:
            with only(self._server, pids[self._asked % len(pids)]):
                answer = await transport.handle_async_request(request)
                body = await answer.aread()
        return httpx.Response(answer.status_code, headers=answer.headers, content=body, request=request)


async def ready_by_itself(server: Process, pid: int) -> None:
    """Until this worker, alone, can sell."""
    async with httpx.AsyncClient(base_url=server.url, timeout=3) as client:

        async def events() -> int:
            with only(server, pid):
                return (await client.get("/readyz")).json().get("events")

        await eventually(events, WITHIN_S, ignoring=httpx.TransportError, every_s=EACH_S)


async def buy(client: httpx.AsyncClient, document: dict, count: int) -> None:
    """A whole purchase."""
    buyer = Buyer(client, document)
    await buyer.enter(EVENT_ID)
    held = await buyer.hold(EVENT_ID, best={"count": count})
    assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
    tickets = await buyer.call("list_tickets", booking_id=held["booking"])
    assert len(tickets.json()["tickets"]) == count


def value(page: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


async def all_say(server: Process, client: httpx.AsyncClient, name: str, wanted: float) -> None:
    """Until the page of every worker says so (each tells the others every few seconds)."""

    async def values() -> list[float]:
        return [value((await client.get("/metrics")).text, name) for _ in range(WORKERS)]

    await eventually(values, WITHIN_S, until=lambda found: set(found) == {wanted}, every_s=EACH_S)


def half_sent(url: str, head: str, body: bytes) -> socket.socket:
    """A connection on which half a request has been sent."""
    where = urlsplit(url)
    sock = socket.create_connection((where.hostname, where.port), timeout=30)
    sock.sendall(f"{head}\r\nhost: {where.netloc}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body[:5])
    return sock


def answer_on(sock: socket.socket, rest: bytes) -> tuple[bytes, bytes]:
    """Send the rest; head and body of the answer, read until the server closes."""
    sock.sendall(rest)
    received = b""
    while part := sock.recv(65_536):
        received += part
    sock.close()
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


async def nobody_listens(server: Process) -> None:
    """Until the port is closed."""
    where = urlsplit(server.url)

    def is_closed() -> bool:
        try:
            socket.create_connection((where.hostname, where.port), timeout=60).close()
        except OSError:
            return True
        return False

    await eventually(is_closed, WITHIN_S, every_s=EACH_S)


async def half_held(server: Process, client: httpx.AsyncClient, document: dict) -> tuple[socket.socket, bytes]:
    """A hold of which half has been sent, and the rest."""
    shop_pass = await Buyer(client, document).enter(EVENT_ID)
    body = json.dumps({"best": {"count": 1}}).encode()
    head = f"POST /v1/events/{EVENT_ID}/holds HTTP/1.1\r\nauthorization: Bearer {shop_pass}"
    return half_sent(server.url, f"{head}\r\ncontent-type: application/json", body), body[5:]


async def stops_without_losing_a_request(server: Process, client: httpx.AsyncClient, document: dict) -> None:
    """SIGTERM while requests are half sent: each gets its whole answer, then nobody listens and the exit code is 0."""
    begun = [await half_held(server, client, document) for _ in range(6)]
    where = urlsplit(server.url)
    idle = [socket.create_connection((where.hostname, where.port), timeout=60) for _ in range(4)]
    server.process.send_signal(signal.SIGTERM)
    await nobody_listens(server)
    for head, body in await asyncio.gather(*(asyncio.to_thread(answer_on, *one) for one in begun)):
        assert head.startswith(b"HTTP/1.1 201 "), head
        assert b"connection: close" in head.lower()
        assert json.loads(body)["booking"].startswith("bkg_")
    for sock in idle:
        assert sock.recv(1) == b"", "an idle connection is closed, not cut off"
        sock.close()
    assert await asyncio.to_thread(server.stop) == 0


async def replaced(server: Process, victim: int) -> int:
    """kill -9, and the new one."""
    before = set(workers_of(server))
    os.kill(victim, signal.SIGKILL)
    new = await eventually(lambda: set(workers_of(server)) - before, WITHIN_S, every_s=EACH_S)
    return new.pop()


async def test_f5_workers_are_one_server_to_whoever_talks_to_it(tmp_path, redis_url, postgres_ledger_url):
    """B19, F5: each step of a purchase at another worker, one sum of their numbers, kill -9 of one, an orderly end."""
    async with serving(tmp_path, redis_url, postgres_ledger_url) as (server, ledger, client):
        for pid in workers_of(server):
            await ready_by_itself(server, pid)
        document = await read_document(client)
        await buy(client, document, 1)
        await buy(client, document, 2)
        await all_say(server, client, "frontrow_seats_locked_total", 3)
        new = await replaced(server, workers_of(server)[0])
        await ready_by_itself(server, new)
        await buy(client, document, 2)
        await all_say(server, client, "frontrow_seats_locked_total", 5)
        await stops_without_losing_a_request(server, client, document)
        assert not await ledger.store.read(Query("seats_sold_twice", params=(10,)))


def a_parent(folder: Path) -> "subprocess.Popen[bytes]":
    """A process that watches two workers without a platform."""
    code = (
        "from frontrow.web.server.process_supervisor import Workers\n"
        "from tests.support.idle_worker import wait_to_be_stopped\n"
        "if __name__ == '__main__':\n"
        f"    Workers(2, wait_to_be_stopped, ({str(folder)!r},)).watch()\n"
    )
    (folder / "parent.py").write_text(code)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, str(folder / "parent.py")], env=env, stderr=subprocess.DEVNULL)


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """kill -9 of the parent leaves nobody behind to keep the port."""
    parent = a_parent(tmp_path)
    try:
        started = eventually_sync(lambda: list(tmp_path.glob("[0-9]*")), WITHIN_S, until=lambda found: len(found) == 2)
        pids = [path.name for path in started]
    finally:
        parent.kill()
        parent.wait(30)
    eventually_sync(lambda: not any(b"spawn_main" in _cmdline(pid) for pid in pids), WITHIN_S, every_s=EACH_S)


def test_what_is_wrong_with_a_shared_store_is_said_once(tmp_path, redis_url, postgres_url):
    """A ledger without tables: one sentence, exit code 2, however many workers were asked for."""
    stores = {"FRONTROW_REDIS_URL": redis_url, "FRONTROW_LEDGER_URL": postgres_url}
    server = Process(["serve", "--port", "0", "--workers", "2"], tmp_path, **stores)
    try:
        code = server.process.wait(120)
    finally:
        server.stop()
    told = (tmp_path / "errors.log").read_text().strip().splitlines()
    said = [line for line in told if line.startswith("frontrow serve: ")]
    assert (code, len(said)) == (2, 1), told
    assert "frontrow ledger migrate" in said[0]
