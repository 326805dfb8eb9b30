"""What every connection of a server is held to, whichever protocol parses its requests.

- Caps: all connections, and those of one address. Between a cap and `ABORT_ABOVE` of it is the reserve for paying and
  for the provider's webhooks; such a connection brings one request at once, or ends.
- A request must arrive within `request_within_s`. A client that takes nothing of its answers for `read_within_s` is cut
  off, so a slow reader holds little memory and no connection for long.
- A head has at most `MAX_HEAD_BYTES` and `MAX_HEADERS`; a larger one gets 431. Large bodies share a bounded memory
  (`body_budget`).
- With a `watch` every request passes the overload gate. After a refusal the connection is not read before its
  `Retry-After` (unless it is a proxy's, which carries other people too). That keeps refusing cheap under ten times the
  load.
- With `linger_s` a server that stops still answers a request that is arriving or on its way. uvicorn alone closes every
  connection at once on which it is not answering.

A `ConnectionGuard` knows asyncio's transport and loop and nothing of uvicorn. Two protocols use it: `GuardedProtocol`
and the fast path (`web/fastpath/protocol.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from frontrow.core.errors import FrontrowError, Overloaded
from frontrow.web.guard.address_caps import AddressCaps
from frontrow.web.guard.body_budget import MAX_BODIES_BYTES, SMALL_BODY_BYTES, BodyBudget
from frontrow.web.guard.overload import Rank, rank_of
from frontrow.web.guard.overload_watch import Watch
from frontrow.web.guard.reading_pauses import ReadingPauses
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, problem_answer

MAX_HEAD_BYTES: Final = 32 * 1024
MAX_HEADERS: Final = 100
TOO_MANY_HEADERS: Final = f"a request has at most {MAX_HEADERS} headers"
HEAD_TOO_LONG: Final = f"a request's head has at most {MAX_HEAD_BYTES} bytes"
NO_ROOM_FOR_BODY: Final = "too many large requests are arriving at once; try again soon"
BODY_AGAIN_S: Final = 5
PIECE_BYTES: Final = 2 * 1024  # of input, parsed at once: what one turn can ask for is bounded
REQUEST_WITHIN_S: Final = 30.0
READ_WITHIN_S: Final = 20.0
LEAST_READ_BYTES: Final = 8 * 1024  # what a client must take of waiting answers within `read_within_s`
LINGER_S: Final = 0.5  # how long an idle connection of a stopping server may still bring a request
CHECK_LEAVING_EVERY_S: Final = 0.05
LAST_LOOK_S: Final = 0.05  # before a silent connection is closed: to read what came while the process stood still
ABORT_ABOVE: Final = 1.1  # beyond this multiple of a cap a connection is aborted without an answer
RESERVE_WITHIN_S: Final = 3.0  # when a connection of the reserve must have brought its request
STREAM_PATH_END: Final = b"/stream"  # of addresses whose body may go on without the app

RequestId = Callable[[Sequence[tuple[bytes, bytes]], str], bytes]


class HeadTooLarge(FrontrowError):
    """The request line and the headers are longer, or more, than a server reads."""

    code = "head_too_large"
    http_status = 431


def head_refusal(why: str) -> EndpointResponse:
    return problem_answer(HeadTooLarge(why))


def body_refusal() -> EndpointResponse:
    return problem_answer(Overloaded(NO_ROOM_FOR_BODY, retry_after_s=BODY_AGAIN_S))


def asks_for_stream(url: bytes) -> bool:
    return url.partition(b"?")[0].endswith(STREAM_PATH_END)


class GuardRules:
    """The bounds that all connections of a server share, and what they use of them now."""

    def __init__(
        self,
        *,
        watch: Watch | None = None,
        caps: AddressCaps | None = None,
        request_id: RequestId | None = None,
        request_within_s: float = REQUEST_WITHIN_S,
        read_within_s: float = READ_WITHIN_S,
        linger_s: float | None = None,
        most_body_bytes: int = MAX_BODIES_BYTES,
    ) -> None:
        self.watch = watch  # the overload gate, if there is one
        self.caps = caps  # how many connections an address may have
        self.request_id = request_id  # makes the `x-request-id` of answers
        self.request_within_s, self.read_within_s = request_within_s, read_within_s
        self.linger_s = linger_s  # None: stop as uvicorn does
        self.bodies = BodyBudget(caps.is_free if caps is not None else lambda address: True, most_body_bytes)


class ConnectionGuard:
    """Holds one connection to the rules. Its protocol tells it what arrives and what is answered."""

    __slots__ = (
        "_address",
        "_held_bytes",
        "_idle_look_s",
        "_loop",
        "_slow_look_s",
        "_timers",
        "_transport",
        "_unread_bytes",
        "began_s",
        "body_bytes",
        "busy_s",
        "close_next",
        "leaving",
        "over_cap",
        "pauses",
        "rules",
    )

    def __init__(self, rules: GuardRules, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.rules, self._transport, self._loop = rules, transport, loop
        self.pauses = ReadingPauses(transport)
        self.began_s: float | None = loop.time()  # when the request that is still arriving began
        self.busy_s = 0.0  # when something last arrived or was answered
        self.over_cap = False  # one connection too many: everything on it but paying is refused
        self.close_next = False  # the next response closes the connection
        self.leaving = False  # the server stops
        self._address = ""  # what this connection is counted under
        self.body_bytes = 0  # of the body that arrives for the app; its protocol sets 0 when a request begins
        self._held_bytes = 0  # of the budget of large bodies
        self._unread_bytes = 0  # of answers, when last looked at
        self._idle_look_s = self._slow_look_s = 0.0  # which silence, and which slow request, had its last look
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def open(self, peer: str, connections: int) -> None:
        """Check the caps for a new connection of this address, the last of so many, and start the timers."""
        self._check_caps(peer, connections)
        self.call_later("slow", self._request_within_s(), self._cut_off_slow)
        self.call_later("unread", self.rules.read_within_s, self._cut_off_unread)

    def close(self, connections: int) -> None:
        """The connection is over; so many are left."""
        self.release()
        if self.rules.watch is not None:
            self.rules.watch.gate.connections = connections

    def release(self) -> None:
        """Nobody guards this connection any more: it is over, or another protocol has it."""
        for timer in self._timers.values():  # they would keep the connection in memory
            timer.cancel()
        self._timers = {}
        self.give_back_body()
        if self.rules.caps is not None:
            self.rules.caps.remove(self._address)

    def call_later(self, name: str, after_s: float, call: Callable[[], None]) -> None:
        """Call this once, unless the connection is over by then. It replaces the timer of the same name."""
        before = self._timers.get(name)
        if before is not None:
            before.cancel()
        self._timers[name] = self._loop.call_later(after_s, call)

    # -- caps and slow clients ---------------------------------------------------------------------------------------

    def _check_caps(self, peer: str, connections: int) -> None:
        watch, caps, excess = self.rules.watch, self.rules.caps, 0.0
        if caps is not None:
            self._address = caps.key_of(peer)
            caps.add(self._address)
            excess = caps.fullness(self._address)
        if watch is not None:
            watch.gate.connections = connections
            excess = max(excess, connections / watch.gate.settings.max_connections)
        if excess <= 1:
            return
        self.over_cap = self.close_next = True
        if watch is not None:
            watch.gate.turned_away += 1
        if watch is None or excess > ABORT_ABOVE:
            self._transport.abort()

    def _request_within_s(self) -> float:
        within_s = self.rules.request_within_s
        return min(within_s, RESERVE_WITHIN_S) if self.over_cap else within_s

    def _cut_off_slow(self) -> None:
        """Abort a connection that sends its request slowly, or none at all. Checked once per `request_within_s`."""
        if self._transport.is_closing():
            return
        now_s = self._loop.time()
        began_s = now_s if self.began_s is None else self.began_s
        left_s = began_s + self._request_within_s() - now_s
        if left_s <= 0:
            if self._slow_look_s == began_s:
                self._transport.abort()
                return
            self._slow_look_s, left_s = began_s, LAST_LOOK_S
        self.call_later("slow", left_s, self._cut_off_slow)

    def _cut_off_unread(self) -> None:
        """Abort connections whose client has stopped reading, even while they close."""
        waiting = self._transport.get_write_buffer_size()
        if self._unread_bytes and waiting > max(0, self._unread_bytes - LEAST_READ_BYTES):
            self._transport.abort()
            return
        self._unread_bytes = waiting
        self.call_later("unread", self.rules.read_within_s, self._cut_off_unread)

    def idle_left_s(self, within_s: float) -> float:
        """How long a silent connection is still kept open; 0 if its time is over and nothing came at a last look."""
        left_s = self.busy_s + within_s - self._loop.time()
        if left_s > 0:
            return left_s
        if self._idle_look_s == self.busy_s:
            return 0.0
        self._idle_look_s = self.busy_s
        return LAST_LOOK_S

    # -- overload ----------------------------------------------------------------------------------------------------

    def admits(self, method: bytes, url: bytes, rank: Rank | None = None) -> bool:
        """Count a request and ask the overload gate. `rank` is its class, if that is known."""
        watch = self.rules.watch
        if watch is None:
            return True
        gate = watch.gate
        gate.arrived += 1
        if gate.active or self.over_cap:
            if rank is None:
                rank = rank_of(method, url)
            if (self.over_cap and rank < Rank.PAY) or not gate.admits(rank):
                return False
        return not (gate.connections > gate.settings.connections_with_streams and asks_for_stream(url))

    def refuse(self, method: bytes, request: EndpointRequest) -> EndpointResponse:
        """The answer to a shed request. The connection is not read before its `Retry-After`."""
        watch = self.rules.watch
        assert watch is not None
        refusal = watch.refusal()
        if not self.over_cap and not watch.is_proxy(request.peer):
            self.pauses.shed = True
            self.pauses.apply()
            self.call_later("shed", refusal.retry_after_s, self._read_again)
        people = watch.for_people
        page = people(method.decode("latin-1"), request, refusal.error) if people is not None else None
        return page or refusal.response

    def _read_again(self) -> None:
        self.pauses.shed = False
        self.pauses.apply()

    # -- bodies ------------------------------------------------------------------------------------------------------

    def has_room_for(self, size: int) -> bool:
        """Whether a part of a body for the app may be held until its answer."""
        self.body_bytes += size
        if self.body_bytes <= SMALL_BODY_BYTES:
            return True
        if not self._held_bytes:
            size = self.body_bytes
        if self.rules.bodies.take(self._address, size):
            self._held_bytes += size
            return True
        if self.rules.watch is not None:
            self.rules.watch.gate.turned_away += 1
        return False

    def give_back_body(self) -> None:
        if self._held_bytes:
            self.rules.bodies.give_back(self._address, self._held_bytes)
            self._held_bytes = 0

    # -- the end of the server ---------------------------------------------------------------------------------------

    def linger(self, is_idle: Callable[[], bool]) -> None:
        """The server stops. Close the connection once it has been idle for `linger_s`; the answer to a request closes
        it too. The server's drain and `request_within_s` bound the wait."""
        if not self.leaving:
            assert self.rules.linger_s is not None
            self.leaving = self.close_next = True
            self._leave(self._loop.time() + self.rules.linger_s, is_idle)

    def _leave(self, until_s: float, is_idle: Callable[[], bool]) -> None:
        if self._transport.is_closing():
            return
        if is_idle() and self._loop.time() >= until_s:
            self._transport.close()
            return
        self.call_later("leave", CHECK_LEAVING_EVERY_S, lambda: self._leave(until_s, is_idle))
