"""What is known about a shared store: how its calls went, why it is down, and whether to ask it now.

Calls are counted, not their callers: a call that carried 200 requests and failed is one failure.
"""

import time
from collections.abc import Callable

from frontrow.core.breaker import Breaker
from frontrow.core.forks import fork_safe_lock
from frontrow.core.log_line import LIMITS_SHARED_AGAIN, LIMITS_WITHOUT_STORE
from frontrow.limits.stats import Stats

REPEAT_AFTER_S = 60.0  # the same reason is logged again after this long at the earliest
MAX_REASONS = 8  # as many are remembered; a server that goes away is reported in two or three ways, in turn


class StoreHealth:
    """Counts the calls to the store named `shown`, opens and closes the breaker, and logs each reason once."""

    def __init__(
        self, shown: str, breaker: Breaker, stats: Stats, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._shown = shown
        self._breaker = breaker
        self._stats = stats
        self._monotonic_s = monotonic_s
        self._lock = fork_safe_lock()
        self._logged: dict[str, float] = {}  # the reasons logged last, and when

    def record_success(self, seconds: float) -> None:
        """Count a call that the store answered."""
        self._stats.store_calls += 1
        self._stats.store_seconds += seconds
        self._breaker.succeeded()
        if self._stats.store_error:
            self._stats.store_error = ""
            LIMITS_SHARED_AGAIN(store=self._shown)

    def record_failure(self, reason: str) -> None:
        """Count a call, or an attempt to connect, that failed."""
        self._stats.store_errors += 1
        self._stats.store_error = reason
        self._breaker.failed()
        now_s = self._monotonic_s()
        with self._lock:
            if now_s < self._logged.get(reason, -REPEAT_AFTER_S) + REPEAT_AFTER_S:
                return
            self._logged.pop(reason, None)
            if len(self._logged) >= MAX_REASONS:
                del self._logged[next(iter(self._logged))]
            self._logged[reason] = now_s
        LIMITS_WITHOUT_STORE(store=self._shown, problem=reason.rstrip("."))
