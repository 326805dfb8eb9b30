"""What the connections of one server share: the overload gate, the refusals it gives, and replies with a deadline.

`run` measures the delay of the event loop for the gate and expires replies that are past their deadline.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

from frontrow.core.errors import Overloaded
from frontrow.core.log_line import LIMITS_SHEDDING, LIMITS_SHEDDING_OVER
from frontrow.web.guard.overload import OverloadGate
from frontrow.web.guard.route_metrics import Traffic
from frontrow.web.http.messages import EndpointResponse, problem_answer
from frontrow.web.http.overflow_page import ForPeople

HOT: Final = "hot"
SLOW_NS: Final = 2_000_000_000
TICK_S: Final = 0.01
IDLE_TICK_S: Final = 0.05  # while no request comes
QUIET_TICK_S, QUIET_TICKS = 0.2, 100  # when none came for so many ticks
INTERVAL_S: Final = 0.1
LEAST_LOOKS: Final = 2  # per interval: one long pause is no queue
SWEEP_S: Final = 0.5
GATE: Final = "overload gate"
CALM_S: Final = 5.0
LONGER: Final = 2  # times Retry-After once whole classes are shed: refusing costs half as much then
WHOLE_CLASSES: Final = 2.0


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


class WaitingReply(Protocol):
    """A reply that is being made and has a deadline."""

    def expire(self) -> None:
        """Give up waiting."""


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
        self.waiting: dict[WaitingReply, float] = {}
        self.paying: dict[WaitingReply, float] = {}  # they have a later deadline; they wait for the provider
        self.deadline_response = make_deadline_response()
        soon_s = gate.settings.retry_after_s
        self._sheds = False  # as the log says
        self._calm_since_s = 0.0
        self._refusals = (Refusal(soon_s), Refusal(soon_s * LONGER))

    def refusal(self) -> Refusal:
        """What a shed caller hears now. The pause is longer while whole classes are shed."""
        return self._refusals[self.gate.pressure >= WHOLE_CLASSES]

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
                self.note_shedding(now_s)
            if now_s - swept_s >= SWEEP_S:
                self.sweep(now_s)
                swept_s = now_s

    def note_shedding(self, now_s: float) -> None:
        """Log when the gate begins to shed, and when it has shed nobody for a while."""
        if self.gate.pressure > 0:
            self._calm_since_s = now_s
            if not self._sheds:
                self._sheds = True
                LIMITS_SHEDDING(limiter=GATE, at_once=self.gate.settings.max_in_flight)
        elif self._sheds and now_s - self._calm_since_s > CALM_S:
            self._sheds = False
            LIMITS_SHEDDING_OVER(limiter=GATE, at_once=self.gate.settings.max_in_flight)

    def sweep(self, now_s: float) -> None:
        """End waiting replies past their deadline."""
        settings = self.gate.settings
        for line, within_s in ((self.waiting, settings.deadline_s), (self.paying, settings.pay_deadline_s)):
            for waiting, began_s in list(line.items()):
                if began_s > now_s - within_s:
                    break  # in the order of their beginning
                waiting.expire()
