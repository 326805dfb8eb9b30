"""The hot lane: the few routes that carry a sale, answered before any ASGI cycle exists.

A small subclass of uvicorn's httptools protocol. When the headers of a request for a hot route are complete it keeps
the request to itself and answers by one write; everything else is handed to uvicorn unchanged, and so is a request
that is unusual in any way (HEAD, an upgrade, `Expect`, HTTP/1.0, a query where none is expected, pipelined behind
another answer), because the app behind declares the same routes and gives the same answers. A hot answer costs 0.4 of
a bare ASGI one.
"""

import asyncio
import logging
from typing import Any, ClassVar

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from frontrow.web.endpoints.messages import MAX_BODY_BYTES, Answer, Arriving, Ask, Later
from frontrow.web.lane.pending_replies import (
    PLAIN_ERROR,
    Finish,
    Handler,
    Pending,
    Reply,
    RequestId,
    Routes,
    Shapes,
    Takeover,
    result_of,
    shapes_of,
)
from frontrow.web.lane.response_head import begin, default_lines

OVERLONG = bytes(MAX_BODY_BYTES + 1)
MAX_HEAD_BYTES = 2 * 1024 * 1024
REQUEST_WITHIN_S = 30.0

log = logging.getLogger("frontrow.web.lane.protocol")


class HotProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a lane beside it; make one for a table of routes by `lane`."""

    routes: ClassVar[Routes] = {}
    shapes: ClassVar[Shapes | None] = None  # finds the handler of an address that is not in `routes` word by word
    request_id: ClassVar[RequestId | None] = None
    request_within_s: ClassVar[float] = REQUEST_WITHIN_S  # a request that takes longer to arrive is cut off

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._lines: list[tuple[bytes, bytes]] = []
        self._handler: Handler | None = None
        self._query = b""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._in_head = False
        self._head_bytes = 0
        self._busy_s = 0.0
        self._gone = False
        self._peer = ""
        self._id_line = b""
        self._began_s: float | None = None  # when the request that is still arriving began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = self.client[0] if self.client else ""
        self._began_s = self.loop.time()
        self.loop.call_later(self.request_within_s, self._cut_off_slow)

    def _cut_off_slow(self) -> None:
        """Nobody holds a connection by sending a request slowly (or not at all); looked at once per such time."""
        if self._gone or self.transport.is_closing():
            return
        now_s = self.loop.time()
        began_s = now_s if self._began_s is None else self._began_s
        left_s = began_s + self.request_within_s - now_s
        if left_s <= 0:
            self.transport.abort()
        else:
            self.loop.call_later(left_s, self._cut_off_slow)

    # -- bytes in --------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, but the keep-alive timer is moved lazily instead of cancelled and made anew each time."""
        if self._gone:
            return
        self._busy_s = self.loop.time()
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response("The request's headers are too long.")
                return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._gone:
                self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                self._unsupported_upgrade_warning()

    def on_message_begin(self) -> None:
        self.url = b""
        self._query = b""
        self._lines = []
        self._handler = None
        self._in_head = True
        self._head_bytes = 0
        self._began_s = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        parser = self.parser
        method, url = parser.get_method(), self.url
        handler = self.routes.get((method, url))
        if handler is None:
            if b"?" in url:
                path, _, self._query = url.partition(b"?")
                handler = self.routes.get((method, path + b"?"))
            elif (find := type(self).shapes) is not None:
                handler = find(method, url)
        if handler is not None and self._ordinary(parser):  # anything unusual is uvicorn's
            self._handler = handler
            if self._body_bytes:
                self._body = []
                self._body_bytes = 0
            return
        self._pass_on()

    def _ordinary(self, parser: Any) -> bool:
        """Nothing about this request needs uvicorn's full machinery."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            return False
        if self._gone or parser.get_http_version() != "1.1" or parser.should_upgrade():
            return False
        for name, _ in self._lines:  # noqa: SIM110  # a generator costs twice as much here
            if len(name) == 6 and name.lower() == b"expect":
                return False
        return True

    def _pass_on(self) -> None:
        """Give uvicorn the request as if it had parsed it itself."""
        if self._gone:
            return
        if self.parser.get_http_version() not in ("1.0", "1.1"):  # 0.9 has no head: whatever follows is not one
            self._gone = True
            self.send_400_response("Invalid HTTP request received.")
            return
        lines, url = self._lines, self.url
        super().on_message_begin()
        self.url = url
        for name, value in lines:
            super().on_header(name, value)
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._handler is None:
            if not self._gone:
                super().on_body(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(body)

    def on_message_complete(self) -> None:
        handler = self._handler
        self._began_s = None
        if handler is None:
            if not self._gone:
                super().on_message_complete()
            return
        self._handler = None
        body = b""
        if self._body_bytes > MAX_BODY_BYTES:
            body = OVERLONG  # refused by the endpoint with the same words as through the other door
        elif self._body_bytes:
            body = b"".join(self._body)
        keep_alive = self.parser.should_keep_alive()
        make_id = type(self).request_id
        if make_id is not None:
            self._id_line = b"x-request-id: %b\r\n" % make_id(self._lines, self._peer)
        try:
            reply = handler(Ask(self._lines, body, self._peer, self._query))
        except Exception:
            log.exception("a hot handler failed", extra={"request_id": self.known_id()})
            reply = PLAIN_ERROR
        if type(reply) is Answer:
            self._write(reply, keep_alive)
        elif isinstance(reply, Arriving):
            self._let_arrive(reply, keep_alive)
        elif isinstance(reply, Takeover):
            self._hand_over(reply)
        else:
            self._wait_for(reply, keep_alive)

    def known_id(self) -> str:
        """The id of the request in hand, for log lines."""
        return self._id_line.decode().partition(": ")[2].strip()

    def _let_arrive(self, reply: Arriving, keep_alive: bool) -> None:
        pending = Pending(self, keep_alive)
        self.cycle = pending  # type: ignore[assignment]
        reply.then(pending.arrived)

    def _wait_for(self, reply: Any, keep_alive: bool) -> None:
        finish: Finish = result_of
        if isinstance(reply, Later):
            finish, future = reply.finish, reply.future
        else:
            future = asyncio.ensure_future(reply)
        pending = Pending(self, keep_alive, finish)
        self.cycle = pending  # type: ignore[assignment]
        future.add_done_callback(pending.done)

    # -- bytes out -------------------------------------------------------------------------------------------------

    def answer_late(self, reply: Reply, keep_alive: bool) -> None:
        """Write an answer that took a round trip, then let pipelined requests go on."""
        if self.transport.is_closing():
            return
        if type(reply) is Takeover:
            self._hand_over(reply)
            return
        assert isinstance(reply, Answer)
        self._busy_s = self.loop.time()  # the next request has the whole time to come
        self._write(reply, keep_alive)
        if self.pipeline and not self.transport.is_closing():
            self.flow.resume_reading()
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    def _write(self, answer: Answer, keep_alive: bool) -> None:
        status, body = answer.status, answer.body
        state = self.server_state
        begun = begin(status, answer.head, state) + self._id_line
        if status in (204, 304):
            self.transport.write(begun + (b"\r\n" if keep_alive else b"connection: close\r\n\r\n"))
        elif keep_alive:
            self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (begun, len(body), body))
        else:
            self.transport.write(b"%bcontent-length: %d\r\nconnection: close\r\n\r\n%b" % (begun, len(body), body))
        state.total_requests += 1
        if not keep_alive:
            self.transport.close()
        elif self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _hand_over(self, takeover: Takeover) -> None:
        """Let another protocol own the connection; this object and its parser are free to go."""
        self._gone = True
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        self.server_state.total_requests += 1
        lines = default_lines(self.server_state) + self._id_line
        self.transport.set_protocol(takeover.take(self.transport, self.connections, lines))

    def timeout_keep_alive_handler(self) -> None:
        """Close when nothing came for the whole time; otherwise look again when that could be true."""
        self.timeout_keep_alive_task = None
        if self._gone or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            return  # answering: whoever finishes arms the timer again
        left_s = self._busy_s + self.timeout_keep_alive - self.loop.time()
        if left_s <= 0:
            self.transport.close()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)


def lane(
    routes: Routes, request_id: RequestId | None = None, *, request_within_s: float = REQUEST_WITHIN_S
) -> type[HotProtocol]:
    """The protocol class that answers `routes` itself; give it to uvicorn as `http=`. The table may change later."""
    made = staticmethod(request_id) if request_id is not None else None
    own = {"routes": routes, "shapes": shapes_of(routes), "request_id": made, "request_within_s": request_within_s}
    return type("LaneProtocol", (HotProtocol,), own)
