"""A cache of refusals, so that a repeated request needs no round trip to the store.

A refusal holds until the time it promised, because refusals charge nothing and the requests of others only add to what
is used. Before that time, counted from when the refused request was sent, the result is the same for the same cost. A
larger cost would have to wait longer, so the store answers it. What another process returns or changes is seen after
`MAX_AGE_US`, because then the store is asked again.
"""

from typing import Any

from frontrow.core.clock import US_PER_S, Clock
from frontrow.limits.quota import Decision
from frontrow.limits.stats import Stats

MAX_REFUSALS = 100_000
MAX_AGE_US = US_PER_S
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


class RefusalCache:
    """Refusals that still hold, by key. Bounded: the oldest is forgotten first."""

    __slots__ = ("_clock", "_stats", "by_key")

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self._clock = clock
        self._stats = stats
        self.by_key: dict[Any, tuple[int, int, Decision]] = {}

    def find(self, key: Any, cost: int) -> Decision | None:
        """The refusal that still holds for `key` at this cost, if any."""
        cached = self.by_key.get(key)
        if cached is None or cost != cached[1] or type(cost) is not int:
            return None
        left_us = cached[0] - self._clock()
        if left_us <= 0 or cached[2].retry_after_us - left_us >= MAX_AGE_US:
            self.by_key.pop(key, None)
            return None
        self._stats.denied_locally += 1
        allowed, rule, limit, remaining, reset_us, retry_us, delay_us, source = cached[2]
        reset_us -= retry_us - left_us
        return _new(Decision, (allowed, rule, limit, remaining, reset_us, left_us, delay_us, source))  # type: ignore[no-any-return]

    def remember(self, key: Any, cost: int, sent_at_us: int, decision: Decision) -> None:
        if len(self.by_key) >= MAX_REFUSALS:
            self.by_key.pop(next(iter(self.by_key)), None)
        self.by_key[key] = (sent_at_us + decision.retry_after_us, cost, decision)

    def forget(self, key: Any) -> None:
        self.by_key.pop(key, None)
