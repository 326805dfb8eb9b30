"""`acquire`: waits for the quota, first come, first served among the callers of one key in this process.

The first caller that is refused begins a line. The head of a line waits for the promised time and checks again; the
others wait for their turn. A caller that comes while others wait goes to the end. Threads and asyncio tasks stand in
the same line. Every process has lines of its own: between processes, the first to ask after the promised time wins.
Units that this process gives back (a refund, a reset, a settlement) wake the head at once.

`steps_to_acquire` decides what to do next. `acquire` does it for blocking callers, `aacquire` for asyncio.
"""

import asyncio
import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from frontrow.core.background_tasks import carry_out
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput
from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.durations import is_seconds
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision, Throttled

if TYPE_CHECKING:
    from frontrow.limits.keys import Key
    from frontrow.limits.limiter import Limiter

MAX_ATTEMPTS = 10_000  # of one acquire; each waits for the promised time, so only heavy contention gets here
MAX_WAITING = 100_000  # callers in all lines of one limiter
MAX_NAP_S = 86_400.0  # of the head of a line, which then checks again; and what every system can wait for


LineKey = tuple[tuple[int, ...], tuple[StoreKey, ...]]  # the slots and the keys of a request


class Turn(Protocol):
    """One caller in a line, to be told that its turn has come."""

    def give(self) -> bool:
        """Tell the caller. False if it is gone."""

    def clear(self) -> None:
        """Forget what was told. Whatever changes afterwards is told again."""


