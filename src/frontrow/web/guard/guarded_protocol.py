"""Guards connections without the fast path: around uvicorn's own protocol, whichever version it is of.

Only documented interfaces are used: asyncio's protocols and transports, the parser of httptools, ASGI, and what uvicorn
asks of every class that is given to it as `http=` (its parameters, `server_state.connections` and `default_headers`,
and `shutdown`). Bytes pass through `GuardedProtocol` to uvicorn's protocol, which writes to a `GuardedTransport`. A
parser of our own sees where requests begin and end. `GuardedRequests`, around the app, sees which requests are being
answered, and asks the overload gate before each of them.

A shed request costs more here than on the fast path, because uvicorn has begun a task for it.
"""

import asyncio
import copy
import functools
import time
from collections.abc import Callable
from typing import Any, Final

import httptools
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from frontrow.core.errors import ConfigError
from frontrow.web.guard.connection_guard import (
    HEAD_TOO_LONG,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    PIECE_BYTES,
    TOO_MANY_HEADERS,
    ConnectionGuard,
    GuardRules,
    asks_for_stream,
    body_refusal,
    head_refusal,
)
from frontrow.web.guard.overload_watch import HOT
from frontrow.web.guard.reading_pauses import ReadingPauses
from frontrow.web.guard.response_head import begin, end_head
from frontrow.web.http.asgi import send_answer
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from frontrow.web.http.takeover import TAKE_OVER, Takeover

CONNECTION: Final = "frontrow.connection"  # in the state of an ASGI scope: the `GuardedProtocol` that it came through
NEVER_S: Final = 10_000_000  # uvicorn's own keep-alive timeout: the guard closes idle connections
BAD_REQUEST: Final = EndpointResponse(
    400, b"content-type: text/plain; charset=utf-8\r\n", b"Invalid HTTP request received."
)


