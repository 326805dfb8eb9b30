"""The hot lane: the few routes that carry a sale, answered before any ASGI cycle exists.

A subclass of uvicorn's httptools protocol. When the headers of a request for a hot route are complete, the lane keeps
the request and answers by one write. Everything else is handed to uvicorn unchanged. So is a request that is unusual in
any way (HEAD, an upgrade, `Expect`, HTTP/1.0, a query where none is expected, pipelined behind another answer), because
the app behind declares the same routes and gives the same answers. A request that came whole and is plain is read by
`_plain_head` instead of httptools, where that is compiled. A hot answer costs 0.4 of a bare ASGI one.

With a `watch` every request of the server passes the overload gate here, whichever door answers it. A shed request is
answered by ready-made bytes before any work, and its connection is not read again before its `Retry-After` (unless it
is a proxy's, which carries other people too). That keeps refusing cheap under ten times the load.

A head has at most `MAX_HEAD_BYTES` and `MAX_HEADERS`; a larger one gets 431. Input is parsed in small pieces, and only
while the answers before it leave (`connection_flow`). A client that takes nothing of its answers for `read_within_s` is
cut off, so a slow reader holds little memory and no connection for long. Large bodies share a bounded memory
(`body_budget`).

With `linger_s` a server that stops still answers whoever has sent a request or is sending one. uvicorn alone closes at
once every connection on which it is not answering. Here a request that is still arriving is let in, and an idle
connection is kept for a moment, because its next request may be on its way.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import Any, ClassVar, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from frontrow.core.errors import FrontrowError, Overloaded
from frontrow.limits import Decision
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits, counted
from frontrow.web.endpoints.messages import (
    MAX_BODY_BYTES,
    EndpointRequest,
    EndpointResponse,
    FutureResponse,
    PendingResponse,
    problem_answer,
)
from frontrow.web.lane.body_budget import MAX_BODIES_BYTES, SMALL_BODY_BYTES, BodyBudget
from frontrow.web.lane.connection_flow import ConnectionFlow
from frontrow.web.lane.overload_watch import SLOW_NS, HotRoute, Watch
from frontrow.web.lane.pending_replies import (
    PLAIN_ERROR,
    TAKE_OVER,
    Handler,
    PendingReply,
    Reply,
    RequestId,
    Routes,
    Shapes,
    Takeover,
    shapes_of,
)
from frontrow.web.lane.response_head import begin, default_lines, end_head
from frontrow.web.server.address_caps import AddressCaps
from frontrow.web.server.overload import Rank, rank_of
from frontrow.web.server.request_middleware import is_host
from frontrow.web.server.request_middleware import request_id as logged_request_id

try:
    from frontrow.web.lane._plain_head import read_plain
except ImportError:  # built without a C compiler: httptools reads everything

    def read_plain(data: bytes) -> tuple[tuple[bytes, bytes], list[tuple[bytes, bytes]], bytes] | None:
        return None


OVERLONG = bytes(MAX_BODY_BYTES + 1)
MAX_HEAD_BYTES: Final = 32 * 1024
MAX_HEADERS: Final = 100
MAX_HOSTS: Final = 64  # remembered as fine
TOO_MANY_HEADERS: Final = f"a request has at most {MAX_HEADERS} headers"
NO_ROOM_FOR_BODY: Final = "too many large requests are arriving at once; try again soon"
BODY_AGAIN_S: Final = 5
HEAD_TOO_LONG: Final = f"a request's head has at most {MAX_HEAD_BYTES} bytes"
PIECE_BYTES: Final = 2 * 1024  # of input, parsed at once: what one turn can ask for is bounded
LIMITED_REST_S: Final = 1.0  # how long a connection rests that pipelines although it asks too often
REQUEST_WITHIN_S = 30.0
READ_WITHIN_S = 20.0
LEAST_READ_BYTES: Final = 8 * 1024  # what a client must take of waiting answers within `read_within_s`
LINGER_S: Final = 0.5  # how long an idle connection of a stopping server may still bring a request
CHECK_LEAVING_EVERY_S: Final = 0.05
LAST_LOOK_S: Final = 0.05  # before a silent connection is closed: to read what came while the process stood still
ABORT_ABOVE: Final = 1.1  # beyond this multiple of a cap a connection is not even told why; below it is the reserve
RESERVE_WITHIN_S: Final = 3.0  # when a connection of the reserve must have brought its request
STREAM_PATH_END: Final = b"/stream"  # of addresses whose body may go on without the app

log = logging.getLogger("frontrow.web.lane.protocol")
traffic_log = logging.getLogger("frontrow.web")


class HeadTooLarge(FrontrowError):
    """The request line and the headers are longer, or more, than a server reads."""

    code = "head_too_large"
    http_status = 431


class LaneProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a lane beside it. `lane` makes the class for a table of routes."""

    routes: ClassVar[Routes] = {}
    shapes: ClassVar[Shapes | None] = None  # finds the handler of an address that is not in `routes` word by word
    request_id: ClassVar[RequestId | None] = None
    request_within_s: ClassVar[float] = REQUEST_WITHIN_S  # a request that takes longer to arrive is cut off
    read_within_s: ClassVar[float] = READ_WITHIN_S  # so is a client that takes nothing of its answers for so long
    watch: ClassVar[Watch | None] = None
    limits: ClassVar[EntranceLimits | None] = None  # what its handlers count, told in the responses' headers
    caps: ClassVar[AddressCaps | None] = None  # how many connections an address may have
    bodies: ClassVar[BodyBudget] = BodyBudget(lambda address: True)  # how much of large bodies is held at once
    linger_s: ClassVar[float | None] = None  # None: stop as uvicorn does

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
        self._app_body_bytes = 0  # of the body that arrives for the app
        self._held_bytes = 0  # of the budget of large bodies
        self._in_head = False
        self._between = True  # two requests: the parser has read all of the one before, and nothing of the next
        self._arrived_bytes = 0  # since a request or a part of its body began: of its head, or of its trailers
        self._unparsed = b""  # input behind answers that have not left
        self._resting = False  # input is put aside for a time
        self._limited = False  # an answer said that this client asks too often
        self._unread_bytes = 0  # of answers, when last looked at
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._busy_s = 0.0
        self._idle_look_s = self._slow_look_s = 0.0  # which silence, and which slow request, had its last look
        self._gone = False
        self._peer = ""
        self._id_line = b""
        self._limit_lines = b""
        self._late: tuple[EndpointRequest, list[Decision]] | None = None  # counted while its answer is being made
        self._began_s: float | None = None  # when the request that is still arriving began
        self._headers_ns = 0  # when its headers were complete
        self._hot_route: HotRoute | None = None
        self._over_cap = False  # one connection too many: everything on it but paying is refused
        self._address = ""  # what this connection is counted under
        self._close_next = False  # the next response closes the connection
        self._leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: ConnectionFlow = ConnectionFlow(transport)
        self._peer = self.client[0] if self.client else ""
        self._began_s = self.loop.time()
        self._check_caps(transport)
        self._timers["slow"] = self.loop.call_later(self._request_within_s(), self._cut_off_slow)
        self._timers["unread"] = self.loop.call_later(self.read_within_s, self._cut_off_unread)

    def _check_caps(self, transport: asyncio.Transport) -> None:
        """All connections, and those of this address. Between a cap and `ABORT_ABOVE` of it is the reserve for paying
        and for the provider's webhooks: such a connection brings one request at once, or ends."""
        watch, caps, excess = self.watch, self.caps, 0.0
        if caps is not None:
            self._address = caps.key_of(self._peer)
            caps.add(self._address)
            excess = caps.fullness(self._address)
        if watch is not None:
            watch.gate.connections = len(self.connections)
            excess = max(excess, watch.gate.connections / watch.gate.settings.max_connections)
        if excess <= 1:
            return
        self._over_cap = self._close_next = True
        if watch is not None:
            watch.gate.turned_away += 1
        if watch is None or excess > ABORT_ABOVE:
            transport.abort()

    def _request_within_s(self) -> float:
        return min(self.request_within_s, RESERVE_WITHIN_S) if self._over_cap else self.request_within_s

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._unparsed = b""
        self._give_back_body()
        super().connection_lost(exc)
        self._forget_extensions()
        if self.watch is not None:
            self.watch.gate.connections = len(self.connections)
        if self.caps is not None:
            self.caps.remove(self._address)

    def _cut_off_slow(self) -> None:
        """Nobody holds a connection by sending a request slowly (or not at all); looked at once per such time."""
        if self.transport.is_closing():
            return
        now_s = self.loop.time()
        began_s = now_s if self._began_s is None else self._began_s
        left_s = began_s + self._request_within_s() - now_s
        if left_s <= 0:
            if self._slow_look_s == began_s:
                self.transport.abort()
                return
            self._slow_look_s, left_s = began_s, LAST_LOOK_S
        self._timers["slow"] = self.loop.call_later(left_s, self._cut_off_slow)

    def _cut_off_unread(self) -> None:
        """Nobody holds answers in our memory by not reading them, not even behind a connection that is closing."""
        waiting = self.transport.get_write_buffer_size()
        if self._unread_bytes and waiting > max(0, self._unread_bytes - LEAST_READ_BYTES):
            self.transport.abort()
            return
        self._unread_bytes = waiting
        self._timers["unread"] = self.loop.call_later(self.read_within_s, self._cut_off_unread)

    def _stop_timers(self) -> None:
        """A connection that is over is not kept in memory by its timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers = {}

    # -- bytes in --------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, but the keep-alive timer is moved lazily instead of cancelled and made anew each time."""
        if self._gone:
            return
        self._busy_s = self.loop.time()
        if self._unparsed or self._resting:
            self._unparsed += data
        elif len(data) <= PIECE_BYTES and not self._limited:
            if not (self._between and self._answer_plain(data)):
                self._parse(data)
        else:
            self._parse_pieces(data)

    def _answer_plain(self, data: bytes) -> bool:
        """Answer one whole and plain request for a hot route without the parser. False: the parser must read it."""
        cycle, watch = self.cycle, self.watch
        if self.flow.write_paused or self._over_cap or (cycle is not None and not cycle.response_complete):
            return False
        plain = read_plain(data)
        if plain is None:
            return False
        key, lines, body = plain
        handler, query = self.routes.get(key), b""
        if handler is None:
            handler, query = self._find_handler(key)
        if handler is None or not has_fine_host(lines):
            return False
        if watch is not None:
            gate = watch.gate
            if gate.active:
                return False
            gate.arrived += 1
            self._headers_ns = time.perf_counter_ns()
            self._hot_route = watch.routes.get(key) or watch.add_route(key, handler)
        self._began_s = None
        self._answer(handler, EndpointRequest(lines, body, self._peer, query), True)
        return True

    def _parse_pieces(self, data: bytes) -> None:
        """Parse piece by piece. The rest is put aside as soon as answers wait for the client or for each other. Who
        pipelines lets others go first after each piece, and rests after asking too often."""
        for end in range(PIECE_BYTES, len(data) + PIECE_BYTES, PIECE_BYTES):
            before = self.server_state.total_requests
            self._parse(data[end - PIECE_BYTES : end] if len(data) > PIECE_BYTES else data)
            if self._gone or self.transport.is_closing():
                return
            answered = self.server_state.total_requests - before
            if self._limited and answered > 1:
                self._limited = False
                self._put_aside(data[end:], LIMITED_REST_S)
                return
            if end < len(data) and (answered or self.pipeline or self.flow.write_paused):
                self._put_aside(data[end:], 0.0)
                return

    def _put_aside(self, rest: bytes, rest_s: float) -> None:
        """Parse this later, and read nothing before that."""
        self._unparsed, self._resting = rest, True
        self.flow.set_unparsed(True)
        self._timers["parse"] = self.loop.call_later(rest_s, self._end_rest)

    def _end_rest(self) -> None:
        self._resting = False
        self._parse_on()

    def _parse_on(self) -> None:
        """Go on with input that was put aside, if its time has come and the answers before it have left."""
        if self._resting or self.pipeline or self.flow.write_paused or self.transport.is_closing():
            return
        data, self._unparsed = self._unparsed, b""
        if data:
            self._parse_pieces(data)
        if not self._resting:
            self.flow.set_unparsed(False)

    def _parse(self, piece: bytes) -> None:
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserError:
            self._between = False
            if not self._gone:
                self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade as upgrade:  # nothing but HTTP is spoken here: read on behind that request
            self._parse(piece[upgrade.args[0] :])
            return
        self._arrived_bytes += len(piece)
        if self._gone or self.transport.is_closing():
            return
        if self._arrived_bytes > MAX_HEAD_BYTES + PIECE_BYTES:
            self._refuse_head(HEAD_TOO_LONG)
        elif self._in_head and len(self._lines) > MAX_HEADERS:
            self._refuse_head(TOO_MANY_HEADERS)

    def _should_upgrade(self) -> bool:
        """Never, whatever is installed: another protocol would have none of this one's bounds."""
        return False

    def _refuse_head(self, why: str) -> None:
        """431, and the connection ends."""
        self._gone = True
        if self.cycle is None or self.cycle.response_complete:  # else an answer is under way: nothing fits behind it
            self._write(problem_answer(HeadTooLarge(why)), keep_alive=False)
        else:
            self.transport.close()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._parse_on()

    def on_response_complete(self) -> None:
        self._give_back_body()
        super().on_response_complete()
        self._parse_on()

    def on_message_begin(self) -> None:
        self.url = b""
        self._query = b""
        self._lines = []
        self._handler = None
        self._in_head = True
        self._app_body_bytes = 0
        self._between = False
        self._arrived_bytes = 0
        self._began_s = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name, value))

    def _check_head(self) -> None:
        """Called when the head is complete. A longer one was refused while it arrived."""
        if len(self._lines) > MAX_HEADERS:
            self._refuse_head(TOO_MANY_HEADERS)
        elif self._arrived_bytes and _bytes_of(self.url, self._lines) > MAX_HEAD_BYTES:
            self._refuse_head(HEAD_TOO_LONG)
        else:
            return
        raise HeadTooLarge("the parser stops here")

    def on_headers_complete(self) -> None:
        if self._arrived_bytes or len(self._lines) > MAX_HEADERS:
            self._check_head()
        watch = self.watch
        if watch is None:
            self._choose_door()
            return
        key = (self.parser.get_method(), self.url)
        route = watch.routes.get(key)
        self._headers_ns = time.perf_counter_ns()
        gate = watch.gate
        gate.arrived += 1
        if gate.active or self._over_cap:
            rank = route.rank if route is not None else rank_of(*key)
            if (self._over_cap and rank < Rank.PAY) or not gate.admits(rank):
                self._shed(watch)
                return
        if self._asks_for_stream() and gate.connections > gate.settings.connections_with_streams:
            self._shed(watch)
            return
        self._choose_door()
        if self._handler is not None:
            self._hot_route = route or watch.add_route(key, self._handler)

    def _asks_for_stream(self) -> bool:
        return self.url.partition(b"?")[0].endswith(STREAM_PATH_END)

    def _shed(self, watch: Watch) -> None:
        self._in_head = False
        self._hot_route = watch.shed_route
        if self.cycle is not None and not self.cycle.response_complete:
            self._pass_on()  # pipelined behind another answer: the other door keeps the order
            return
        if self.flow.write_paused:  # it does not read its answers: another one would only wait in our memory
            self._gone = True
            self.transport.abort()
            return
        self._handler = self._refuse
        self._body = []
        self._body_bytes = 0

    def _refuse(self, request: EndpointRequest) -> EndpointResponse:
        watch = self.watch
        assert watch is not None
        refusal = watch.refusal()
        if not self._over_cap and not watch.is_proxy(request.peer):
            self.flow.pause_reading()
            self.loop.call_later(refusal.retry_after_s, self._read_again)
        people, method = watch.for_people, self.parser.get_method().decode("latin-1")
        page = people(method, request, refusal.error) if people is not None else None
        return page or refusal.response

    def _read_again(self) -> None:
        if self.parser is not None and not self._gone and not self.transport.is_closing():
            self.flow.resume_reading()

    def _choose_door(self) -> None:
        """Keep the request for a hot handler, or give it to uvicorn."""
        self._in_head = False
        parser = self.parser
        key = (parser.get_method(), self.url)
        handler = self.routes.get(key)
        if handler is None:
            handler, self._query = self._find_handler(key)
        if handler is not None and self._ordinary(parser):  # anything unusual is uvicorn's
            self._handler = handler
            if self._body_bytes:
                self._body = []
                self._body_bytes = 0
            return
        self._pass_on()

    def _find_handler(self, key: tuple[bytes, bytes]) -> tuple[Handler | None, bytes]:
        """The handler of an address with a query or a parameter, and the query."""
        method, url = key
        if b"?" in url:
            path, _, query = url.partition(b"?")
            return self.routes.get((method, path + b"?")), query
        find = type(self).shapes
        return (find(method, url) if find is not None else None), b""

    def _ordinary(self, parser: Any) -> bool:
        """Nothing about this request needs uvicorn's full machinery."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            return False
        if self._gone or parser.get_http_version() != "1.1" or parser.should_upgrade():
            return False
        if self.flow.write_paused:  # uvicorn waits until the answers before this one have left
            return False
        for name, _ in self._lines:  # a generator costs twice as much here
            if len(name) == 6 and name.lower() == b"expect":
                return False
        return has_fine_host(self._lines)

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
        if self._close_next and self.cycle is not None:
            self.cycle.keep_alive = False
        if self._asks_for_stream() and self.parser.get_method() == b"GET":
            self.scope["extensions"] = {TAKE_OVER: {"call": self._take_over}}

    def on_body(self, body: bytes) -> None:
        self._arrived_bytes = 0
        if self._handler is None:
            if not self._gone and self._has_room_for(body):
                super().on_body(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(body)

    def _has_room_for(self, body: bytes) -> bool:
        """Whether a part of a body for the app may be held; if not, the request is refused and the connection ends."""
        if self.cycle.response_complete:
            return True  # uvicorn drops it
        self._app_body_bytes += len(body)
        if self._app_body_bytes <= SMALL_BODY_BYTES:
            return True
        size = len(body) if self._held_bytes else self._app_body_bytes
        if self.bodies.take(self._address, size):
            self._held_bytes += size
            return True
        self._gone = True
        if self.watch is not None:
            self.watch.gate.turned_away += 1
        if self.pipeline or self.cycle.response_started:  # nothing fits behind the answer that is under way
            self.transport.close()
        else:
            self._id_line = self._limit_lines = b""
            refusal = Overloaded(NO_ROOM_FOR_BODY, retry_after_s=BODY_AGAIN_S)
            self._write(problem_answer(refusal), keep_alive=False)
        self.cycle.disconnected = True  # nothing that the app still does is written
        self.cycle.message_event.set()
        return False

    def _give_back_body(self) -> None:
        if self._held_bytes:
            self.bodies.give_back(self._address, self._held_bytes)
            self._held_bytes = 0

    def on_message_complete(self) -> None:
        handler, keep_alive = self._handler, self.parser.should_keep_alive()
        self._began_s = None
        self._between = keep_alive and not self.parser.should_upgrade()
        if handler is None:
            if not self._gone:
                super().on_message_complete()
            return
        self._handler = None
        body = b""
        if self._body_bytes > MAX_BODY_BYTES:
            body = OVERLONG  # the endpoint refuses it with the same words as through the other door
        elif self._body_bytes:
            body = b"".join(self._body)
        self._answer(handler, EndpointRequest(self._lines, body, self._peer, self._query), keep_alive)

    def _answer(self, handler: Handler, request: EndpointRequest, keep_alive: bool) -> None:
        """Write the handler's response, or wait for it."""
        make_id = type(self).request_id
        if make_id is not None:
            self._id_line = b"x-request-id: %b\r\n" % make_id(request.headers, request.peer)
        limits = self.limits
        decisions: list[Decision] = []
        mark = counted.set(None if limits is None else decisions)
        try:
            reply = handler(request)
        except Exception:
            log.exception("a hot handler failed", extra={"request_id": self.logged_id()})
            reply = PLAIN_ERROR
        counted.reset(mark)
        if limits is not None:
            if not decisions and type(reply) is EndpointResponse and 400 <= reply.status < 500:
                decisions.append(_count_refused(limits, request))
            self._limit_lines = limits.headers.lines(decisions) if decisions else b""
        if type(reply) is EndpointResponse:
            self._write(reply, keep_alive)
        elif isinstance(reply, FutureResponse):
            self._await_future(reply, keep_alive)
        elif isinstance(reply, PendingResponse):
            self._await_pending(reply, keep_alive)
        elif isinstance(reply, Takeover):
            self._hand_over(reply, keep_alive)
        else:
            self._wait_for(reply, keep_alive, request, decisions)  # type: ignore[arg-type]  # an exact type was tested above

    def logged_id(self) -> str:
        """The id of the request in hand, for log lines."""
        return self._id_line.decode().partition(": ")[2].strip()

    def _await_pending(self, reply: PendingResponse, keep_alive: bool) -> None:
        """As `_wait_for`, without a task: the reply calls back when it is made."""
        pending = PendingReply(self, keep_alive, None, self.watch, self._line_of_waiting())
        self.cycle = pending  # type: ignore[assignment]
        reply.then(pending.made)

    def _await_future(self, reply: FutureResponse, keep_alive: bool) -> None:
        """As `_wait_for`, without a task: the reply is made of a future's result."""
        pending = PendingReply(self, keep_alive, reply.future, self.watch, self._line_of_waiting(), reply.make)
        self.cycle = pending  # type: ignore[assignment]
        reply.future.add_done_callback(pending.done)

    def _wait_for(
        self, reply: "Awaitable[Reply]", keep_alive: bool, request: EndpointRequest, decisions: list[Decision]
    ) -> None:
        """Write the reply when it is there; with a watch it counts as in flight and has a deadline."""
        watch, limits = self.watch, self.limits
        if limits is not None:
            self._late = (request, decisions)
        id_mark = logged_request_id.set(self.logged_id())  # for the lines that its task logs
        mark = counted.set(None if limits is None else decisions)
        future = asyncio.ensure_future(reply, loop=self.loop)
        counted.reset(mark)
        logged_request_id.reset(id_mark)
        pending = PendingReply(self, keep_alive, future, watch, self._line_of_waiting())
        self.cycle = pending  # type: ignore[assignment]
        future.add_done_callback(pending.done)

    def _line_of_waiting(self) -> dict[PendingReply, float] | None:
        """Where the watch keeps the reply in hand while it is being made."""
        watch, route = self.watch, self._hot_route
        if watch is None:
            return None
        return watch.paying if route is not None and route.rank >= Rank.PAY else watch.waiting

    # -- bytes out -------------------------------------------------------------------------------------------------

    def write_late(self, reply: Reply, keep_alive: bool) -> None:
        """Write a reply that took a round trip, then let pipelined requests go on."""
        if self.transport.is_closing():
            return
        if type(reply) is Takeover:
            self._hand_over(reply, keep_alive)
            return
        assert isinstance(reply, EndpointResponse)
        if self._late is not None:
            self._tell_late(reply, *self._late)
        self._busy_s = self.loop.time()  # the next request has the whole time to come
        self._write(reply, keep_alive)
        if self.pipeline and not self.transport.is_closing():
            self.flow.resume_reading()
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        if self.flow.has_unparsed:
            self._parse_on()

    def _tell_late(self, reply: EndpointResponse, request: EndpointRequest, noted: list[Decision]) -> None:
        """Say what was counted while the answer was being made."""
        limits, self._late = self.limits, None
        assert limits is not None
        if not noted and 400 <= reply.status < 500:
            noted.append(_count_refused(limits, request))
        if noted:
            self._limit_lines = limits.headers.lines(noted)

    def _write(self, response: EndpointResponse, keep_alive: bool) -> None:
        status, body = response.status, response.body
        if self._close_next:
            keep_alive = False
        state = self.server_state
        end = b"\r\n" if status in (204, 304) else end_head(len(body))
        if not keep_alive:
            end = b"connection: close\r\n" + end
        begun = begin(status, response.head, state)
        self.transport.write(b"".join((begun, self._id_line, self._limit_lines, end, body)))
        state.total_requests += 1
        if status == 429:
            self._limited = True
        if not keep_alive:
            self.transport.close()
        elif self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        route = self._hot_route
        if route is not None:
            self._hot_route = None
            self._count(route, status)

    def _count(self, route: HotRoute, status: int) -> None:
        took_ns = time.perf_counter_ns() - self._headers_ns
        route.counts.took(took_ns, status)
        if route.rank is Rank.PAY and (status >= 500 or took_ns > SLOW_NS):  # logged as the other door logs it
            about = {"route": route.name, "status": status, "took_ms": took_ns // 1_000_000}
            traffic_log.warning("slow or failed request", extra=about | {"request_id": self.logged_id()})

    def _hand_over(self, takeover: Takeover, keep_alive: bool) -> None:
        """Let another protocol own the connection; this object and its parser are free to go."""
        watch = self.watch
        if watch is not None and watch.gate.connections > watch.gate.settings.connections_with_streams:
            self._write(watch.refusal().response, keep_alive)
            return
        if self._hot_route is not None:
            self._hot_route.counts.took(time.perf_counter_ns() - self._headers_ns, 200)
        self._give_away(takeover, default_lines(self.server_state) + self._id_line)

    def _take_over(self, takeover: Takeover) -> bool:
        """The same for a response that the app has begun: the body goes on without the app and its task. False if
        something else waits on this connection, or if the body has no chunks."""
        cycle = self.cycle
        waits = self.pipeline or self._unparsed or self._resting or self.flow.write_paused or self.flow.read_paused
        if waits or cycle is None or cycle.disconnected or self._gone or self.transport.is_closing():
            return False
        if not cycle.chunked_encoding or cycle.scope["http_version"] != "1.1":
            return False
        cycle.disconnected = True  # nothing that the app still does is written
        self._give_away(takeover, None)
        return True

    def _give_away(self, takeover: Takeover, lines: bytes | None) -> None:
        self._gone = True
        self._stop_timers()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
        if self.caps is not None:
            self.caps.remove(self._address)
        self.server_state.total_requests += 1
        self.transport.set_protocol(takeover.take(self.transport, self.connections, lines))
        self._forget_extensions()
        self.parser = self.cycle = None  # type: ignore[assignment]  # they refer to this object, and would keep it

    def _forget_extensions(self) -> None:
        """The scope of a stream refers to this object, and would keep it."""
        if self.scope is not None:
            self.scope.pop("extensions", None)

    def timeout_keep_alive_handler(self) -> None:
        """Close when nothing came for the whole time; otherwise look again when that could be true."""
        self.timeout_keep_alive_task = None
        if self._gone or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            return  # answering: whoever finishes arms the timer again
        left_s = self._busy_s + self.timeout_keep_alive - self.loop.time()
        if left_s <= 0:
            if self._idle_look_s == self._busy_s:
                self.transport.close()
                return
            self._idle_look_s, left_s = self._busy_s, LAST_LOOK_S
        self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)

    # -- the end of the server ---------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """The server stops: finish what is on this connection, then close it."""
        if self.linger_s is None:
            super().shutdown()
        elif not self._leaving:
            self._leaving = self._close_next = True
            self._leave(self.loop.time() + self.linger_s)

    def _leave(self, until_s: float) -> None:
        """Close when nothing is going on here any more; the server's drain and `request_within_s` bound it."""
        if self._gone or self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # the answer under way closes the connection
        elif not self._in_head and self._handler is None and self.loop.time() >= until_s:
            self.transport.close()
            return
        self.loop.call_later(CHECK_LEAVING_EVERY_S, self._leave, until_s)


