"""A circuit breaker. After some failures in a row, callers no longer wait for a store or provider. One probe at a time
checks whether it is back, so recovery starts with one request and not with a stampede."""

import random
from collections.abc import Callable

from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.forks import fork_safe_lock


class Breaker:
    """Closed (calls pass), open (calls are skipped) or half-open (exactly one call passes as the probe)."""

    __slots__ = ("_clock", "_failures", "_jitter", "_lock", "_open_until_us", "_pause_us", "_threshold", "closings")

    def __init__(
        self, clock: Clock, *, failures: int = 3, pause_s: float = 0.5, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._threshold = failures
        self._pause_us = round(pause_s * US_PER_S)
        self._jitter = jitter
        self._lock = fork_safe_lock()
        self._failures = 0
        self._open_until_us: int | None = None
        self.closings = 0  # how often it has closed again

    @property
    def is_open(self) -> bool:
        return self._open_until_us is not None

    @property
    def is_probe_due(self) -> bool:
        """Whether it is open and would let a probe through now."""
        until_us = self._open_until_us
        return until_us is not None and until_us <= self._clock()

    @property
    def retry_after_us(self) -> int:
        """The time until the next probe."""
        until_us = self._open_until_us
        return self._pause_us if until_us is None else max(1, until_us - self._clock())

    def permits(self) -> bool:
        """Whether a call may go to the store now. When open, the call that gets `True` is the probe."""
        if self._open_until_us is None:
            return True
        with self._lock:
            now_us = self._clock()
            if self._open_until_us is None or now_us < self._open_until_us:
                return self._open_until_us is None
            self._open_until_us = now_us + self._pause_us  # the others wait for this probe
            return True

    def succeeded(self) -> None:
        if self._failures or self._open_until_us is not None:
            with self._lock:
                self._failures = 0
                self.closings += self._open_until_us is not None
                self._open_until_us = None

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= self._threshold:
                self._open_until_us = self._clock() + round(self._pause_us * (1 + self._jitter() / 2))
