"""The fast path: the few routes that carry a sale, answered before any ASGI cycle exists.

A subclass of uvicorn's httptools protocol. When the headers of a request for a hot route are complete, it keeps the
request and answers by one write. Everything else is handed to uvicorn unchanged. So is a request that is unusual in any
way (HEAD, an upgrade, `Expect`, HTTP/1.0, a query where none is expected, pipelined behind another answer), because the
app behind declares the same routes and gives the same answers. A request that came whole and is plain is read by
`_plain_head` instead of httptools, where that is compiled. A hot answer costs 0.4 of a bare ASGI one.

The connection is held to the guard's rules (`web/guard/connection_guard.py`), for hot routes and for the app's alike. A
shed request is answered by ready-made bytes before any work. Input is parsed in small pieces, and only while the
answers before it leave.

This class uses names of uvicorn that are not its public API; `uvicorn_names` lists them. Without the fast path
(`hot_lane = false`) a server runs with `web/guard/guarded_protocol.py`, which needs none of them.
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

from frontrow.limits import Decision
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, counted
from frontrow.web.fastpath.connection_flow import ConnectionFlow
from frontrow.web.fastpath.pending_replies import (
    PLAIN_ERROR,
    Handler,
    PendingReply,
    Reply,
    Routes,
    Shapes,
    shapes_of,
)
from frontrow.web.fastpath.route_counts import HotRoute, RouteCounts
from frontrow.web.fastpath.uvicorn_names import check_names
from frontrow.web.guard.connection_guard import (
    HEAD_TOO_LONG,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    PIECE_BYTES,
    TOO_MANY_HEADERS,
    ConnectionGuard,
    GuardRules,
    HeadTooLarge,
    asks_for_stream,
    body_refusal,
    head_refusal,
)
from frontrow.web.guard.overload import Rank
from frontrow.web.guard.overload_watch import SLOW_NS, WaitingReply
from frontrow.web.guard.response_head import begin, default_lines, end_head
from frontrow.web.http.host_header import is_host
from frontrow.web.http.messages import (
    MAX_BODY_BYTES,
    EndpointRequest,
    EndpointResponse,
    FutureResponse,
    PendingResponse,
)
from frontrow.web.http.request_ids import request_id as logged_request_id
from frontrow.web.http.takeover import TAKE_OVER, Takeover

try:
    from frontrow.web.fastpath._plain_head import read_plain
except ImportError:  # built without a C compiler: httptools reads everything

    def read_plain(data: bytes) -> tuple[tuple[bytes, bytes], list[tuple[bytes, bytes]], bytes] | None:
        return None


OVERLONG = bytes(MAX_BODY_BYTES + 1)
MAX_HOSTS: Final = 64  # remembered as fine
LIMITED_REST_S: Final = 1.0  # how long a connection rests that pipelines although it asks too often

log = logging.getLogger("frontrow.web.fastpath.protocol")
traffic_log = logging.getLogger("frontrow.web")


class FastPathProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the fast path beside it. `fast_path` makes the class for a table of routes."""

    routes: ClassVar[Routes] = {}
    shapes: ClassVar[Shapes | None] = None  # finds the handler of an address that is not in `routes` word by word
    rules: ClassVar[GuardRules] = GuardRules()
    counts: ClassVar[RouteCounts | None] = None  # with a watch: what is counted of each hot route
    limits: ClassVar[EntranceLimits | None] = None  # what its handlers count, told in the responses' headers

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
        self._between = True  # two requests: the parser has read all of the one before, and nothing of the next
        self._arrived_bytes = 0  # since a request or a part of its body began: of its head, or of its trailers
        self._unparsed = b""  # input behind answers that have not left
        self._resting = False  # input is put aside for a time
        self._limited = False  # an answer said that this client asks too often
        self._gone = False
        self._peer = ""
        self._id_line = b""
        self._limit_lines = b""
        self._late: tuple[EndpointRequest, list[Decision]] | None = None  # counted while its answer is being made
        self._headers_ns = 0  # when its headers were complete
        self._hot_route: HotRoute | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.guard = ConnectionGuard(self.rules, transport, self.loop)
        self.flow: ConnectionFlow = ConnectionFlow(transport, self.guard.pauses)
        self._peer = self.client[0] if self.client else ""
        self.guard.open(self._peer, len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed = b""
        super().connection_lost(exc)
        self._forget_extensions()
        self.guard.close(len(self.connections))

    # -- bytes in --------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, but the keep-alive timer is moved lazily instead of cancelled and made anew each time."""
        if self._gone:
            return
        self.guard.busy_s = self.loop.time()
        if self._unparsed or self._resting:
            self._unparsed += data
        elif len(data) <= PIECE_BYTES and not self._limited:
            if not (self._between and self._answer_plain(data)):
                self._parse(data)
        else:
            self._parse_pieces(data)

    def _answer_plain(self, data: bytes) -> bool:
        """Answer one whole and plain request for a hot route without the parser. False: the parser must read it."""
        cycle, guard, counts = self.cycle, self.guard, self.counts
        if self.flow.write_paused or guard.over_cap or (cycle is not None and not cycle.response_complete):
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
        if counts is not None:
            gate = counts.gate
            if gate.active:
                return False
            gate.arrived += 1
            self._headers_ns = time.perf_counter_ns()
            self._hot_route = counts.routes.get(key) or counts.add(key, handler)
        guard.began_s = None
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
        self._set_unparsed(True)
        self.guard.call_later("parse", rest_s, self._end_rest)

    def _set_unparsed(self, waiting: bool) -> None:
        """Read nothing while input that has arrived waits to be parsed."""
        self.guard.pauses.unparsed = waiting
        self.guard.pauses.apply()

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
            self._set_unparsed(False)

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
            self._write(head_refusal(why), keep_alive=False)
        else:
            self.transport.close()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._parse_on()

    def on_response_complete(self) -> None:
        self.guard.give_back_body()
        super().on_response_complete()
        self._parse_on()

    def on_message_begin(self) -> None:
        self.url = b""
        self._query = b""
        self._lines = []
        self._handler = None
        self._in_head = True
        self._between = False
        self._arrived_bytes = 0
        guard = self.guard
        guard.body_bytes, guard.began_s = 0, self.loop.time()

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
        counts = self.counts
        if counts is None:
            self._choose_answerer()
            return
        key = (self.parser.get_method(), self.url)
        route = counts.routes.get(key)
        self._headers_ns = time.perf_counter_ns()
        if not self.guard.admits(key[0], key[1], route.rank if route is not None else None):
            self._shed(counts)
            return
        self._choose_answerer()
        if self._handler is not None:
            self._hot_route = route or counts.add(key, self._handler)

    def _shed(self, counts: RouteCounts) -> None:
        self._in_head = False
        self._hot_route = counts.shed
        if self.cycle is not None and not self.cycle.response_complete:
            self._pass_on()  # pipelined behind another answer: uvicorn keeps the order
            return
        if self.flow.write_paused:  # it does not read its answers: another one would only wait in our memory
            self._gone = True
            self.transport.abort()
            return
        self._handler = self._refuse
        self._body = []
        self._body_bytes = 0

    def _refuse(self, request: EndpointRequest) -> EndpointResponse:
        return self.guard.refuse(self.parser.get_method(), request)

    def _choose_answerer(self) -> None:
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
        if self.guard.close_next and self.cycle is not None:
            self.cycle.keep_alive = False
        if asks_for_stream(self.url) and self.parser.get_method() == b"GET":
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
        cycle = self.cycle
        if cycle.response_complete:
            return True  # uvicorn drops it
        if self.guard.has_room_for(len(body)):
            return True
        self._gone = True
        if self.pipeline or cycle.response_started:  # nothing fits behind the answer that is under way
            self.transport.close()
        else:
            self._id_line = self._limit_lines = b""
            self._write(body_refusal(), keep_alive=False)
        cycle.disconnected = True  # nothing that the app still does is written
        cycle.message_event.set()
        return False

    def on_message_complete(self) -> None:
        handler, keep_alive = self._handler, self.parser.should_keep_alive()
        self.guard.began_s = None
        self._between = keep_alive and not self.parser.should_upgrade()
        if handler is None:
            if not self._gone:
                super().on_message_complete()
            return
        self._handler = None
        body = b""
        if self._body_bytes > MAX_BODY_BYTES:
            body = OVERLONG  # the endpoint refuses it with the same words as through the framework
        elif self._body_bytes:
            body = b"".join(self._body)
        self._answer(handler, EndpointRequest(self._lines, body, self._peer, self._query), keep_alive)

    def _answer(self, handler: Handler, request: EndpointRequest, keep_alive: bool) -> None:
        """Write the handler's response, or wait for it."""
        make_id = self.rules.request_id
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
        pending = PendingReply(self, keep_alive, None, self.rules.watch, self._line_of_waiting())
        self.cycle = pending  # type: ignore[assignment]
        reply.then(pending.made)

    def _await_future(self, reply: FutureResponse, keep_alive: bool) -> None:
        """As `_wait_for`, without a task: the reply is made of a future's result."""
        pending = PendingReply(self, keep_alive, reply.future, self.rules.watch, self._line_of_waiting(), reply.make)
        self.cycle = pending  # type: ignore[assignment]
        reply.future.add_done_callback(pending.done)

    def _wait_for(
        self, reply: "Awaitable[Reply]", keep_alive: bool, request: EndpointRequest, decisions: list[Decision]
    ) -> None:
        """Write the reply when it is there; with a watch it counts as in flight and has a deadline."""
        limits = self.limits
        if limits is not None:
            self._late = (request, decisions)
        id_mark = logged_request_id.set(self.logged_id())  # for the lines that its task logs
        mark = counted.set(None if limits is None else decisions)
        future = asyncio.ensure_future(reply, loop=self.loop)
        counted.reset(mark)
        logged_request_id.reset(id_mark)
        pending = PendingReply(self, keep_alive, future, self.rules.watch, self._line_of_waiting())
        self.cycle = pending  # type: ignore[assignment]
        future.add_done_callback(pending.done)

    def _line_of_waiting(self) -> dict[WaitingReply, float] | None:
        """Where the watch keeps the reply in hand while it is being made."""
        watch, route = self.rules.watch, self._hot_route
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
        self.guard.busy_s = self.loop.time()  # the next request has the whole time to come
        self._write(reply, keep_alive)
        if self.pipeline and not self.transport.is_closing():
            self.flow.resume_reading()
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        if self.guard.pauses.unparsed:
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
        if self.guard.close_next:
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
        if route.rank is Rank.PAY and (status >= 500 or took_ns > SLOW_NS):  # as the framework's are logged
            about = {"route": route.name, "status": status, "took_ms": took_ns // 1_000_000}
            traffic_log.warning("slow or failed request", extra=about | {"request_id": self.logged_id()})

    def _hand_over(self, takeover: Takeover, keep_alive: bool) -> None:
        """Let another protocol own the connection; this object and its parser are free to go."""
        watch = self.rules.watch
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
        waits = self.pipeline or self._unparsed or self._resting or self.guard.pauses.any
        if waits or cycle is None or cycle.disconnected or self._gone or self.transport.is_closing():
            return False
        if not cycle.chunked_encoding or cycle.scope["http_version"] != "1.1":
            return False
        cycle.disconnected = True  # nothing that the app still does is written
        self._give_away(takeover, None)
        return True

    def _give_away(self, takeover: Takeover, lines: bytes | None) -> None:
        self._gone = True
        self.guard.release()
        self._unset_keepalive_if_required()
        self.connections.discard(self)
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
        left_s = self.guard.idle_left_s(self.timeout_keep_alive)
        if left_s > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        else:
            self.transport.close()

    # -- the end of the server ---------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """The server stops: finish what is on this connection, then close it."""
        if self.rules.linger_s is None:
            super().shutdown()
        else:
            self.guard.linger(self._is_idle)

    def _is_idle(self) -> bool:
        """Whether nothing is going on here. An answer that is under way closes the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return False
        return not self._in_head and self._handler is None


def _count_refused(limits: EntranceLimits, request: EndpointRequest) -> Decision:
    """Count a request that was refused before its handler counted it, as the framework does."""
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


def fast_path(
    routes: Routes, rules: GuardRules | None = None, limits: EntranceLimits | None = None
) -> type[FastPathProtocol]:
    """The protocol class that answers `routes` itself; give it to uvicorn as `http=`. The table may change later."""
    check_names()
    rules = rules or GuardRules()
    attributes = {
        "routes": routes,
        "shapes": shapes_of(routes),
        "rules": rules,
        "counts": RouteCounts(rules.watch) if rules.watch is not None else None,
        "limits": limits,
    }
    return type("FastPath", (FastPathProtocol,), attributes)
