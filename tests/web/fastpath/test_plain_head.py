"""The compiled reader of plain requests: whatever it accepts, httptools reads in the same way."""

import shutil
import sysconfig
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.head_fuzz import (
    BODIES,
    BROWSER,
    COLONS,
    ENDS,
    HOLD,
    METHODS,
    NAMES,
    URLS,
    VALUES,
    VERSIONS,
    Difference,
    Plain,
    compare,
    fuzz,
)
from frontrow.web.fastpath import protocol
from frontrow.web.fastpath.protocol import read_plain
from frontrow.web.guard.connection_guard import MAX_HEADERS

COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]


def test_the_reader_was_built_here(not_checked: Callable[[str], None]) -> None:
    """The suite must test it; `make setup` builds it wherever there is a C compiler."""
    if read_plain.__module__ == protocol.__name__:
        assert shutil.which(COMPILER) is None
        not_checked("the compiled reader of request heads (there is no C compiler); httptools' is")


LINES = st.builds(
    lambda *parts: b"".join(parts), st.sampled_from(NAMES), st.sampled_from(COLONS), st.sampled_from(VALUES),
    st.sampled_from(ENDS),
)  # fmt: skip
REQUESTS = st.builds(
    lambda method, url, version, lines, body: b"%b %b HTTP/%b%b\r\n%b" % (method, url, version, b"".join(lines), body),
    st.one_of(st.just(b"GET"), st.just(b"POST"), st.sampled_from(METHODS)),
    st.one_of(st.just(b"/x"), st.sampled_from(URLS)),
    st.one_of(st.just(b"1.1\r\n"), st.sampled_from(VERSIONS)),
    st.lists(st.one_of(st.just(b"A: b\r\n"), LINES), max_size=4),
    st.sampled_from(BODIES),
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


def test_a_short_run_of_the_fuzz_finds_no_difference() -> None:
    """`make soak` compares 2,200,000 requests (`python -m bench.head_fuzz`)."""
    plain = fuzz(5_000, seed=1)
    assert plain > 400 or shutil.which(COMPILER) is None
    assert fuzz(5_000, seed=1) == plain, "a seed makes the same requests again"


def overlooks_close(data: bytes) -> Plain | None:
    """A reader that overlooks that a request closes its connection."""
    return read_plain(data.replace(b": close\r\n", b": keep-alive\r\n"))


def misreads_lengths(data: bytes) -> Plain | None:
    """A reader that takes one length for another."""
    return read_plain(data.replace(b": 5\r\n", b": 3\r\n"))


@pytest.mark.parametrize("broken", [overlooks_close, misreads_lengths])
def test_a_reader_that_is_wrong_once_in_a_while_is_found(broken: Callable[[bytes], Plain | None]) -> None:
    try:
        fuzz(20_000, seed=2, read=broken)
    except Difference:
        return
    assert shutil.which(COMPILER) is None, "without the compiled reader nothing is plain"
