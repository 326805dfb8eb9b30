"""Refusals that still hold, answered without asking the store again.

A refusal holds until the moment it promised, because refusals charge nothing and others' requests only add to what is
used. Asked again before that moment, counted from when the refused question was sent, the answer is the same and needs
no round trip. (A refund made by another process is seen only after that moment.)
"""

from typing import Any

from frontrow.core.clock import Clock
from frontrow.limits.quota import Decision
from frontrow.limits.stats import Stats

MAX_DENIALS = 100_000
_new: Any = tuple.__new__  # half the cost of calling the class, in what must cost next to nothing


class Denials:
    """Refusals that still hold, by key; bounded, the oldest forgotten first."""

    __slots__ = ("_clock", "_stats", "known")

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self._clock = clock
        self._stats = stats
        self.known: dict[Any, tuple[int, int, Decision]] = {}

    def look(self, key: Any, cost: int) -> Decision | None:
        """The refusal that still holds for `key` at this cost, if any."""
        known = self.known.get(key)
        if known is None or cost < known[1]:
            return None
        left_us = known[0] - self._clock()
        if left_us <= 0:
            self.known.pop(key, None)
            return None
        self._stats.denied_locally += 1
        allowed, rule, limit, remaining, reset_us, retry_us, delay_us, source = known[2]
        reset_us -= retry_us - left_us
        return _new(Decision, (allowed, rule, limit, remaining, reset_us, left_us, delay_us, source))  # type: ignore[no-any-return]

    def learn(self, key: Any, cost: int, sent_at_us: int, decision: Decision) -> None:
        if len(self.known) >= MAX_DENIALS:
            self.known.pop(next(iter(self.known)), None)
        self.known[key] = (sent_at_us + decision.retry_after_us, cost, decision)

    def forget(self, key: Any) -> None:
        self.known.pop(key, None)
