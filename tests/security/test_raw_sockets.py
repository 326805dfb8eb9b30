"""Rubbish over raw sockets: mangled requests, half-closed, idle and slow ones, and TLS where none is.

Fast path and framework get the same.

Whatever comes, the server answers 4xx or closes, never 500, and serves the next person. `FRONTROW_SEEDS=20000` looks
longer (`make soak`, which also measures memory and what other fans wait meanwhile: `bench/unfriendly.py`).
"""

import asyncio
import contextlib
import os
import random
import re
import ssl

import pytest

from tests.boxoffice.people.support import on_sale, opened
from tests.security.raw_server import serving
from tests.security.world import EVENT_ID, HALL
from tests.support.eventually import eventually
from tests.support.tls_proxy import TlsProxy

ROUNDS = int(os.environ.get("FRONTROW_SEEDS") or 150)
BOTH = pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
FINE = b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
EVENT = f"/v1/events/{EVENT_ID}".encode()


def post(path: bytes, body: bytes, *lines: bytes) -> bytes:
    head = (b"POST %b HTTP/1.1" % path, b"Host: test", b"Content-Type: application/json", *lines)
    return b"\r\n".join((*head, b"Content-Length: %d" % len(body), b"", body))


SAMPLES = [
    b"GET %b HTTP/1.1\r\nHost: test\r\nAccept: */*\r\n\r\n" % EVENT,
    b"GET %b/seats/poll?after=1-2 HTTP/1.1\r\nHost: test\r\n\r\n" % EVENT,
    b"GET %b/room/status HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer a.b.c\r\n\r\n" % EVENT,
    post(EVENT + b"/room/join", b'{"person":"ada"}', b"Idempotency-Key: one"),
    post(EVENT + b"/holds", b'{"seats":["S-A-1"]}', b"Frontrow-Pass: a.b.c"),
    post(b"/v1/auth/staff/login", b'{"email":"a@example.org","password":"x"}'),
    b"POST %b/holds HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" % EVENT,
    b"GET /events/%b HTTP/1.1\r\nHost: test\r\nAccept: text/html\r\nCookie: a=b; c=d\r\n\r\n" % EVENT_ID.encode(),
]


def mangled(chance: random.Random) -> bytes:
    """A request, or two, with something wrong."""
    text = bytearray(chance.choice(SAMPLES) + (chance.choice(SAMPLES) if chance.random() < 0.3 else b""))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(text))
        match chance.randrange(6):
            case 0:
                text[at] = chance.randrange(256)
            case 1:
                del text[at : at + chance.randrange(1, 20)]
            case 2:
                text[at:at] = chance.randbytes(chance.randrange(1, 200))
            case 3:
                text[at:at] = chance.choice((b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"%", b"\r\n\r\n"))
            case 4:
                text[at:at] = text[chance.randrange(len(text)) :][:300]
            case _:
                text[at:at] = b"A" * chance.choice((1_000, 5_000, 40_000))
        text = text or bytearray(b"G")
    return bytes(text)


async def talk(port: int, text: bytes, *, half_close: bool = True) -> bytes:
    """Send, close our half, and read until the server closes, for a bounded time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        with contextlib.suppress(ConnectionError, OSError):
            writer.write(text)
            await writer.drain()
            if half_close:
                writer.write_eof()
            async with asyncio.timeout(15):
                while part := await reader.read(65_536):
                    got += part
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, OSError):
            await writer.wait_closed()
    return got


@BOTH
async def test_mangled_requests_are_never_our_fault(tmp_path, hot: bool) -> None:
    async with opened(tmp_path, per_ip="100000/second", request_within_s=2) as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            for seed in range(ROUNDS):
                text = mangled(random.Random(seed))
                answer = await talk(port, text)
                assert not re.search(rb"HTTP/1.1 5\d\d", answer), (seed, text, answer[:300])
            assert (await talk(port, FINE, half_close=False)).startswith(b"HTTP/1.1 200")


@BOTH
async def test_hundreds_of_idle_half_closed_and_slow_connections_hinder_nobody(tmp_path, hot: bool) -> None:
    starts = [b"", b"GET / HT", SAMPLES[0], SAMPLES[3][:-5], SAMPLES[1] * 50]
    async with opened(tmp_path, per_ip="100000/second", request_within_s=0.5, read_within_s=0.5) as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
            for number, (_, writer) in enumerate(lines):
                writer.write(starts[number % len(starts)])
                if number % 7 == 0:
                    with contextlib.suppress(OSError):
                        writer.write_eof()
            assert (await talk(port, FINE, half_close=False)).startswith(b"HTTP/1.1 200")
            gate = platform.server.telemetry.gate
            answered = 2 * len(lines) // len(starts)  # these may stay for their next request
            await eventually(lambda: gate.connections, until=lambda open_: open_ <= answered)  # others are closed
            for _, writer in lines:
                writer.close()
            assert (await talk(port, FINE, half_close=False)).startswith(b"HTTP/1.1 200")


async def test_behind_tls_rubbish_reaches_nobody_and_people_are_served(tmp_path) -> None:
    async with opened(tmp_path, per_ip="100000/second", request_within_s=2) as platform, serving(platform) as port:
        for hello in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\x16\x03\x01" + bytes(500)):
            answer = await talk(port, hello)  # TLS at the port that speaks plain HTTP
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
        with TlsProxy(tmp_path, port) as proxy:
            for rubbish in (b"\x16\x03\x01\x02\x00" + os.urandom(512), b"\x16" * 600):
                with contextlib.suppress(TimeoutError):
                    await talk(proxy.port, rubbish)
            trust = ssl.create_default_context(cafile=str(proxy.certificate))
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=trust)
            writer.write(FINE)
            assert (await asyncio.wait_for(reader.read(100), 15)).startswith(b"HTTP/1.1 200")
            writer.close()
            with contextlib.suppress(ConnectionError, OSError):
                await writer.wait_closed()
