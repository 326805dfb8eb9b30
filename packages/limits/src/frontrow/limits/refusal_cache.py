"""A cache of refusals, so that a repeated request needs no round trip to the store.

A refusal holds until the time it promised, because refusals charge nothing and the requests of others only add to what
is used. Before that time, counted from when the refused request was sent, the result is the same for the same cost. A
larger cost would have to wait longer, so the store answers it. What another process returns or changes is seen after
`MAX_AGE_US`, because then the store is asked again.
"""

from typing import Any, NamedTuple

from frontrow.core.clock import US_PER_S, Clock
from frontrow.limits.quota import Decision
from frontrow.limits.stats import Stats

MAX_REFUSALS = 100_000
MAX_AGE_US = US_PER_S
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


class _Refusal(NamedTuple):
    """A refusal of `cost`, with its times as points in time."""

    cost: int
    until_us: int
    ask_again_us: int
    reset_later_us: int  # than `until_us`
    decision: Decision


class RefusalCache:
    """Refusals that still hold, by key. Bounded: the oldest is forgotten first."""

    __slots__ = ("_clock", "_stats", "by_key")

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self._clock = clock.__call__  # calling the bound method is cheaper than calling the object
        self._stats = stats
        self.by_key: dict[Any, _Refusal] = {}

    def find(self, key: Any, cost: int) -> Decision | None:
        """The refusal that still holds for `key` at this cost, if any."""
        cached = self.by_key.get(key)
        if cached is None:
            return None
        known_cost, until_us, ask_again_us, reset_later_us, decision = cached
        if cost != known_cost or type(cost) is not int:
            return None
        now_us = self._clock()
        left_us = until_us - now_us
        if left_us <= 0 or now_us >= ask_again_us:
            self.by_key.pop(key, None)
            return None
        self._stats.denied_locally += 1
        allowed, rule, limit, remaining, _, _, delay_us, source = decision
        reset_us = left_us + reset_later_us
        return _new(Decision, (allowed, rule, limit, remaining, reset_us, left_us, delay_us, source))  # type: ignore[no-any-return]

    def remember(self, key: Any, cost: int, sent_at_us: int, decision: Decision) -> None:
        if len(self.by_key) >= MAX_REFUSALS:
            self.by_key.pop(next(iter(self.by_key)), None)
        until_us = sent_at_us + decision.retry_after_us
        later_us = decision.reset_after_us - decision.retry_after_us
        self.by_key[key] = _Refusal(cost, until_us, sent_at_us + MAX_AGE_US, later_us, decision)

    def forget(self, key: Any) -> None:
        self.by_key.pop(key, None)
