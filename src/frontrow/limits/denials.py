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


class Denials:
    """Refusals that still hold, by key; bounded, the oldest forgotten first."""

    __slots__ = ("_clock", "_known", "_stats")

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self._clock = clock
        self._stats = stats
        self._known: dict[Any, tuple[int, int, Decision]] = {}

    def __bool__(self) -> bool:
        """Whether any refusal is remembered."""
        return bool(self._known)

    def look(self, key: Any, cost: int) -> Decision | None:
        """The refusal that still holds for `key` at this cost, if any."""
        known = self._known.get(key)
        if known is None or cost < known[1]:
            return None
        left_us = known[0] - self._clock()
        if left_us <= 0:
            self._known.pop(key, None)
            return None
        self._stats.denied_locally += 1
        told = known[2]
        reset_us = max(left_us, told.reset_after_us - (told.retry_after_us - left_us))
        return told._replace(retry_after_us=left_us, reset_after_us=reset_us)

    def learn(self, key: Any, cost: int, sent_at_us: int, decision: Decision) -> None:
        if len(self._known) >= MAX_DENIALS:
            self._known.pop(next(iter(self._known)), None)
        self._known[key] = (sent_at_us + decision.retry_after_us, cost, decision)

    def forget(self, key: Any) -> None:
        self._known.pop(key, None)
