"""HTTP/1.1 for the service: one `asyncio.Protocol` per connection over httptools. Everything is bounded.

A handler returns a `Response`, or something to wait for. Requests of one connection are answered in their order, so a
client may send several before it reads. A connection that is idle, sends slowly or does not read its answers is closed.
What came is parsed in small slices, and no further while the client does not read: few bytes can ask for many answers.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import httptools
import msgspec

from frontrow.core.errors import FrontrowError
from frontrow.core.failures import failures_here
from frontrow.limits.http.headers import Field

MAX_HEAD_BYTES = 16 * 1024
MAX_HEADERS = 100
MAX_PIPELINED = 64
SMALL_PARTS = (
    1024  # of one body; more of them must have SMALL_PART_BYTES on average, because each costs time and memory
)
SMALL_PART_BYTES = 64
MAX_HELD_BYTES = 64 * 1024 * 1024  # of bodies, all connections together
SLICE_BYTES = 4096
IDLE_S = 75.0
SLOW_S = 15.0  # for a whole request to come, and for answers to be read
LINGER_S = 2.0
SWEEP_S = 1.0
KEPT_HEADERS = (b"content-type", b"authorization", b"traceparent")
REASONS = {
    200: b"OK", 201: b"Created", 204: b"No Content", 400: b"Bad Request", 401: b"Unauthorized", 403: b"Forbidden",
    404: b"Not Found", 405: b"Method Not Allowed", 409: b"Conflict", 413: b"Content Too Large",
    415: b"Unsupported Media Type", 422: b"Unprocessable Content", 429: b"Too Many Requests",
    431: b"Request Header Fields Too Large", 500: b"Internal Server Error", 503: b"Service Unavailable",
}  # fmt: skip
JSON: Field = (b"content-type", b"application/json")
PROBLEM: Field = (b"content-type", b"application/problem+json")


class Request(NamedTuple):
    """What a handler gets. Only the headers in `KEPT_HEADERS` are there."""

    method: bytes
    path: str
    query: str
    headers: dict[bytes, bytes]
    body: bytes


class Response(NamedTuple):
    """What a handler answers."""

    status: int
    body: bytes
    fields: Sequence[Field] = (JSON,)


Handler = Callable[[Request], Response | Awaitable[Response]]


def problem_response(status: int, code: str, detail: str, fields: Sequence[Field] = ()) -> Response:
    """An RFC 9457 answer."""
    error = FrontrowError(detail)
    body = {**error.problem(), "type": f"urn:frontrow:{code}", "code": code, "status": status}
    return _problem(status, body | {"title": code.replace("_", " ").capitalize()}, fields)


def error_response(error: FrontrowError) -> Response:
    """The answer to an error of ours. The client can do something about it, unless its status is 500."""
    wait = () if error.retry_after_s is None else ((b"retry-after", b"%d" % max(1, round(error.retry_after_s))),)
    return _problem(error.http_status, error.problem(), wait)


def _problem(status: int, body: dict[str, Any], fields: Sequence[Field]) -> Response:
    return Response(status, msgspec.json.encode(body), (PROBLEM, *fields))


class Connections:
    """The open connections of a listener, what they may send, and who answers them."""

    def __init__(self, handle: Handler, *, max_body_bytes: int, max_connections: int) -> None:
        self.handle = handle
        self.max_body_bytes = max_body_bytes
        self.max_connections = max_connections
        self.open: set[HttpConnection] = set()
        self.draining = False
        self.refused = 0  # connections beyond the bound
        self.max_held_bytes = max(MAX_HELD_BYTES, 2 * max_body_bytes)
        self.held_bytes = 0  # of bodies that have not come whole, or wait for their turn
        self._emptied = asyncio.Event()  # while draining: the last connection has ended

    def forget(self, connection: "HttpConnection") -> None:
        """A connection has ended."""
        self.open.discard(connection)
        if self.draining and not self.open:
            self._emptied.set()

    def connect(self) -> "HttpConnection":
        return HttpConnection(self)

    def sweep(self) -> None:
        """Close the connections that are too slow. Called every `SWEEP_S`."""
        now_s = time.monotonic()
        for connection in tuple(self.open):
            connection.check_time(now_s)

    async def drain(self, grace_s: float) -> None:
        """Take no further requests; wait for those that are open, then close whatever is left."""
        self.draining = True
        if not self.open:
            return
        for connection in tuple(self.open):
            connection.close_if_idle()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._emptied.wait()
        for connection in tuple(self.open):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection. The parser calls the methods that begin with `on_`."""

    def __init__(self, server: Connections) -> None:
        self._server = server
        self._transport: asyncio.Transport = None  # type: ignore[assignment]  # set when connected
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._reads_slowly = False
        self._since_s = time.monotonic()  # of the present state: idle, receiving, answering
        self._unread = b""  # what came while the client did not read
        self._held_bytes = 0  # the share of this connection in what the server holds
        self._receiving = False
        self._failure: Response | None = None  # the last answer, due when the one before it has been sent
        self._lingers = False  # answered with an error, until the client hangs up
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = self._head_bytes = self._named_bytes = self._body_bytes = 0
        self._body: list[bytes] = []
        self._in_head = True

    # -- the transport's calls -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if self._server.draining or len(self._server.open) >= self._server.max_connections:
            self._server.refused += 1
            self._write(
                problem_response(503, "too_many_connections", "too many connections are open; try again"), False
            )
            return
        self._server.open.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._closing = True
        self._drop()
        self._server.forget(self)

    def data_received(self, chunk: bytes) -> None:
        if self._closing:
            return
        if self._receiving and self._in_head:  # this chunk continues a head that began before it
            self._head_bytes += len(chunk)
            if self._head_bytes > MAX_HEAD_BYTES:
                return self._fail(431, "head_too_large", f"the head has more than {MAX_HEAD_BYTES} bytes")
        self._parse(self._unread + chunk if self._unread else chunk)

    def _parse(self, chunk: bytes) -> None:
        """Parse as much as the client's reading allows."""
        self._unread = b""
        try:
            for start in range(0, len(chunk), SLICE_BYTES):
                if self._closing:
                    return
                if self._reads_slowly:
                    self._unread = chunk[start:]
                    return
                self._parser.feed_data(chunk[start : start + SLICE_BYTES])
        except httptools.HttpParserUpgrade:
            self._transport.pause_reading()  # the request itself is answered, and then the connection closes
        except httptools.HttpParserError as error:
            if not self._closing:  # else a callback has answered already
                self._fail(400, "bad_request", f"not HTTP/1.1: {error}"[:200])

    def pause_writing(self) -> None:
        self._reads_slowly = True
        self._since_s = time.monotonic()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._reads_slowly = False
        while self._waiting and self._task is None and not self._reads_slowly and not self._closing:
            self._answer_next()
        if self._unread and not self._reads_slowly:
            self._parse(self._unread)
        if not self._reads_slowly and not self._closing:
            self._transport.resume_reading()

    def check_time(self, now_s: float) -> None:
        """Close the connection if it has been in one state for too long."""
        if self._task is not None and not self._lingers:
            return
        most_s = LINGER_S if self._lingers else SLOW_S if self._receiving or self._reads_slowly else IDLE_S
        if now_s - self._since_s > most_s:
            self.abort()

    def close_if_idle(self) -> None:
        if self._lingers or (self._task is None and not self._waiting and not self._receiving):
            self._close()

    def abort(self) -> None:
        self._closing = True
        self._drop()
        self._transport.abort()

    # -- the parser's calls ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begin()
        self._receiving = True
        self._since_s = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > MAX_HEAD_BYTES:
            self._fail(431, "head_too_large", "the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._named_bytes += len(name) + len(value)
        if self._header_count > MAX_HEADERS or self._named_bytes > MAX_HEAD_BYTES:
            most = f"{MAX_HEADERS} headers of {MAX_HEAD_BYTES} bytes in all"
            return self._fail(431, "head_too_large", f"there are more than {most}")
        name = name.lower()
        if name in KEPT_HEADERS:
            self._headers[name] = value
        elif name == b"content-length" and len(value) < 20 and value.isdigit():
            if int(value) > self._server.max_body_bytes:
                self._fail_body()
        elif name == b"expect" and value.lower() == b"100-continue" and not self._closing:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        self._in_head = False

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > self._server.max_body_bytes:
            self._fail_body()
        elif self._closing:
            return
        elif len(self._body) > SMALL_PARTS + self._body_bytes // SMALL_PART_BYTES:
            self._fail(400, "too_many_chunks", "the body comes in too many small chunks; send larger ones")
        elif self._server.held_bytes + len(part) > self._server.max_held_bytes:
            self._fail(503, "too_many_bytes", "the bodies of all callers together are too large; try again")
        else:
            self._hold(len(part))
            self._body.append(part)

    def on_message_complete(self) -> None:
        self._receiving = False
        self._since_s = time.monotonic()
        if self._closing:
            return
        try:
            url = httptools.parse_url(self._url)
            path, query = url.path.decode(), (url.query or b"").decode()
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError, AttributeError):
            return self._fail(400, "bad_request", "the address cannot be read")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(self._parser.get_method(), path, query, self._headers, body)
        keeps = self._parser.should_keep_alive() and not self._parser.should_upgrade()
        self._begin()
        if self._task is not None or self._waiting or self._reads_slowly:
            if len(self._waiting) >= MAX_PIPELINED and not self._reads_slowly:  # else the slice is the bound
                return self._fail(503, "too_many_pipelined", f"more than {MAX_PIPELINED} requests wait for an answer")
            self._waiting.append((request, keeps))
        else:
            self._hold(-len(body))
            self._answer(request, keeps)

    def _hold(self, more_bytes: int) -> None:
        self._held_bytes += more_bytes
        self._server.held_bytes += more_bytes

    def _drop(self) -> None:
        """Forget what is not answered yet."""
        self._hold(-self._held_bytes)
        self._waiting.clear()
        self._body, self._unread = [], b""

    # -- answering -------------------------------------------------------------------------------------------------

    def _answer(self, request: Request, keeps: bool) -> None:
        try:
            response = self._server.handle(request)
        except Exception as error:
            response = _failure(error)
        if isinstance(response, Response):
            self._write(response, keeps, request.method)
        else:
            self._task = asyncio.get_running_loop().create_task(self._answer_later(response, keeps, request.method))

    async def _answer_later(self, waited: Awaitable[Response], keeps: bool, method: bytes) -> None:
        """Requests that came meanwhile follow when this one is answered."""
        try:
            response = await waited
        except Exception as error:
            response = _failure(error)
        self._task = None
        self._since_s = time.monotonic()
        self._write(response, keeps, method)
        if self._failure is not None:
            self._write_failure(self._failure)
        while self._waiting and self._task is None and not self._reads_slowly and not self._closing:
            self._answer_next()

    def _answer_next(self) -> None:
        request, keeps = self._waiting.popleft()
        self._hold(-len(request.body))
        self._answer(request, keeps)

    def _write(self, response: Response, keeps: bool, method: bytes = b"GET") -> None:
        if self._transport.is_closing():
            return
        status, body, fields = response
        keeps = keeps and not self._server.draining
        head = [b"HTTP/1.1 %d %b\r\ncontent-length: %d\r\n" % (status, REASONS.get(status, b"Error"), len(body))]
        head += [b"%b: %b\r\n" % field for field in fields]
        head.append(b"\r\n" if keeps else b"connection: close\r\n\r\n")
        head.append(b"" if method == b"HEAD" else body)
        self._transport.write(b"".join(head))
        if self._lingers:
            self._transport.write_eof()
        elif not keeps:
            self._close()

    def _fail_body(self) -> None:
        most = self._server.max_body_bytes
        self._fail(413, "body_too_large", f"a body has at most {most} bytes; send several requests")

    def _fail(self, status: int, code: str, detail: str) -> None:
        """Answer what cannot be read any further. Then drop what still comes, or the answer would be lost to a reset,
        until the client hangs up or `LINGER_S` have passed. The request that is being answered gets its answer before;
        those that wait behind it get none, so the client knows that nothing was charged for them."""
        if not self._closing:
            self._closing = True
            self._drop()
            self._failure = problem_response(status, code, detail)
            if self._task is None:
                self._write_failure(self._failure)

    def _write_failure(self, failure: Response) -> None:
        self._lingers = True
        self._since_s = time.monotonic()
        self._write(failure, keeps=False)

    def _close(self) -> None:
        self._closing = True
        self._drop()
        self._transport.close()


def _failure(error: Exception) -> Response:
    if isinstance(error, FrontrowError) and error.http_status < 500:
        return error_response(error)
    if isinstance(error, FrontrowError) and error.http_status == 503:
        return error_response(error)
    failures_here().note("answer a request", error)
    return problem_response(500, "internal_error", "the service failed to answer; its log says why")
