"""Requests that two parsers could read differently: each is refused, and nothing hidden in it is ever answered."""

import pytest

from tests.boxoffice.people.support import on_sale, opened
from tests.security.raw_server import say, serving
from tests.security.world import EVENT_ID, HALL

# A request that would be noticed if it were ever answered: the only one here whose path exists with a GET.
HIDDEN = b"GET /v1/events HTTP/1.1\r\nHost: test\r\n\r\n"
MARK = b'"events":['
HOLDS, JOIN = b"/v1/events/%b/holds" % EVENT_ID.encode(), b"/v1/events/%b/room/join" % EVENT_ID.encode()


def attacks(path: bytes) -> dict[str, bytes]:
    """Every disagreement about where a body ends, aimed at this POST route, with the hidden request behind it."""
    head = b"POST " + path + b" HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
    chunked = b"0\r\n\r\n" + HIDDEN
    length = str(len(chunked)).encode()
    return {
        "CL and TE": head + b"Content-Length: " + length + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
        "TE and CL": head + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunked,
        "two different lengths": head + b"Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + HIDDEN,
        "two equal lengths": head + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
        "a list of lengths": head + b"Content-Length: 0, 50\r\n\r\n" + HIDDEN,
        "a signed length": head + b"Content-Length: +0\r\n\r\n" + HIDDEN,
        "a negative length": head + b"Content-Length: -1\r\n\r\n" + HIDDEN,
        "a hexadecimal length": head + b"Content-Length: 0x0\r\n\r\n" + HIDDEN,
        "a huge length": head + b"Content-Length: 99999999999999999999999\r\n\r\n" + HIDDEN,
        "a space before the colon": head + b"Content-Length : 0\r\n\r\n" + HIDDEN,
        "an unknown encoding": head + b"Transfer-Encoding: xchunked\r\n\r\n" + chunked,
        "chunked not last": head + b"Transfer-Encoding: chunked, identity\r\n\r\n" + chunked,
        "chunked twice": head + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunked,
        "a folded header": head + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + chunked,
        "obs-fold": head + b"X-A: b\r\n c: d\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
        "bare LF": head.replace(b"\r\n", b"\n") + b"Content-Length: 0\n\n" + HIDDEN,
        "one bare LF": head + b"X: y\nContent-Length: 0\r\n\r\n" + HIDDEN,
        "bare CR": head + b"X: y\rContent-Length: 0\r\n\r\n" + HIDDEN,
        "a null in a header": head + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
        "a bad chunk size": head + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + HIDDEN,
        "a negative chunk size": head + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
        "a chunk ended by LF": head + b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\r\n\r\n" + HIDDEN,
        "a header without a name": head + b": x\r\nContent-Length: 0\r\n\r\n" + HIDDEN,
        "no colon": head + b"Content-Length 0\r\n\r\n" + HIDDEN,
    }


@pytest.mark.parametrize("hot", [True, False], ids=["fast path", "framework"])
async def test_request_smuggling_over_raw_sockets(tmp_path, hot: bool):
    """CL+TE, double CL, obs-fold, bare LF and their kin, at a hot route and at one of the framework's."""
    async with opened(tmp_path, per_ip="100000/second") as platform:
        await on_sale(platform, HALL)
        async with serving(platform, hot=hot) as port:
            control = await say(port, HIDDEN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert MARK in control, "the hidden request alone is answered"
            for path in (HOLDS, JOIN, b"/v1/auth/guest"):
                for name, attack in attacks(path).items():
                    answer = await say(port, attack)
                    assert MARK not in answer, (path, name, answer)
                    assert answer.count(b"HTTP/1.1 ") <= 1, (path, name, answer)
                    assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), (path, name, answer[:80])


async def test_response_splitting_and_odd_request_lines(tmp_path):
    async with opened(tmp_path, per_ip="100000/second") as platform, serving(platform) as port:
        for line in (
            b"GET /v1/events\r\nX: y HTTP/1.1\r\n",
            b"GET /v1/events HTTP/1.9\r\n",
            b"GET /v1/events\tHTTP/1.1\r\n",
            b"get /v1/events HTTP/1.1\r\n",
            b"G\x00T /v1/events HTTP/1.1\r\n",
        ):
            answer = await say(port, line + b"Host: test\r\nConnection: close\r\n\r\n")
            assert MARK not in answer, line
        answer = await say(
            port, b"GET /v1/events/a%0d%0aSet-Cookie:%20x=1 HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        )
        head = answer.partition(b"\r\n\r\n")[0]
        assert b"set-cookie" not in head.lower()
        assert answer.startswith(b"HTTP/1.1 404")
