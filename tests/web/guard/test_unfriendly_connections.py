"""Connections that mean harm: they pipeline and never read, send heads without end, or come by the thousand.

Each attack is made on a hot route and on the app, of a server with the fast path and of one with the guard alone.
"""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from frontrow.settings.overload import OverloadSettings
from frontrow.web.fastpath.protocol import fast_path
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.guard.body_budget import BodyBudget
from frontrow.web.guard.connection_guard import MAX_HEAD_BYTES, MAX_HEADERS, GuardRules
from frontrow.web.guard.guarded_protocol import GuardedRequests, guarded
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.route_metrics import Traffic
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from frontrow.web.server.overload_middleware import GuardedApp
from tests.support.eventually import eventually_sync
from tests.web.room.served import Line, serving

LARGE = b"x" * 32_768
MAX_CONNECTIONS, PER_ADDRESS, MAX_BODIES = 30, 20, 400_000
SETTINGS = OverloadSettings(
    max_connections=MAX_CONNECTIONS, max_connections_per_address=PER_ADDRESS, uncapped=("127.0.0.1",)
)
STRANGER, OTHER = "127.0.0.2", "127.0.0.3"  # 127.0.0.1 stands for the proxy's machine: not capped
PATHS = {"fast path": b"/hot", "framework": b"/cold"}


@dataclass
class Server:
    port: int
    answered: list[bytes]  # the paths that were answered
    gate: OverloadGate
    bodies: BodyBudget

    def connect(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10, source_address=(address, 0))


@pytest.fixture(scope="module", params=["fast path", "guard alone"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    answered: list[bytes] = []

    def hot(request: EndpointRequest) -> EndpointResponse:
        answered.append(b"/hot")
        return EndpointResponse(200, b"content-type: text/plain\r\n", LARGE)

    def too_often(request: EndpointRequest) -> EndpointResponse:
        answered.append(b"/too-often")
        return EndpointResponse(429, b"content-type: text/plain\r\n", b"too often")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": message["type"] + ".complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while scope["path"] == "/body" and (await receive()).get("more_body"):
            pass
        answered.append(scope["path"].encode())
        status = 429 if scope["path"] == "/too-often" else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"32768")]})
        await send({"type": "http.response.body", "body": LARGE})

    gate = OverloadGate(SETTINGS)
    watch = Watch(gate, Traffic(), lambda peer: False)
    caps = AddressCaps(SETTINGS.max_connections_per_address, SETTINGS.uncapped)
    routes = {(b"GET", b"/hot"): hot, (b"GET", b"/too-often"): too_often}
    rules = GuardRules(watch=watch, caps=caps, read_within_s=0.3, most_body_bytes=MAX_BODIES)
    protocol = fast_path(routes, rules) if request.param == "fast path" else guarded(rules)
    with serving(GuardedRequests(GuardedApp(app, watch)), protocol, loop="uvloop", ws="none") as port:
        yield Server(port, answered, gate, rules.bodies)


def get(path: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join((b"GET %b HTTP/1.1" % path, b"Host: x", *lines, b"", b""))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_who_never_reads_is_not_read_and_is_cut_off(server: Server, path: bytes) -> None:
    """2,000 requests for 64 MB of answers: the server answers what fits into the sockets' buffers and stops."""
    before = len(server.answered)
    with server.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionError):
            sock.sendall(get(path) * 2_000)
        eventually_sync(lambda: len(server.answered) > before and server.gate.connections == 0)  # cut off
        answered = len(server.answered) - before
        assert 1 <= answered <= 400, answered


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_who_reads_late_gets_every_answer_in_order(server: Server, path: bytes) -> None:
    with Line(server.port) as line:
        asked = [path, b"/hot", b"/cold"] * 40
        line.send(b"".join(map(get, asked)))
        before = len(server.answered)
        for number in range(len(asked)):
            status, _, body = line.answer()
            assert (status, len(body)) == (200, len(LARGE)), number
        line.send(get(path))
        assert line.answer()[0] == 200
        assert len(server.answered) >= before


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_closing_connection_that_is_not_read_is_cut_off_too(server: Server, path: bytes) -> None:
    before = len(server.answered)
    with server.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(get(path) * 150 + get(path, b"Connection: close"))
        eventually_sync(lambda: len(server.answered) > before and server.gate.connections == 0)


def test_who_pipelines_although_it_asks_too_often_rests(server: Server) -> None:
    """4,000 refusals cost little, because most of the requests are not parsed for a while."""
    before = len(server.answered)
    with Line(server.port) as line:
        line.send(get(b"/too-often") * 4_000)
        assert line.answer()[0] == 429
        with Line(server.port) as other:
            other.send(get(b"/hot"))
            assert other.answer()[0] == 200
        assert len(server.answered) - before < 2_000
    eventually_sync(lambda: server.gate.connections == 0)