class ThreadTurn:
    """A blocking caller."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def give(self) -> bool:
        self._event.set()
        return True

    def clear(self) -> None:
        """Forget what was told."""
        self._event.clear()

    def wait(self, timeout_s: float | None) -> None:
        self._event.wait(timeout_s)


class TaskTurn:
    """An asyncio task."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._given: asyncio.Future[None] = self._loop.create_future()

    def give(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # its loop is closed
            return False
        return True

    def _settle(self) -> None:
        if not self._given.done():
            self._given.set_result(None)

    def clear(self) -> None:
        """Forget what was told."""
        if self._given.done():
            self._given = self._loop.create_future()

    async def wait(self, timeout_s: float | None) -> None:
        await asyncio.wait((self._given,), timeout=timeout_s)


@dataclass(slots=True)
class Line:
    """The callers that wait for one key, the head's last refusal, and when that one ends."""

    turns: "OrderedDict[Turn, None]" = field(default_factory=OrderedDict)
    refusal: Decision | None = None
    opens_at_us: int = 0

    def refused_until(self, now_us: int) -> Decision | None:
        """The last refusal, with the time that is left of it."""
        if self.refusal is None:
            return None
        return self.refusal._replace(retry_after_us=max(1, self.opens_at_us - now_us))


class WaitingLines:
    """The lines of one limiter, by key."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        begin_in_child(self._begin)
        self._begin()

    def _begin(self) -> None:
        """Begin without lines. In a forked child, those who stood in them are gone."""
        self._lines: dict[LineKey, Line] = {}
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, key: LineKey) -> bool:
        return key in self._lines

    def join(self, key: LineKey, turn: Turn) -> tuple[Line, bool] | None:
        """Go to the end of the line of `key`: the line, and whether this is its head. None: too many wait already."""
        with self._lock:
            if self._waiting >= MAX_WAITING:
                return None
            line = self._lines.setdefault(key, Line())
            line.turns[turn] = None
            self._waiting += 1
            return line, len(line.turns) == 1

    def is_head(self, key: LineKey, turn: Turn) -> bool:
        with self._lock:
            line = self._lines.get(key)
            return line is not None and next(iter(line.turns), None) is turn

    def leave(self, key: LineKey, turn: Turn) -> None:
        """Leave the line. If this was its head, the next caller has its turn."""
        with self._lock:
            line = self._lines.get(key)
            if line is None or turn not in line.turns:
                return
            was_head = next(iter(line.turns)) is turn
            self._remove(line, turn)
            while was_head and line.turns:
                head = next(iter(line.turns))
                if head.give():
                    break
                self._remove(line, head)
            if not line.turns:
                del self._lines[key]

    def wake(self, slots: Sequence[int], keys: Sequence[StoreKey]) -> None:
        """Units of these slots and keys were given back. Tell the heads of all lines that count by one of them."""
        if not self._lines:
            return
        with self._lock:
            own = (tuple(slots), tuple(keys))
            if len(slots) == 1 and own in self._lines:
                lines = [self._lines[own]]
            else:
                freed = set(zip(slots, keys, strict=True))
                lines = [line for key, line in self._lines.items() if not freed.isdisjoint(zip(*key, strict=True))]
            for line in lines:
                head = next(iter(line.turns), None)
                if head is not None:
                    head.give()

    def _remove(self, line: Line, turn: Turn) -> None:
        del line.turns[turn]
        self._waiting -= 1


class CheckAgain(NamedTuple):
    """Check the key and send the decision."""


class GiveBack(NamedTuple):
    """Refund what the last check charged and send the decision."""


class Sleep(NamedTuple):
    """Wait this long."""

    seconds: float


class Nap(NamedTuple):
    """Wait this long, or until units are given back."""

    seconds: float


class AwaitTurn(NamedTuple):
    """Wait for the turn in the line, at most this long."""

    timeout_s: float | None


Step = CheckAgain | GiveBack | Sleep | Nap | AwaitTurn
Steps = Generator[Step, Any, Decision]


def steps_to_acquire(
    lines: WaitingLines,
    key: LineKey,
    turn: Turn,
    clock: Clock,
    deadline_us: int | None,
    first: Decision | None,
) -> Steps:
    """What a caller must do, step by step, until its request is allowed. `Throttled` if that takes too long.

    `first` is the decision of a check that was made already, because nobody waited.
    """
    decision = first
    if decision is None and key not in lines:
        decision = yield CheckAgain()
    if decision is None or not decision.allowed:
        decision = yield from _wait_in_line(lines, key, turn, clock, deadline_us, decision)
    if decision.delay_us:
        left_us = None if deadline_us is None else deadline_us - clock()
        if left_us is not None and decision.delay_us > left_us:
            after = yield GiveBack()
            retry_us = decision.delay_us - max(0, left_us)
            refused = decision._replace(
                allowed=False,
                remaining=after.remaining,
                reset_after_us=after.reset_after_us,
                retry_after_us=retry_us,
                delay_us=0,
            )
            raise Throttled(f"rule {refused.rule}: its turn comes {retry_us / US_PER_S:.3f} s too late", refused)
        yield Sleep(decision.delay_us / US_PER_S)
    return decision


def _wait_in_line(
    lines: WaitingLines,
    key: LineKey,
    turn: Turn,
    clock: Clock,
    deadline_us: int | None,
    refusal: Decision | None,
) -> Steps:
    joined = lines.join(key, turn)
    if joined is None:
        decision: Decision = refusal or (yield CheckAgain())
        if decision.allowed:
            return decision
        raise Throttled(f"rule {decision.rule}: {MAX_WAITING} callers of this limiter wait already", decision)
    line, is_head = joined
    try:
        while not is_head:
            _check_deadline(line, clock(), deadline_us)
            left_us = None if deadline_us is None else max(1000, deadline_us - clock())
            yield AwaitTurn(None if left_us is None else min(left_us / US_PER_S, MAX_NAP_S))
            is_head = lines.is_head(key, turn)
        for _ in range(MAX_ATTEMPTS):
            turn.clear()  # before the check: what is given back after it is told again
            decision = yield CheckAgain()
            if decision.allowed:
                return decision
            wait_us = max(1, decision.retry_after_us)
            line.refusal, line.opens_at_us = decision, clock() + wait_us
            _check_deadline(line, clock(), deadline_us)
            yield Nap(min(wait_us / US_PER_S, MAX_NAP_S))
        raise Throttled(f"rule {decision.rule}: refused {MAX_ATTEMPTS} times in a row", decision)
    finally:
        lines.leave(key, turn)


def _check_deadline(line: Line, now_us: int, deadline_us: int | None) -> None:
    """Raise `Throttled` if the head of this line is not served before the deadline, or the deadline is over."""
    refusal = line.refused_until(now_us)
    if deadline_us is None or refusal is None:
        return
    if line.opens_at_us > deadline_us or now_us >= deadline_us:
        raise Throttled(f"rule {refusal.rule}: free again in {refusal.retry_after_s:.3f} s", refusal)


def acquire(limiter: "Limiter", key: "Key", cost: int, timeout_s: float | None) -> Decision:
    """Take every step of a blocking caller."""
    deadline_us = _deadline_us(limiter, timeout_s)
    answer = None if limiter._lines else limiter.check(key, cost)
    if answer is not None and answer.allowed and not answer.delay_us:
        return answer
    turn = ThreadTurn()
    sleep = getattr(limiter._raw_clock, "sleep", None)  # of a clock that tests move
    steps = _steps(limiter, key, cost, turn, deadline_us, answer)
    answer = None
    try:
        while True:
            match steps.send(answer):
                case CheckAgain():
                    answer = limiter.check(key, cost)
                case GiveBack():
                    answer = limiter.refund(key, cost)
                case Sleep(seconds):
                    (sleep or time.sleep)(seconds)
                case Nap(seconds):
                    (sleep or turn.wait)(seconds)
                case AwaitTurn(seconds_left):
                    turn.wait(seconds_left)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def aacquire(limiter: "Limiter", key: "Key", cost: int, timeout_s: float | None) -> Decision:
    """Take every step of an asyncio caller."""
    deadline_us = _deadline_us(limiter, timeout_s)
    answer = None if limiter._lines else await limiter.acheck(key, cost)
    if answer is not None and answer.allowed and not answer.delay_us:
        return answer
    turn = TaskTurn()
    sleep: Callable[[float], Awaitable[None] | None] | None = getattr(limiter._raw_clock, "sleep", None)
    steps = _steps(limiter, key, cost, turn, deadline_us, answer)
    answer = None
    try:
        while True:
            match steps.send(answer):
                case CheckAgain():
                    answer = await limiter.acheck(key, cost)
                case GiveBack():
                    answer = await carry_out(limiter.arefund(key, cost), "limit refunds")
                case Sleep(seconds):
                    if inspect.isawaitable(waiting := (sleep or asyncio.sleep)(seconds)):
                        await waiting
                case Nap(seconds):
                    if inspect.isawaitable(waiting := (sleep or turn.wait)(seconds)):
                        await waiting
                case AwaitTurn(seconds_left):
                    await turn.wait(seconds_left)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        steps.close()


def _deadline_us(limiter: "Limiter", timeout_s: float | None) -> int | None:
    if timeout_s is None or check_timeout(timeout_s) == inf:
        return None
    return limiter._clock() + round(timeout_s * US_PER_S)


def check_timeout(timeout_s: float) -> float:
    """Return `timeout_s` if one can wait for so long, else raise."""
    if not is_seconds(timeout_s) or timeout_s < 0:
        message = f"timeout_s must be 0 or more seconds, like 2.5, or None to wait for ever; not {timeout_s!r:.80}"
        raise InvalidInput(message, param="timeout_s")
    return timeout_s


def _steps(
    limiter: "Limiter", key: "Key", cost: int, turn: Turn, deadline_us: int | None, first: Decision | None
) -> Steps:
    request = limiter._request(key, cost, None, 0)
    line = (request.slots, request.keys)
    return steps_to_acquire(limiter._lines, line, turn, limiter._clock, deadline_us, first)
