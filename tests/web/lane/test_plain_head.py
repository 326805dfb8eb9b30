"""The compiled reader of plain requests: whatever it accepts, httptools reads in the same way."""

import shutil
import sysconfig
from collections.abc import Callable

import httptools
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frontrow.web.lane import protocol
from frontrow.web.lane.protocol import MAX_HEADERS, read_plain

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
BROWSER = (
    b"GET /v1/events/evt_1/room/status HTTP/1.1\r\nHost: tickets.example.org:8443\r\nConnection: keep-alive\r\n"
    b"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)\r\n"
    b'sec-ch-ua: "Not/A)Brand";v="8", "Chromium";v="126"\r\nAccept: */*\r\nAccept-Language: en-GB,en;q=0.9\r\n'
    b"Authorization: Bearer abc.DEF_1-.x\r\nCookie: a=b; __Host-c=d%20e\r\nReferer: https://x.example/?a=b#c\r\n\r\n"
)
HOLD = b'POST /v1/events/e/holds HTTP/1.1\r\nhost: a\r\ncontent-length: 11\r\n\r\n{"seats":1}'


class Told:
    """What httptools tells about a request."""

    def __init__(self, data: bytes) -> None:
        self.url, self.lines, self.body, self.begun, self.complete, self.kept = b"", [], b"", 0, 0, False
        self.parser = httptools.HttpRequestParser(self)
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


def compare(data: bytes) -> bool:
    """Whether the request is plain; then httptools has read the same."""
    found = read_plain(data)
    if found is None:
        return False
    key, lines, body = found
    told = Told(data)
    assert (told.begun, told.complete, told.kept, told.parser.get_http_version()) == (1, 1, True, "1.1")
    assert ((told.parser.get_method(), told.url), told.lines, told.body) == (key, lines, body)
    assert len(lines) <= MAX_HEADERS
    assert b"expect" not in {name.lower() for name, _ in lines}
    return True


def test_the_reader_was_built_here(not_checked: Callable[[str], None]) -> None:
    """The suite must test it; `make setup` builds it wherever there is a C compiler."""
    if read_plain.__module__ == protocol.__name__:
        assert shutil.which(COMPILER) is None
        not_checked("the compiled reader of request heads (there is no C compiler); httptools' is")


METHODS = st.sampled_from([b"GET", b"POST", b"PATCH", b"DELETE", b"HEAD", b"PUT", b"get", b"CONNECT", b"PRI", b""])
URLS = st.sampled_from(
    [b"/", b"/v1/events/e?a=b&c=%20", b"*", b"http://h/x", b"/a b", b"/#x", b"/\xc3", b"", b"//", b"/?"]
)
ENDS = st.sampled_from([b"\r\n", b"\n", b"\r", b"\r\n ", b" \r\n", b"\0\r\n"])
WORDS = st.sampled_from(
    [b"Host", b"X-One", b"Content-Length", b"content-length", b"Transfer-Encoding", b"Connection", b"Upgrade",
     b"Expect", b"Proxy-Connection", b"Authorization", b"cookie", b"a b", b"", b"Content-Length ", b"\xe4", b"x_y",
     b"Te", b"Trailer"]
)  # fmt: skip
VALUES = st.sampled_from(
    [b"x", b"0", b"3", b"5", b"03", b"+3", b"3, 3", b"99999999999", b"chunked", b"keep-alive", b"Keep-Alive", b"close",
     b"upgrade", b"websocket", b"h2c", b"100-continue", b"a\tb", b"  a", b"a ", b"", b"\xff", b"a\0b", b"\x7f"]
)  # fmt: skip
LINES = st.builds(lambda *parts: b"".join(parts), WORDS, st.sampled_from([b": ", b":", b" : ", b""]), VALUES, ENDS)
BODIES = st.sampled_from([b"", b"", b"abc", b"abcde", b"3\r\nabc\r\n0\r\n\r\n", HOLD])
REQUESTS = st.builds(
    lambda method, url, version, lines, body: b"%b %b HTTP/%b%b\r\n%b" % (method, url, version, b"".join(lines), body),
    st.one_of(st.just(b"GET"), st.just(b"POST"), METHODS),
    st.one_of(st.just(b"/x"), URLS),
    st.one_of(st.just(b"1.1\r\n"), st.sampled_from([b"1.0\r\n", b"1.1\n", b"2.0\r\n", b"1.1 \r\n", b"0.9\r\n"])),
    st.lists(st.one_of(st.just(b"A: b\r\n"), LINES), max_size=4),
    BODIES,
)


@given(REQUESTS)
@example(HOLD + HOLD)
@example(b"\r\n" + HOLD)
@settings(max_examples=250, deadline=None)
def test_what_it_accepts_httptools_reads_in_the_same_way(data: bytes) -> None:
    compare(data)


@given(st.sampled_from([BROWSER, HOLD]), st.integers(0, 400), st.binary(max_size=3), st.integers(0, 2))
@settings(max_examples=250, deadline=None)
def test_a_mangled_request_is_read_as_httptools_reads_it(data: bytes, at: int, put: bytes, dropped: int) -> None:
    compare(data[:at] + put + data[at + dropped :])


@pytest.mark.parametrize("data", [BROWSER, HOLD, HOLD.replace(b"POST", b"DELETE"), HOLD.replace(b"POST", b"PATCH")])
def test_what_browsers_and_clients_send_is_plain(data: bytes) -> None:
    assert compare(data) or shutil.which(COMPILER) is None
    assert not any(compare(data[:end]) for end in range(len(data))), "a part of a request is not one"


@pytest.mark.parametrize(
    "line",
    [b"Expect: 100-continue", b"EXPECT: x", b"Upgrade: h2c", b"Connection: close", b"Connection: upgrade",
     b"Connection:", b"Connection: keep-alive, close", b"Proxy-Connection: close", b"Transfer-Encoding: chunked",
     b"Content-Length: 11", b"X: ", b"X: a ", b"X: a\tb", b"X : a", b" X: a", b"X: \xe4", b"X", b"X: a\nY: b",
     b"\r\nX: a"],
)  # fmt: skip
def test_a_line_that_needs_care_is_left_to_the_parser(line: bytes) -> None:
    assert read_plain(HOLD.replace(b"host: a", b"host: a\r\n" + line)) is None


def test_as_many_headers_as_allowed_are_plain_and_one_more_is_not() -> None:
    head = b"GET / HTTP/1.1\r\n"
    assert compare(head + b"a: b\r\n" * MAX_HEADERS + b"\r\n") or shutil.which(COMPILER) is None
    assert not compare(head + b"a: b\r\n" * (MAX_HEADERS + 1) + b"\r\n")