HEADS = {
    "many tiny headers": b"".join(b"a:\r\n" for _ in range(500_000)),
    "one endless header": b"X: " + b"x" * 2_000_000,
    "an endless header name": b"x" * 2_000_000,
    "a few more headers than allowed": b"".join(b"A: b\r\n" for _ in range(MAX_HEADERS)) + b"\r\n",
    "a head that is a little too long": b"A: " + b"b" * MAX_HEAD_BYTES + b"\r\n\r\n",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_a_head_that_is_too_large_gets_431(server: Server, path: bytes, head: bytes) -> None:
    before = len(server.answered)
    with Line(server.port) as line:
        start = b"GET %b HTTP/1.1\r\nHost: x\r\n" % path
        with contextlib.suppress(ConnectionError):
            line.send(start + head[:60_000])
        status, headers, body = line.answer()
        assert (status, headers[b"connection"]) == (431, b"close")
        assert b'"code":"head_too_large"' in body
        assert line.at_end()
    assert len(server.answered) == before


def test_an_endless_trailer_or_chunk_size_ends_the_connection(server: Server) -> None:
    for end in (b"0\r\nX: " + b"x" * 60_000, b"1;" + b"x" * 60_000):
        with Line(server.port) as line:
            line.send(b"POST /cold HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                line.send(end)
            except ConnectionError:
                continue
            try:
                while line.sock.recv(65_536):
                    pass
            except ConnectionError:
                pass  # either way the server ended it


def test_large_bodies_that_do_not_end_share_a_bounded_memory(server: Server) -> None:
    """200 connections with a megabyte each took 160 MB, and an address may have 1,000."""

    def begin(address: str, size: int) -> socket.socket:
        sock = server.connect(address)
        sock.settimeout(10)
        sock.sendall(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"x" * (size - 1))
        return sock

    def end(sock: socket.socket) -> bytes:
        with sock:
            sock.sendall(b"x")
            return sock.recv(12)

    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(begin(STRANGER, 150_000))
        eventually_sync(lambda: server.bodies.held_bytes == 149_999)
        refused = stack.enter_context(begin(STRANGER, 60_000))
        told = refused.recv(1_000)
        assert told.startswith(b"HTTP/1.1 503"), "an address has half of it"
        assert b"retry-after: 5\r\n" in told
        assert refused.recv(1) == b"", "and its connection ends"
        eventually_sync(lambda: server.bodies.held_bytes == 149_999)  # what it sent is forgotten
        other = stack.enter_context(begin(OTHER, 150_000))
        eventually_sync(lambda: server.bodies.held_bytes == 299_998)
        proxy = stack.enter_context(begin("127.0.0.1", 110_000))
        assert proxy.recv(12) == b"HTTP/1.1 503", "all together have no more than that"
        small = stack.enter_context(begin(STRANGER, 16_000))
        assert [end(one) for one in (small, mine, other)] == [b"HTTP/1.1 200"] * 3
        eventually_sync(lambda: server.bodies.held_bytes == 0)
        assert end(begin("127.0.0.1", 390_000)) == b"HTTP/1.1 200", "it is free again, and a proxy may have all of it"
    eventually_sync(lambda: server.gate.connections == 0)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_head_just_within_the_bounds_is_answered(server: Server, path: bytes) -> None:
    with Line(server.port) as line:
        line.send(get(path, *[b"A%d: %b" % (number, b"b" * 300) for number in range(MAX_HEADERS - 1)]))
        assert line.answer()[0] == 200


def test_one_address_cannot_fill_the_server_and_pays_from_the_reserve(server: Server) -> None:
    """20 idle connections of one address: its 21st is refused except for paying, others are served."""
    idle = [server.connect(STRANGER) for _ in range(PER_ADDRESS)]
    try:
        eventually_sync(lambda: server.gate.connections >= PER_ADDRESS)
        assert ask(server, STRANGER, b"/hot") == (503, b"close")
        assert ask(server, STRANGER, b"/v1/webhooks/stripe") == (200, b"close")
        assert ask(server, STRANGER, b"/v1/bookings/bkg_a") == (200, b"close")
        assert ask(server, OTHER, b"/hot") == (200, b"")
        assert ask(server, "127.0.0.1", b"/cold") == (200, b"")
    finally:
        close_all(server, idle)


def test_a_full_server_still_takes_payments_and_webhooks(server: Server) -> None:
    idle = [server.connect() for _ in range(MAX_CONNECTIONS)]
    try:
        eventually_sync(lambda: server.gate.connections >= MAX_CONNECTIONS)
        assert ask(server, OTHER, b"/hot") == (503, b"close")
        assert ask(server, OTHER, b"/cold") == (503, b"close")
        assert ask(server, OTHER, b"/v1/webhooks/stripe") == (200, b"close")
        assert ask(server, OTHER, b"/checkout/bkg_a/pay") == (200, b"close")
    finally:
        close_all(server, idle)


def ask(server: Server, address: str, path: bytes) -> tuple[int, bytes]:
    line = Line.__new__(Line)
    line.sock, line.buffer = server.connect(address), b""
    with line:
        line.send(get(path))
        status, headers, _ = line.answer()
        return status, headers.get(b"connection", b"")


def close_all(server: Server, sockets: list[socket.socket]) -> None:
    for sock in sockets:
        sock.close()
    eventually_sync(lambda: server.gate.connections == 0)
