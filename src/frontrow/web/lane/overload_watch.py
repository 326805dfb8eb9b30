"""What the connections of one server share: the overload gate, waiting replies with their deadlines, route counts.

`protocol` asks here for every request whether it is admitted. A shed request is answered by ready-made bytes before any
work. `run` measures the delay of the event loop and ends replies that are past their deadline.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from frontrow.core.errors import Overloaded
from frontrow.web.endpoints.messages import EndpointResponse, problem_answer
from frontrow.web.lane.pending_replies import Handler, PendingReply
from frontrow.web.observability.traffic import Traffic
from frontrow.web.server.overflow_page import ForPeople
from frontrow.web.server.overload import OverloadGate, Rank, rank_of

HOT: Final = "hot"
SLOW_NS: Final = 2_000_000_000
TICK_S: Final = 0.01
IDLE_TICK_S: Final = 0.05  # while no request comes
QUIET_TICK_S, QUIET_TICKS = 0.2, 100  # when none came for so many ticks
INTERVAL_S: Final = 0.1
LEAST_LOOKS: Final = 2  # per interval: one long pause is no queue
SWEEP_S: Final = 0.5
LONGER: Final = 2  # times Retry-After once whole classes are shed: refusing costs half as much then
WHOLE_CLASSES: Final = 2.0
MAX_ROUTES: Final = 20_000


class LateAnswer(Overloaded):
    """A response did not come within its deadline."""

    code = "deadline"


class Refusal:
    """The ready-made response to a shed request."""

    __slots__ = ("error", "response", "retry_after_s")

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        self.error = Overloaded("too much is asked of this server at once; try again", retry_after_s=retry_after_s)
        self.response = problem_answer(self.error)


def make_deadline_response() -> EndpointResponse:
    return problem_answer(LateAnswer("no answer in time; ask again with the same Idempotency-Key", retry_after_s=1))


class HotRoute:
    """A hot route: its class of importance, its counts and its name."""

    __slots__ = ("counts", "name", "rank")

    def __init__(self, rank: Rank, name: str, traffic: Traffic) -> None:
        self.rank, self.name, self.counts = rank, name, traffic.of(name, HOT)


class Watch:
    """Watches the event loop and the connections of one server."""

    def __init__(
        self,
        gate: OverloadGate,
        traffic: Traffic,
        is_proxy: Callable[[str], bool],
        for_people: ForPeople | None = None,
    ) -> None:
        self.gate, self.traffic, self.is_proxy, self.for_people = gate, traffic, is_proxy, for_people
        self.routes: dict[tuple[bytes, bytes], HotRoute] = {}  # by method and address
        self._shapes: dict[Any, HotRoute] = {}
        self.waiting: dict[PendingReply, float] = {}
        self.paying: dict[PendingReply, float] = {}  # they have a later deadline; they wait for the provider
        self.shed_route = HotRoute(Rank.BROWSE, "shed", traffic)
        self.deadline_response = make_deadline_response()
        soon_s = gate.settings.retry_after_s
        self._refusals = (Refusal(soon_s), Refusal(soon_s * LONGER))

    def refusal(self) -> Refusal:
        """What a shed caller hears now. The pause is longer while whole classes are shed."""
        return self._refusals[self.gate.pressure >= WHOLE_CLASSES]

    def add_route(self, key: tuple[bytes, bytes], handler: Handler) -> HotRoute:
        """Remember a hot route: each exact address, and each shape once for all its addresses."""
        shape = getattr(handler, "shape", None)
        found = self._shapes.get(shape) if shape is not None else None
        if found is not None:
            return found
        if len(self.routes) > MAX_ROUTES:
            self.routes.clear()
        inner = shape or handler
        name = getattr(getattr(inner, "func", inner), "__name__", "hot")
        found = HotRoute(rank_of(*key), name if name != "handle" else "room_stream", self.traffic)
        if shape is not None:
            self._shapes[shape] = found
        elif b"?" not in key[1]:
            self.routes[key] = found
        return found

    async def run(self) -> None:
        """Until cancelled: measure the loop's delay, close intervals, end replies that are late."""
        closed_s = swept_s = time.monotonic()
        looks, arrived = 0, self.gate.arrived
        tick_s, seen, idle_ticks = TICK_S, self.gate.arrived, 0
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(tick_s)
            now_s = time.monotonic()
            self.gate.lag.saw(max(0.0, now_s - before_s - tick_s))
            idle_ticks = idle_ticks + 1 if self.gate.arrived == seen else 0
            seen = self.gate.arrived
            tick_s = TICK_S if not idle_ticks else IDLE_TICK_S if idle_ticks < QUIET_TICKS else QUIET_TICK_S
            looks += 1
            if now_s - closed_s >= INTERVAL_S and looks >= LEAST_LOOKS:
                self.gate.close_interval((self.gate.arrived - arrived) / looks)
                closed_s, looks, arrived = now_s, 0, self.gate.arrived
            if now_s - swept_s >= SWEEP_S:
                self.sweep(now_s)
                swept_s = now_s

    def sweep(self, now_s: float) -> None:
        """End waiting replies past their deadline."""
        settings = self.gate.settings
        for line, within_s in ((self.waiting, settings.deadline_s), (self.paying, settings.pay_deadline_s)):
            for waiting, began_s in list(line.items()):
                if began_s > now_s - within_s:
                    break  # in the order of their beginning
                waiting.expire()
