"""Bodies and heads that are too large, and requests that never end: refused or cut off within a bound."""

import asyncio
import contextlib
import time

import pytest

from tests.boxoffice.people.support import on_sale, opened
from tests.security.raw_server import WITHIN_S, say, serving
from tests.security.world import EVENT_ID, HALL

PATHS = [f"/v1/events/{EVENT_ID}/room/join", f"/v1/events/{EVENT_ID}/holds", "/v1/auth/guest", "/v1/auth/staff/login"]


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join(
        (f"POST {path} HTTP/1.1", "Host: test", "Content-Type: application/json", *lines, "", "")
    ).encode()


@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
async def test_oversized_bodies_and_heads(tmp_path, hot: bool):
    async with opened(tmp_path, per_ip="100000/second") as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            big = b'{"x":"' + b"x" * (2 * 1024 * 1024) + b'"}'
            for path in PATHS:
                whole = head(path, f"Content-Length: {len(big)}", "Connection: close") + big
                answer = await say(port, whole)
                assert answer == b"" or answer[9:12] in (b"400", b"401", b"413"), (path, answer[:200])
                chunk = b"%x\r\n%b\r\n" % (len(big), big)
                answer = await say(
                    port, head(path, "Transfer-Encoding: chunked", "Connection: close"), chunk, b"0\r\n\r\n"
                )
                assert answer == b"" or answer[9:12] in (b"400", b"401", b"413"), (path, answer[:200])
            long = head("/v1/auth/guest", "X: " + "x" * 4_000_000, "Content-Length: 0")
            answer = await say(port, long)
            assert answer == b"" or answer[9:12] in (b"400", b"431"), answer[:100]


SLOW = {
    "nothing at all": b"",
    "a head that never ends": b"GET /v1/events HTTP/1.1\r\nHost: test\r\n",
    "a body that never comes": head(PATHS[2], "Content-Length: 100"),
    "a body that never ends": head(PATHS[3], "Content-Length: 100") + b"{",
    "a chunk that never ends": head(PATHS[2], "Transfer-Encoding: chunked") + b"ff\r\n{",
    "a hot body that never ends": head(PATHS[1], "Content-Length: 100") + b"{",
}


@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
async def test_slowloris_a_request_that_does_not_arrive_is_cut_off(tmp_path, hot: bool):
    """60 connections that drip: all closed by the server within the bound, and others are answered meanwhile."""
    async with opened(tmp_path, per_ip="100000/second", request_within_s=0.5) as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            starts = list(SLOW.values()) * 10
            dripping = [asyncio.create_task(drip(port, start)) for start in starts]
            quick = await say(port, b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            assert quick.startswith(b"HTTP/1.1 200")
            assert await asyncio.gather(*dripping) == [True] * len(starts), "closed by the server, each of them"


async def drip(port: int, start: bytes) -> bool:
    """Begin, then a byte every now and then; whether the server closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)
    deadline = time.monotonic() + WITHIN_S
    try:
        while time.monotonic() < deadline:  # bounded; ends as soon as the server closes
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    if await reader.read(1024) == b"":
                        return True
            if start:
                writer.write(b"x" if start.endswith(b"{") else b"X: y\r\n" if b"\r\n\r\n" not in start else b" ")
        return False
    except ConnectionError:
        return True
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
