"""The beginning and the end of the head of a response that is written without the app, cached: status line, uvicorn's
`date` and `server`, the lines of the response itself; and the length of its body."""

import http
from typing import Any

from uvicorn.server import ServerState

STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}

_rendered: tuple[Any, bytes] = (None, b"")
_begun: dict[tuple[int, bytes], bytes] = {}
MAX_BEGUN = 256
NOSNIFF_LINE = b"x-content-type-options: nosniff\r\n"  # the server writes it on every answer (`server.nosniff`)
LENGTHS = [b"content-length: %d\r\n\r\n" % length for length in range(2_048)]  # nearly every body is shorter


def default_lines(state: ServerState) -> bytes:
    """uvicorn's `date` and `server` lines, rendered once for as long as it keeps the same list (a second)."""
    global _rendered
    pairs = state.default_headers
    if _rendered[0] is not pairs:
        _rendered = (pairs, b"".join(b"%b: %b\r\n" % pair for pair in pairs))
        _begun.clear()
    return _rendered[1]


def end_head(length: int) -> bytes:
    """The last line of a head: the length of the body."""
    return LENGTHS[length] if length < len(LENGTHS) else b"content-length: %d\r\n\r\n" % length


def begin(status: int, head: bytes, state: ServerState) -> bytes:
    """Status line, uvicorn's lines and the response's own, joined once per second for each kind of response."""
    lines = default_lines(state)
    begun = _begun.get((status, head))
    if begun is None:
        if len(_begun) >= MAX_BEGUN:  # heads that differ each time (cookies) must not accumulate
            _begun.clear()
        own = head.replace(NOSNIFF_LINE, b"") if NOSNIFF_LINE in lines else head
        begun = _begun[status, head] = STATUS_LINES[status] + lines + own
    return begun
