"""A circuit breaker in front of one Redis (F1): after three failures in a row callers no longer wait for it.

They hear at once that it is busy and to try again in ten seconds. One call per second goes through and probes it, so it
is used again within about a second of its return. Calls that were under way together and failed together count once.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from redis.exceptions import (
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
)

from frontrow.core.breaker import Breaker
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.errors import Unavailable

FAILURES: Final = 3
PROBE_EVERY_S: Final = 1.0
RETRY_AFTER_S: Final = 10.0
# It cannot be reached, or it can and may not decide: a standby, or a Cluster that lost nodes.
DOWN: Final = (ConnectionError, TimeoutError, OSError, ReadOnlyError, MasterDownError, ClusterDownError)
Reply = TypeVar("Reply")


class RedisBreaker:
    """Guards the calls to one Redis. `name` is what it keeps, as callers read it."""

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self._name = name
        self._breaker = Breaker(clock or SystemClock(), failures=FAILURES, pause_s=PROBE_EVERY_S)
        self._calls = 0
        self._counted = 0  # calls up to this one were under way at the last failure that counted

    @property
    def is_open(self) -> bool:
        return self._breaker.is_open

    async def call(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """The reply to `send()`, or `Unavailable` at once while Redis is spared. Redis' own errors pass through."""
        if not self._breaker.permits():
            raise Unavailable(f"{self._name} is busy; try again in 10 s", retry_after_s=RETRY_AFTER_S)
        self._calls += 1
        number = self._calls
        try:
            reply = await send()
        except DOWN:
            if number > self._counted:
                self._counted = self._calls
                self._breaker.failed()
            raise
        except ResponseError:
            self._breaker.succeeded()  # it answers
            raise
        self._breaker.succeeded()
        return reply
