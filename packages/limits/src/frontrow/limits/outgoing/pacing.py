"""`Pacer`: lets requests out at a limiter's pace, and waits as long as a server asks for.

A request waits until the limiter allows it. If the server still answers 429, all requests of that key wait as long as
its headers say, and the request is sent again. Both have bounds: `timeout_s` for one request with all its waits,
`retries` for how often it is sent again, and `max_pause_s` for what a server may ask for.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar, Unpack

from frontrow.core.background_tasks import carry_out
from frontrow.core.clock import US_PER_S, Clock, SystemClock, steady
from frontrow.core.errors import ConfigError
from frontrow.limits.durations import check_seconds
from frontrow.limits.keys import Key
from frontrow.limits.limiter import Limiter
from frontrow.limits.options import StoreOptions
from frontrow.limits.outgoing.retry_headers import read_pause_s
from frontrow.limits.quota import Decision, OnStoreDown, Quota, Throttled

MAX_PAUSED = 10_000
TOO_MANY_REQUESTS = 429

Response = TypeVar("Response")
Limits = str | Quota | Limiter


class SendOptions(StoreOptions, total=False):
    """What the limiter of a `Pacer` takes."""

    store: Any
    on_store_down: OnStoreDown
    deadline_s: float


class PacerOptions(SendOptions, total=False):
    """What every client takes for its `Pacer`."""

    timeout_s: float
    retries: int
    max_pause_s: float
    clock: Clock | None


class Exchange(Generic[Response]):
    """How one kind of client sends a request and reads what it needs to know of a response."""

    __slots__ = ("can_repeat", "discard", "headers", "key", "send", "status")

    def __init__(
        self,
        key: Key,
        *,
        send: Callable[[], Any],
        status: Callable[[Response], int],
        headers: Callable[[Response], Mapping[str, str]],
        can_repeat: Callable[[], bool],
        discard: Callable[[Response], Any],
    ) -> None:
        self.key = key
        self.send = send
        self.status = status
        self.headers = headers
        self.can_repeat = can_repeat
        self.discard = discard


class Pacer:
    """Lets requests out at the pace of `limits`: a quota like "10/second", or a ready `Limiter`."""

    def __init__(
        self,
        limits: Limits,
        *,
        timeout_s: float = 60.0,
        retries: int = 2,
        max_pause_s: float = 60.0,
        clock: Clock | None = None,
        **limiter_options: Unpack[SendOptions],
    ) -> None:
        for name, value in (("timeout_s", timeout_s), ("max_pause_s", max_pause_s)):
            check_seconds(name, value, 0, 86_400, example=60)
        if type(retries) is not int or not 0 <= retries <= 100:
            raise ConfigError(f"retries must be a whole number from 0 to 100, not {retries!r}", param="retries")
        if isinstance(limits, Limiter) and limiter_options:
            raise ConfigError("a ready Limiter takes no further options; give them to the Limiter")
        self._timeout_us = round(timeout_s * US_PER_S)
        self._retries = retries
        self._max_pause_s = max_pause_s
        raw_clock = clock or SystemClock()
        self._sleep: Callable[[float], Any] = getattr(raw_clock, "sleep", time.sleep)
        self._asleep: Callable[[float], Any] = getattr(raw_clock, "sleep", asyncio.sleep)
        self._clock = steady(raw_clock)
        self.limiter = limits if isinstance(limits, Limiter) else Limiter(limits, clock=clock, **limiter_options)
        self._paused_until_us: dict[str, int] = {}

    def send(self, exchange: Exchange[Response]) -> Response:
        """Send the request in its turn. `Throttled` if its turn does not come within `timeout_s`."""
        deadline_us = self._clock() + self._timeout_us
        for attempt in range(self._retries + 1):
            self._await_turn(exchange.key, deadline_us)
            response: Response = exchange.send()
            if not self._must_repeat(exchange, response, attempt, deadline_us):
                return response
            exchange.discard(response)
        raise AssertionError("the last attempt is never repeated")

    async def asend(self, exchange: Exchange[Response]) -> Response:
        """`send` for asyncio."""
        deadline_us = self._clock() + self._timeout_us
        for attempt in range(self._retries + 1):
            await self._aawait_turn(exchange.key, deadline_us)
            response: Response = await exchange.send()
            if not self._must_repeat(exchange, response, attempt, deadline_us):
                return response
            await _finished(exchange.discard(response))
        raise AssertionError("the last attempt is never repeated")

    def _await_turn(self, key: Key, deadline_us: int) -> None:
        """Wait until the limiter allows a request and the server has not asked for a pause.

        A pause may begin while this request stands in line. Its unit is then given back, so that what waited does not
        leave all at once when the pause ends. Every round waits for a pause, and the deadline bounds them all.
        """
        while True:
            pause_s = self._left_of_pause_s(key, deadline_us)
            if pause_s:
                self._sleep(pause_s)
            self.limiter.acquire(key, timeout_s=self._left_s(deadline_us))
            if not self._is_paused(key):
                return
            self.limiter.refund(key)

    async def _aawait_turn(self, key: Key, deadline_us: int) -> None:
        """`_await_turn` for asyncio."""
        while True:
            pause_s = self._left_of_pause_s(key, deadline_us)
            if pause_s:
                await _finished(self._asleep(pause_s))
            await self.limiter.aacquire(key, timeout_s=self._left_s(deadline_us))
            if not self._is_paused(key):
                return
            await carry_out(self.limiter.arefund(key), "limit refunds")

    def _must_repeat(self, exchange: Exchange[Response], response: Response, attempt: int, deadline_us: int) -> bool:
        """Whether to send the request again. A 429 makes every request of this key wait, also if this one is not."""
        if exchange.status(response) != TOO_MANY_REQUESTS:
            return False
        asked_s = read_pause_s(exchange.headers(response), time.time())
        pause_s = 2.0**attempt if asked_s is None else asked_s
        self._pause(exchange.key, min(pause_s, self._max_pause_s))
        fits = pause_s <= min(self._max_pause_s, self._left_s(deadline_us))
        return fits and attempt < self._retries and exchange.can_repeat()

    def _pause(self, key: Key, pause_s: float) -> None:
        if len(self._paused_until_us) >= MAX_PAUSED:
            self._paused_until_us.pop(next(iter(self._paused_until_us)), None)
        until_us = self._clock() + round(pause_s * US_PER_S)
        self._paused_until_us[str(key)] = max(until_us, self._paused_until_us.get(str(key), 0))

    def _is_paused(self, key: Key) -> bool:
        return self._paused_until_us.get(str(key), 0) > self._clock()

    def _left_of_pause_s(self, key: Key, deadline_us: int) -> float:
        """How long the server's pause still lasts. `Throttled` if that is past the deadline."""
        until_us = self._paused_until_us.get(str(key))
        if until_us is None:
            return 0.0
        left_us = until_us - self._clock()
        if left_us <= 0:
            self._paused_until_us.pop(str(key), None)
            return 0.0
        if until_us > deadline_us:
            decision = Decision(False, "server", 0, 0, left_us, left_us)
            raise Throttled(f"{key}: the server asked for a pause of {left_us / US_PER_S:.3f} s", decision)
        return left_us / US_PER_S

    def _left_s(self, deadline_us: int) -> float:
        return max(0, deadline_us - self._clock()) / US_PER_S


async def _finished(what: Awaitable[Any] | None) -> None:
    if inspect.isawaitable(what):
        await what
