"""By the real server, fast path and framework: every answer says `nosniff` once, and a `Host` is checked alike."""

import asyncio
import contextlib

import httpx
import pytest

from tests.boxoffice.people.support import on_sale, opened
from tests.security.raw_server import say, serving
from tests.security.route_table import page_table, table
from tests.security.world import EVENT_ID, HALL
from tests.web.api.support import a_server

NOSNIFF = b"x-content-type-options: nosniff\r\n"
EVENT = f"/v1/events/{EVENT_ID}"
SHAPES = ("/static/0/css/base.css", "/static/0/none.css", "/nowhere", "/v1/nowhere", "/healthz", "/metrics", "/readyz")
RAW = {
    "no HTTP at all": b"hello\r\n\r\n",
    "another version": b"GET / HTTP/0.9\r\n\r\n",
    "a bad Host": b"GET /v1/events HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n",
    "a long head": b"GET /v1/events HTTP/1.1\r\nHost: test\r\nA: %b\r\n\r\n" % (b"x" * 70_000),
    "many headers": b"GET /v1/events HTTP/1.1\r\nHost: test\r\n" + b"A: b\r\n" * 120 + b"Connection: close\r\n\r\n",
    "a hot answer": f"GET {EVENT} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode(),
    "a hot refusal": f"GET {EVENT}/room/status HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode(),
    "OPTIONS": b"OPTIONS /v1/events HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
    "HEAD": b"HEAD / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
    "a page": b"GET / HTTP/1.1\r\nHost: test\r\nAccept: text/html\r\nConnection: close\r\n\r\n",
}
STREAMS = (f"{EVENT}/seats/stream", f"{EVENT}/room/stream")


def heads(answers: bytes) -> list[bytes]:
    """The heads of one or several answers on one connection, in small letters."""
    return [part.lower() + b"\r\n" for part in answers.split(b"\r\n\r\n") if part.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
async def test_every_answer_says_nosniff_once(tmp_path, hot: bool) -> None:
    async with a_server(tmp_path, hot_lane=hot, per_ip="100000/second") as (_, url):
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            routes = {
                (route.method, route.path(event_id=EVENT_ID))
                for route in (*table(), *page_table())
                if not route.template.endswith(("/stream", "/live"))
            }
            assert len(routes) > 200
            wrong = []
            for method, path in sorted(routes | {("GET", path) for path in SHAPES} | {("DELETE", "/v1/events")}):
                for accept in ("application/json", "text/html"):
                    answer = await client.request(method, path, headers={"accept": accept})
                    if answer.headers.get_list("x-content-type-options") != ["nosniff"]:
                        wrong.append((method, path, accept, answer.status_code))
            assert wrong == []
        port = int(url.rpartition(":")[2])
        for name, sent in RAW.items():
            told = heads(await say(port, sent))
            assert told, name
            assert [head.count(NOSNIFF) for head in told] == [1] * len(told), (name, told)
        for path in STREAMS:
            head = await first_bytes(port, f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            assert head.count(NOSNIFF) == 1, (path, head)


async def first_bytes(port: int, sent: bytes) -> bytes:
    """The head of an answer that goes on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            return (await reader.readuntil(b"\r\n\r\n")).lower()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


HOSTS = {
    b"test": True,
    b"tickets.example.org:443": True,
    b"[::1]:8000": True,
    b"": True,
    b"a/b": False,
    b"a b": False,
    b"a@b": False,
    b"example.org:99999": False,
    b"example.org:port": False,
    b"<script>": False,
    b'a"b': False,
    b"\xff": False,
}


@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
async def test_a_host_that_is_none_is_refused_alike_on_fast_path_and_framework(tmp_path, hot: bool) -> None:
    async with opened(tmp_path, per_ip="100000/second") as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            for path in (EVENT, "/v1/events", f"{EVENT}/seats/poll?after=0-0"):
                for host, fine in HOSTS.items():
                    for lines in (b"Host: %b" % host, b"hOST: %b\r\nExpect: nothing" % host):
                        sent = b"GET %b HTTP/1.1\r\n%b\r\nConnection: close\r\n\r\n" % (path.encode(), lines)
                        told = await say(port, sent)
                        refused = told.startswith(b"HTTP/1.1 400")
                        assert refused != fine, (path, lines, told[:200])
                        assert fine or b"Host must be a name or an address" in told
            twice = b"GET %b HTTP/1.1\r\nHost: test\r\nHost: a/b\r\nConnection: close\r\n\r\n" % EVENT.encode()
            assert (await say(port, twice)).startswith(b"HTTP/1.1 400"), "of two, both are looked at"