class GuardedProtocol(asyncio.Protocol):
    """One connection: the guard outside, uvicorn's protocol inside. `guarded` makes the class for a server's rules."""

    rules: GuardRules

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if config.ws != "none":  # another protocol would have none of these bounds
            raise ConfigError("a guarded server speaks HTTP alone: give uvicorn ws='none'", param="ws")
        self._loop = _loop or asyncio.get_running_loop()
        self._state, self._keep_alive_s = server_state, config.timeout_keep_alive
        self._inner: Any = HttpToolsProtocol(
            config=_without_keep_alive(config), server_state=server_state, app_state={**app_state, CONNECTION: self}
        )
        self._reader: Any = httptools.HttpRequestParser(self)
        self._reader.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
        self._arrived_bytes = 0  # since a request or a part of its body began: of its head, or of its trailers
        self._in_request = False  # a request is arriving
        self._in_app = 0  # requests that have no complete answer yet
        self._begun: _Answer | None = None  # the answer that has begun
        self._unparsed = b""  # input behind answers that have not left
        self._idle_armed = False  # the timer that closes an idle connection runs
        self._refused: EndpointResponse | None = None  # the answer to input that is not passed on
        self._over = False

    # -- asyncio's callbacks -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._guard = ConnectionGuard(self.rules, transport, self._loop)
        self._out = GuardedTransport(transport, self._guard.pauses, self._parse_soon)
        self._inner.connection_made(self._out)
        connections: set[Any] = self._state.connections
        connections.discard(self._inner)
        connections.add(self)
        peer = transport.get_extra_info("peername")
        self._guard.open(str(peer[0]) if isinstance(peer, tuple) else "", len(connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._over = True
        self._unparsed = b""
        connections: set[Any] = self._state.connections
        connections.discard(self)
        self._guard.close(len(connections))
        self._forget(exc)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._guard.pauses.writing = True
        self._guard.pauses.apply()
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._guard.pauses.writing = False
        self._guard.pauses.apply()
        self._inner.resume_writing()
        self._parse_soon()

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._guard.busy_s = self._loop.time()
        if self._unparsed:
            self._unparsed += data
        else:
            self._parse(data)

    # -- bytes in ----------------------------------------------------------------------------------------------------

    def _parse(self, data: bytes) -> None:
        """Pass input on piece by piece. The rest is put aside while the answers before it have not left."""
        at, pauses = 0, self._guard.pauses
        while at < len(data):
            at += self._pass_on(data[at : at + PIECE_BYTES])
            if self._over or self._transport.is_closing():
                return
            if at < len(data) and (pauses.app or pauses.writing):
                break
        self._unparsed = data[at:]
        pauses.unparsed = bool(self._unparsed)
        pauses.apply()

    def _parse_soon(self) -> None:
        """Go on with input that was put aside, once uvicorn has finished what it does now."""
        if self._unparsed:
            self._guard.call_later("parse", 0.0, self._parse_on)

    def _parse_on(self) -> None:
        pauses = self._guard.pauses
        if self._unparsed and not (self._over or pauses.app or pauses.writing or self._transport.is_closing()):
            self._parse(self._unparsed)

    def _pass_on(self, piece: bytes) -> int:
        """Read a piece, refuse it or pass it on to uvicorn; how many bytes that were."""
        try:
            self._reader.feed_data(piece)
        except httptools.HttpParserError:
            self._refuse(BAD_REQUEST, self._in_app)
            return len(piece)
        except httptools.HttpParserUpgrade as upgrade:  # nothing but HTTP is spoken here: read on behind that request
            piece = piece[: upgrade.args[0]]
        self._arrived_bytes += len(piece)
        if self._arrived_bytes > MAX_HEAD_BYTES + PIECE_BYTES:
            self._refuse(head_refusal(HEAD_TOO_LONG))
        elif self._refused is not None:
            self._refuse(self._refused, 1)
        else:
            self._inner.data_received(piece)
        return len(piece)

    def _refuse(self, response: EndpointResponse, instead_of: int = 0) -> None:
        """Answer in place of uvicorn and close, also `instead_of` so many answers that have not begun. Behind any other
        answer nothing fits."""
        self._over = True
        if self._in_app <= instead_of and self._begun is None:
            head = begin(response.status, response.head, self._state)
            end = b"connection: close\r\n" + end_head(len(response.body))
            self._transport.write(b"".join((head, end, response.body)))
        self._out.cut_off()
        self._transport.close()

    # -- the parser's callbacks --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._arrived_bytes = 0
        self._in_request = True
        self._guard.body_bytes, self._guard.began_s = 0, self._loop.time()

    def on_headers_complete(self) -> None:
        self._in_app += 1
        if self._reader.get_http_version() not in ("1.0", "1.1"):  # 0.9 has no head: whatever follows is not one
            self._refused = BAD_REQUEST

    def on_body(self, body: bytes) -> None:
        self._arrived_bytes = 0
        if self._in_app and self._refused is None and not self._guard.has_room_for(len(body)):
            self._refused = body_refusal()

    def on_message_complete(self) -> None:
        self._in_request = False
        self._guard.began_s = None

    # -- the app -----------------------------------------------------------------------------------------------------

    async def answer(self, app: ASGIApp, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Let the app answer a request of this connection, or refuse it."""
        answer = _Answer(self, send, scope["http_version"])
        given: Any = scope
        refusal = self._refusal_of(scope)
        try:
            if refusal is not None:
                await send_answer(refusal, scope, answer.send)
                return
            if scope["method"] == "GET" and asks_for_stream(scope["raw_path"]):
                offer: Any = {TAKE_OVER: {"call": functools.partial(self._take_over, answer)}}
                given["extensions"] = {**(scope.get("extensions") or {}), **offer}
            await app(scope, receive, answer.send)
        finally:
            answer.end()
            given.pop("extensions", None)  # they refer to this object, and would keep it

    def _refusal_of(self, scope: HTTPScope) -> EndpointResponse | None:
        """The answer to a request that the app does not get."""
        headers, url = list(scope["headers"]), scope["raw_path"]
        if query := scope["query_string"]:
            url = b"%b?%b" % (url, query)
        if len(headers) > MAX_HEADERS:
            self._guard.close_next = True
            return head_refusal(TOO_MANY_HEADERS)
        if len(url) + sum(len(name) + len(value) + len(": \r\n") for name, value in headers) > MAX_HEAD_BYTES:
            self._guard.close_next = True
            return head_refusal(HEAD_TOO_LONG)
        method = scope["method"].encode()
        if self._guard.admits(method, url):
            return None
        began_ns, client = time.perf_counter_ns(), scope["client"]
        request = EndpointRequest(headers, b"", client[0] if client else "")
        response = self._guard.refuse(method, request)
        assert self.rules.watch is not None
        self.rules.watch.traffic.of("shed", HOT).took(time.perf_counter_ns() - began_ns, response.status)
        if make_id := self.rules.request_id:
            head = response.head + b"x-request-id: %b\r\n" % make_id(headers, request.peer)
            response = EndpointResponse(response.status, head, response.body)
        return response

    def begin_answer(self, answer: "_Answer", message: Message) -> Message:
        """An answer begins. It closes the connection if that is to be its last one."""
        self._begun = answer
        given: Any = message
        if self._guard.close_next:
            return {**given, "headers": [*given.get("headers", ()), (b"connection", b"close")]}  # type: ignore[return-value]
        return message

    def end_answer(self, answer: "_Answer") -> None:
        """An answer is complete, or will never be."""
        self._in_app -= 1
        if self._begun is answer:
            self._begun = None
        self._guard.give_back_body()
        if not self._over:
            self._guard.busy_s = self._loop.time()
            if not self._idle_armed:
                self._idle_armed = True
                self._guard.call_later("idle", self._keep_alive_s, self._close_idle)

    def _close_idle(self) -> None:
        """Close when nothing came for the whole time; otherwise look again when that could be true."""
        self._idle_armed = False
        if self._in_app or self._in_request:
            return  # whoever finishes arms the timer again
        left_s = self._guard.idle_left_s(self._keep_alive_s)
        if left_s > 0:
            self._idle_armed = True
            self._guard.call_later("idle", left_s, self._close_idle)
        else:
            self._transport.close()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _take_over(self, answer: "_Answer", takeover: Takeover) -> bool:
        """Let another protocol go on with an answer that has begun. False if something else waits on this connection,
        or if the body has no chunks."""
        waits = self._in_app != 1 or self._in_request or self._unparsed or self._guard.pauses.any
        if waits or self._over or self._begun is not answer or not answer.chunked or self._transport.is_closing():
            return False
        self._over = True
        self._guard.release()
        self._out.cut_off()
        connections: set[Any] = self._state.connections
        connections.discard(self)
        self._transport.set_protocol(takeover.take(self._transport, connections, None))
        self._forget(None)
        return True

    def _forget(self, exc: Exception | None) -> None:
        """End uvicorn's protocol. It and the parser refer to this object, and would keep it."""
        inner, self._inner, self._reader = self._inner, None, None
        inner.connection_lost(exc)
        self._out.resumed = _ignore

    def shutdown(self) -> None:
        """The server stops: finish what is on this connection, then close it."""
        if self.rules.linger_s is None:
            self._inner.shutdown()
        else:
            self._guard.linger(self._is_idle)

    def _is_idle(self) -> bool:
        """Whether nothing is going on here. An answer that is under way closes the connection."""
        if self._in_app:
            self._inner.shutdown()
            return False
        return not self._in_request


class GuardedTransport:
    """The transport as uvicorn's protocol sees it: reading is paused and resumed along with the guard's reasons, and
    nothing is written once the guard has answered."""

    def __init__(self, transport: asyncio.Transport, pauses: ReadingPauses, resumed: Callable[[], None]) -> None:
        self._pauses, self.resumed = pauses, resumed
        self.write: Callable[..., None] = transport.write
        self.writelines: Callable[..., None] = transport.writelines
        self.close: Callable[[], None] = transport.close
        self.abort: Callable[[], None] = transport.abort
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.get_write_buffer_size = transport.get_write_buffer_size
        self.set_write_buffer_limits = transport.set_write_buffer_limits

    def pause_reading(self) -> None:
        self._pauses.app = True
        self._pauses.apply()

    def resume_reading(self) -> None:
        self._pauses.app = False
        self._pauses.apply()
        self.resumed()

    def cut_off(self) -> None:
        """Ignore whatever uvicorn's protocol still does."""
        self.write = self.writelines = self.close = self.abort = self.resumed = _ignore


def _ignore(*given: object) -> None:
    """Do nothing."""


class _Answer:
    """What the guard sees of an answer as it goes out."""

    __slots__ = ("_connection", "_is_1_1", "_send", "chunked")

    def __init__(self, connection: GuardedProtocol, send: Send, http_version: str) -> None:
        self._connection: GuardedProtocol | None = connection
        self._send, self._is_1_1 = send, http_version == "1.1"
        self.chunked = False

    async def send(self, message: Message) -> None:
        connection = self._connection
        if connection is not None and message["type"] == "http.response.start":
            names = {name.lower() for name, _ in message.get("headers", ())}
            self.chunked = self._is_1_1 and b"content-length" not in names
            message = connection.begin_answer(self, message)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.end()

    def end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end_answer(self)


class GuardedRequests:
    """Put it around the app of a server. Requests that did not come through a `GuardedProtocol` pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: Any = scope.get("state")
        connection: GuardedProtocol | None = state.pop(CONNECTION, None) if state else None
        if connection is None or scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
        else:
            await connection.answer(self._app, scope, receive, send)


@functools.lru_cache(maxsize=8)
def _without_keep_alive(config: Config) -> Config:
    """The configuration for uvicorn's protocol, which is not to close idle connections by itself."""
    changed = copy.copy(config)
    changed.timeout_keep_alive = NEVER_S
    return changed


def guarded(rules: GuardRules | None = None) -> type[GuardedProtocol]:
    """The protocol class that guards a server without the fast path; give it to uvicorn as `http=`."""
    return type("Guarded", (GuardedProtocol,), {"rules": rules or GuardRules()})