def _count_refused(limits: EntranceLimits, request: EndpointRequest) -> Decision:
    """Count a request that was refused before its handler counted it, as the other door does."""
    forwarded = [value.decode("latin-1") for value in request.all(b"x-forwarded-for")]
    return limits.count_refused(limits.ip_of(request.peer, forwarded))


_fine_hosts: set[bytes] = set()


def has_fine_host(lines: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether the framework would take the `Host`. If not, it gets the request and refuses it in its own words."""
    for name, value in lines:
        if len(name) == 4 and value not in _fine_hosts and name.lower() == b"host":
            if not is_host(value):
                return False
            if len(_fine_hosts) < MAX_HOSTS:  # people come by a few names; others may send any number of them
                _fine_hosts.add(value)
    return True


def _bytes_of(url: bytes, lines: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + len(": \r\n") for name, value in lines)


def lane(
    routes: Routes,
    request_id: RequestId | None = None,
    *,
    watch: Watch | None = None,
    limits: EntranceLimits | None = None,
    caps: AddressCaps | None = None,
    request_within_s: float = REQUEST_WITHIN_S,
    read_within_s: float = READ_WITHIN_S,
    linger_s: float | None = None,
    most_body_bytes: int = MAX_BODIES_BYTES,
) -> type[LaneProtocol]:
    """The protocol class that answers `routes` itself; give it to uvicorn as `http=`. The table may change later.

    Without routes it only guards the app behind it by its `watch`, by `caps` on the connections of each address and by
    the bytes of large bodies that it holds at once.
    """
    attributes = {
        "routes": routes,
        "shapes": shapes_of(routes),
        "request_id": staticmethod(request_id) if request_id is not None else None,
        "request_within_s": request_within_s,
        "read_within_s": read_within_s,
        "watch": watch,
        "limits": limits,
        "caps": caps,
        "bodies": BodyBudget(caps.is_free if caps is not None else lambda address: True, most_body_bytes),
        "linger_s": linger_s,
    }
    return type("Lane", (LaneProtocol,), attributes)
