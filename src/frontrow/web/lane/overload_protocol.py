"""The gate at the socket: the hot lane's protocol with admission and deadlines.

Every request of the server, whichever door answers it, passes `on_headers_complete` here. A shed one is answered by
ready-made bytes before any work, and its connection is not read again before its `Retry-After` (unless it is a proxy's,
which carries other people too): that is what keeps refusing cheap when ten times too much is asked.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

from frontrow.core.errors import Overloaded
from frontrow.web.endpoints.messages import Answer, Arriving, Ask, Later, problem_answer
from frontrow.web.lane.pending_replies import (
    Finish,
    Handler,
    Pending,
    Reply,
    RequestId,
    Routes,
    Takeover,
    result_of,
    shapes_of,
)
from frontrow.web.lane.protocol import REQUEST_WITHIN_S, HotProtocol
from frontrow.web.observability.traffic import Traffic
from frontrow.web.server.overflow_page import ForPeople
from frontrow.web.server.overload import Gate, Rank, rank_of
from frontrow.web.server.request_middleware import request_id

HOT: Final = "hot"
SLOW_NS: Final = 2_000_000_000
TICK_S: Final = 0.01
INTERVAL_S: Final = 0.1
LEAST_LOOKS: Final = 2  # in an interval: one long pause is no queue
SWEEP_S: Final = 0.5
LONGER: Final = 2  # times Retry-After once so many classes are shed whole: refusing costs half as much then
WHOLE_CLASSES: Final = 2.0
HARD: Final = 1.1  # beyond so many times the cap a connection is not even told why

log = logging.getLogger("frontrow.web")


class LateAnswer(Overloaded):
    """An answer did not come within its deadline."""

    code = "deadline"


class Refusal:
    """What the shed hear, ready made."""

    __slots__ = ("answer", "error", "retry_after_s")

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        self.error = Overloaded("too much is asked of this server at once; try again", retry_after_s=retry_after_s)
        self.answer = problem_answer(self.error)


def late_answer() -> Answer:
    return problem_answer(LateAnswer("no answer in time; ask again with the same Idempotency-Key", retry_after_s=1))


class _Known:
    """What is known of a hot route: its class, its counts and its name."""

    __slots__ = ("counts", "name", "rank")

    def __init__(self, rank: Rank, name: str, traffic: Traffic) -> None:
        self.rank, self.name, self.counts = rank, name, traffic.of(name, HOT)


class GuardedProtocol(HotProtocol):
    """See the module; make one for a server by `guarded_lane`."""

    watch: ClassVar["Watch"]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        watch = self.watch
        self._began_ns = 0
        self._known: _Known | None = None
        self._extra = False
        gate = watch.gate
        gate.connections = len(self.connections)
        if gate.connections > gate.settings.max_connections:
            gate.turned_away += 1
            self._extra = True
            if gate.connections > gate.settings.max_connections * HARD:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.watch.gate.connections = len(self.connections)

    def on_headers_complete(self) -> None:
        watch = self.watch
        key = (self.parser.get_method(), self.url)
        known = watch.known.get(key)
        self._began_ns = time.perf_counter_ns()
        watch.gate.arrived += 1
        if watch.gate.active or self._extra:
            rank = known.rank if known is not None else rank_of(*key)
            if (self._extra and rank is not Rank.EXEMPT) or not watch.gate.admits(rank):
                self._shed()
                return
        super().on_headers_complete()
        if self._handler is not None:
            self._known = known or watch.learn(key, self._handler)

    def _shed(self) -> None:
        self._in_head = False
        self._known = self.watch.refused
        if self.cycle is not None and not self.cycle.response_complete:
            self._pass_on()  # pipelined behind another answer: the other door keeps the order
            return
        self._handler = self._refuse
        self._body = []
        self._body_bytes = 0

    def _refuse(self, ask: Ask) -> Answer:
        refusal = self.watch.refusal()
        if not self._extra and not self.watch.is_proxy(ask.peer):
            self.flow.pause_reading()
            self.loop.call_later(refusal.retry_after_s, self._read_again)
        people, method = self.watch.for_people, self.parser.get_method().decode("latin-1")
        page = people(method, ask, refusal.error) if people is not None else None
        return page or refusal.answer

    def _read_again(self) -> None:
        if self.parser is not None and not self._gone and not self.transport.is_closing():
            self.flow.resume_reading()

    def _write(self, answer: Answer, keep_alive: bool) -> None:
        super()._write(answer, keep_alive and not self._extra)
        known = self._known
        if known is not None:
            self._known = None
            ns = time.perf_counter_ns() - self._began_ns
            known.counts.took(ns, answer.status)
            if known.rank is Rank.PAY and (answer.status >= 500 or ns > SLOW_NS):  # as the other door says it
                about = {"route": known.name, "status": answer.status, "took_ms": ns // 1_000_000}
                log.warning("slow or failed request", extra=about | {"request_id": self.known_id()})

    def _hand_over(self, takeover: Takeover) -> None:
        known = self._known
        if known is not None:
            known.counts.took(time.perf_counter_ns() - self._began_ns, 200)
        super()._hand_over(takeover)

    def _let_arrive(self, reply: Arriving, keep_alive: bool) -> None:
        self._wait_for(reply, keep_alive)  # with a deadline, like everything that takes a round trip

    def _wait_for(self, reply: "Later | Awaitable[Reply]", keep_alive: bool) -> None:
        """As the lane's, counted as in flight and with a deadline."""
        finish: Finish = result_of
        if isinstance(reply, Later):
            finish, future = reply.finish, reply.future
        else:
            mark = request_id.set(self.known_id())  # for the lines its task logs
            future = asyncio.ensure_future(reply)
            request_id.reset(mark)
        known, watch = self._known, self.watch
        line = watch.paying if known is not None and known.rank >= Rank.PAY else watch.waiting
        pending = _Watched(self, keep_alive, finish, watch, line, future)
        self.cycle = pending  # type: ignore[assignment]
        future.add_done_callback(pending.done)


