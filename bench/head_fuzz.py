"""Fuzzes the compiled reader of plain requests: whatever it accepts, httptools must read in the same way.

Requests are put together from parts that parsers disagree about, or made by damaging what browsers send. A seed makes
the same requests again. The run ends with exit code 1 at the first request that the two read differently, and prints
its bytes. The suite runs a short one (`tests/web/fastpath/test_plain_head.py`), `make soak` all.

    python -m bench.head_fuzz                        # 2,200,000 requests, about two minutes
    python -m bench.head_fuzz --requests 50_000 --seed 7
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httptools

from frontrow.web.fastpath.protocol import read_plain
from frontrow.web.guard.connection_guard import MAX_HEADERS

REQUESTS = 2_200_000
TELL_EVERY_S = 5.0
BROWSER = (
    b"GET /v1/events/evt_1/room/status HTTP/1.1\r\nHost: tickets.example.org:8443\r\nConnection: keep-alive\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)\r\n"
    b'sec-ch-ua: "Not/A)Brand";v="8", "Chromium";v="126"\r\nAccept: */*\r\nAccept-Language: en-GB,en;q=0.9\r\n'
    b"Authorization: Bearer abc.DEF_1-.x\r\nCookie: a=b; __Host-c=d%20e\r\nReferer: https://x.example/?a=b#c\r\n\r\n"
)
HOLD = b'POST /v1/events/e/holds HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n{"seats":1}'
METHODS = (b"GET", b"POST", b"PATCH", b"DELETE", b"HEAD", b"PUT", b"get", b"CONNECT", b"PRI", b"")
URLS = (b"/", b"/v1/events/e?a=b&c=%20", b"*", b"http://h/x", b"/a b", b"/#x", b"/\xc3", b"", b"//", b"/?")
VERSIONS = (b"1.0\r\n", b"1.1\n", b"2.0\r\n", b"1.1 \r\n", b"0.9\r\n")
ENDS = (b"\r\n", b"\n", b"\r", b"\r\n ", b" \r\n", b"\0\r\n")
COLONS = (b": ", b":", b" : ", b"", b":  ", b":\t")
NAMES = (
    b"Host", b"X-One", b"Content-Length", b"content-length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"Expect",
    b"Proxy-Connection", b"Authorization", b"cookie", b"a b", b"", b"Content-Length ", b"\xe4", b"x_y", b"Te",
    b"Trailer", b"Keep-Alive", b"CONTENT-LENGTH", b"cONNECTION",
)  # fmt: skip
VALUES = (
    b"x", b"0", b"3", b"5", b"03", b"+3", b"3, 3", b"99999999999", b"chunked", b"keep-alive", b"Keep-Alive", b"close",
    b"upgrade", b"websocket", b"h2c", b"100-continue", b"a\tb", b"  a", b"a ", b"", b"\xff", b"a\0b", b"\x7f",
    b"keep-alive, close", b"timeout=5",
)  # fmt: skip
BODIES = (b"", b"", b"", b"", b"abc", b"abcde", b"3\r\nabc\r\n0\r\n\r\n", HOLD)

Plain = tuple[tuple[bytes, bytes], list[tuple[bytes, bytes]], bytes]
Reader = Callable[[bytes], Plain | None]


class Told:
    """What httptools tells about a request."""

    def __init__(self, data: bytes) -> None:
        self.url, self.body, self.begun, self.complete, self.kept = b"", b"", 0, 0, False
        self.lines: list[tuple[bytes, bytes]] = []
        self.parser: Any = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.lines.append((name, value))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete += 1
        self.kept = self.parser.should_keep_alive() and not self.parser.should_upgrade()


def compare(data: bytes, read: Reader = read_plain) -> bool:
    """Whether the request is plain; then httptools has read the same."""
    found = read(data)
    if found is None:
        return False
    key, lines, body = found
    told = Told(data)
    assert (told.begun, told.complete, told.kept, told.parser.get_http_version()) == (1, 1, True, "1.1")
    assert ((told.parser.get_method(), told.url), told.lines, told.body) == (key, lines, body)
    assert len(lines) <= MAX_HEADERS
    assert b"expect" not in {name.lower() for name, _ in lines}
    return True


def requests(seed: int) -> Iterator[bytes]:
    """Requests without end, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        yield _composed(chance) if chance.random() < 0.5 else _damaged(chance)


def _composed(chance: random.Random) -> bytes:
    """A request of parts, most of them usual."""
    method = chance.choice((b"GET", b"POST")) if chance.random() < 0.7 else chance.choice(METHODS)
    url = b"/x" if chance.random() < 0.6 else chance.choice(URLS)
    version = b"1.1\r\n" if chance.random() < 0.9 else chance.choice(VERSIONS)
    lines = b"".join(_line(chance) for _ in range(chance.randrange(5)))
    return b"%b %b HTTP/%b%b\r\n%b" % (method, url, version, lines, chance.choice(BODIES))


def _line(chance: random.Random) -> bytes:
    if chance.random() < 0.6:
        return b"A: b\r\n"
    colon, end = (b": ", b"\r\n") if chance.random() < 0.8 else (chance.choice(COLONS), chance.choice(ENDS))
    return chance.choice(NAMES) + colon + chance.choice(VALUES) + end


def _damaged(chance: random.Random) -> bytes:
    """What a browser or a client sends, with up to three places changed."""
    data = chance.choice((BROWSER, HOLD))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        put = chance.choice((b"", b"\r\n", b" ", b":", b"a", chance.randbytes(1), chance.randbytes(2)))
        data = data[:at] + put + data[at + chance.randrange(3) :]
    return data


@dataclass(frozen=True)
class Difference(Exception):
    """The reader and httptools disagree about a request."""

    number: int
    data: bytes


def fuzz(count: int, seed: int, read: Reader = read_plain, tell: Callable[[int, int], None] = lambda *_: None) -> int:
    """Compare so many requests; how many of them were plain. Raises `Difference` at the first that differs."""
    plain, told_s = 0, time.monotonic()
    for number, data in zip(range(count), requests(seed), strict=False):
        try:
            plain += compare(data, read)
        except (AssertionError, httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise Difference(number, data) from error
        if number % 1_000 == 0 and time.monotonic() - told_s > TELL_EVERY_S:
            told_s = time.monotonic()
            tell(number, plain)
    return plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if read_plain.__module__.endswith("protocol"):
        sys.exit("the compiled reader is not built here: run `make setup` on a machine with a C compiler")
    try:
        plain = fuzz(given.requests, given.seed, tell=lambda done, plain: print(f"{done:,} compared, {plain:,} plain"))
    except Difference as found:
        sys.exit(f"seed {given.seed}, request {found.number}: read differently: {found.data!r}")
    print(f"{given.requests:,} requests compared, {plain:,} of them plain: httptools reads each of these the same way")


if __name__ == "__main__":
    main()