class _Watched(Pending):
    """An answer on its way: whichever comes first, the answer or its deadline."""

    __slots__ = ("_began_s", "_future", "_line", "_watch")

    def __init__(
        self,
        protocol: HotProtocol,
        keep_alive: bool,
        finish: Finish,
        watch: "Watch",
        line: "dict[_Watched, float]",
        future: "asyncio.Future[Any]",
    ) -> None:
        super().__init__(protocol, keep_alive, finish)
        self._watch, self._line, self._future, self._began_s = watch, line, future, time.monotonic()
        line[self] = self._began_s
        watch.gate.began()

    def done(self, future: "asyncio.Future[Any]") -> None:
        if self._over():
            super().done(future)
        elif not future.cancelled():
            future.exception()  # too late for anybody: looked at, so that nothing is reported as forgotten

    def expire(self) -> None:
        """Give up waiting; the work is cancelled where it belongs to nobody else."""
        if not self._over():
            return
        self._watch.gate.late += 1
        if isinstance(self._future, asyncio.Task):
            self._future.cancel()
        self.response_complete = True
        if not self.disconnected:
            self._protocol.answer_late(late_answer(), self.keep_alive)

    def _over(self) -> bool:
        """Whether nobody ended it before."""
        watch = self._watch
        if self._line.pop(self, None) is None:
            return False
        watch.gate.ended()
        if self._line is watch.waiting:
            watch.gate.wait.saw(time.monotonic() - self._began_s)
        return True


class Watch:
    """Looks at the loop and the connections of one server, and keeps what its protocols share."""

    def __init__(
        self,
        gate: Gate,
        traffic: Traffic,
        is_proxy: Callable[[str], bool],
        for_people: ForPeople | None = None,
    ) -> None:
        self.gate, self.traffic, self.is_proxy, self.for_people = gate, traffic, is_proxy, for_people
        self.known: dict[tuple[bytes, bytes], _Known] = {}
        self._shapes: dict[Any, _Known] = {}
        self.waiting: dict[_Watched, float] = {}
        self.paying: dict[_Watched, float] = {}  # they have a later deadline, and their waits are the provider's
        self.refused = _Known(Rank.BROWSE, "shed", traffic)
        soon_s = gate.settings.retry_after_s
        self._refusals = (Refusal(soon_s), Refusal(soon_s * LONGER))

    def refusal(self) -> Refusal:
        """What a shed caller hears now: to come again later still when whole classes are shed."""
        return self._refusals[self.gate.pressure >= WHOLE_CLASSES]

    def learn(self, key: tuple[bytes, bytes], handler: Handler) -> _Known:
        """Remember a hot route; as many are remembered as the lane's table has, a shape once for all its addresses."""
        shape = getattr(handler, "shape", None)
        found = self._shapes.get(shape) if shape is not None else None
        if found is not None:
            return found
        if len(self.known) > 20_000:
            self.known.clear()
        inner = shape or handler
        name = getattr(getattr(inner, "func", inner), "__name__", "hot")
        found = _Known(rank_of(*key), name if name != "handle" else "room_stream", self.traffic)
        if shape is not None:
            self._shapes[shape] = found
        elif b"?" not in key[1]:
            self.known[key] = found
        return found

    async def run(self) -> None:
        """Until cancelled: measure the loop's delay, close intervals, end what is late or slow."""
        closed_s = swept_s = time.monotonic()
        looks, arrived = 0, self.gate.arrived
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(TICK_S)
            now_s = time.monotonic()
            self.gate.lag.saw(max(0.0, now_s - before_s - TICK_S))
            looks += 1
            if now_s - closed_s >= INTERVAL_S and looks >= LEAST_LOOKS:
                self.gate.close_interval((self.gate.arrived - arrived) / looks)
                closed_s, looks, arrived = now_s, 0, self.gate.arrived
            if now_s - swept_s >= SWEEP_S:
                self.sweep(now_s)
                swept_s = now_s

    def sweep(self, now_s: float) -> None:
        """End waiting answers past their deadline."""
        settings = self.gate.settings
        for line, within_s in ((self.waiting, settings.deadline_s), (self.paying, settings.pay_deadline_s)):
            for waiting, began_s in list(line.items()):
                if began_s > now_s - within_s:
                    break  # in the order of their beginning
                waiting.expire()


def guarded_lane(
    routes: Routes, request_id: RequestId | None, watch: Watch, *, request_within_s: float = REQUEST_WITHIN_S
) -> type[GuardedProtocol]:
    """The protocol class of a server with this watch; without routes it only guards the app behind it."""
    made = staticmethod(request_id) if request_id is not None else None
    about = {
        "routes": routes, "shapes": shapes_of(routes), "request_id": made, "watch": watch,
        "request_within_s": request_within_s,
    }  # fmt: skip
    return type("GuardedLane", (GuardedProtocol,), about)
