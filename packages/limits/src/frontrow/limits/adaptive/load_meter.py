"""Measures what is in flight: latency by class, and how many there are at once, one window after the other.

The mean latency of a window is the time that requests spent in flight, divided by how many ended (Little's law). So a
request that has not ended yet already counts, and a dependency that hangs is seen before it answers. After a large
change of the limit the meter waits until the change has taken effect. Its owner has the clock and the lock.
"""

import math
from enum import IntEnum
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.limits.adaptive.controllers import LoadSample

LEAST_US: Final = 100_000  # a window is at least so long, and twice the mean latency
LONG_US: Final = 1_000_000  # a window of few requests
LONGEST_US: Final = 10_000_000
LEAST_ENDED: Final = 20
SETTLES_BELOW: Final = 0.8  # a limit that changes by more than this factor takes a while to show


class Ended(IntEnum):
    """How a request ended, for the limit."""

    WELL = 0
    DROPPED = 1  # it failed by a rule: a sign of overload
    UNFINISHED = 2  # it was cancelled: it would have taken longer than it did
    IGNORED = 3  # it says nothing about latency


class LoadMeter:
    """Counts requests as they begin and end. `left` returns a sample when a window is complete."""

    __slots__ = (
        "_counts",
        "_drops",
        "_lag_us",
        "_settles",
        "_settles_at_us",
        "_shed",
        "_spent_us",
        "_squares",
        "_start_us",
        "_took_us",
        "in_flight",
        "total",
    )

    def __init__(self, classes: int, now_us: int) -> None:
        self.in_flight = [0] * classes
        self.total = 0
        self._settles = 0.0  # the limit that in-flight requests must fall to first; 0: settled
        self._settles_at_us: int | None = None
        self._lag_us = 0
        self._begin(now_us)

    def _begin(self, now_us: int) -> None:
        """Start a window. Times count from its start, so that requests in flight need no mark of their own."""
        classes = len(self.in_flight)
        self._start_us = now_us
        self._counts, self._drops, self._shed = [0] * classes, 0, 0
        self._spent_us = [0] * classes  # less what is in flight: see `left` and `_sample`
        self._took_us, self._squares = [0] * classes, [0.0] * classes

    def entered(self, rank: int, now_us: int) -> None:
        self.in_flight[rank] += 1
        self.total += 1
        self._spent_us[rank] -= now_us - self._start_us

    def shed(self) -> None:
        """A request found no room."""
        self._shed += 1

    def left(self, rank: int, began_us: int, now_us: int, how: Ended) -> LoadSample | None:
        """A request has ended. The window's sample, if this completes it."""
        self.in_flight[rank] -= 1
        self.total -= 1
        self._spent_us[rank] += now_us - self._start_us
        if how is Ended.WELL:
            took_us = now_us - began_us
            self._counts[rank] += 1
            self._took_us[rank] += took_us
            self._squares[rank] += took_us * took_us
        elif how is Ended.DROPPED:
            self._drops += 1
        elif how is Ended.IGNORED:
            self._spent_us[rank] -= now_us - max(began_us, self._start_us)
        if self._settles:
            self._settle(now_us)
            return None
        return self._sample(now_us)

    def changed(self, before: float, after: float, sample: LoadSample, now_us: int) -> None:
        """The limit has changed, and a new window starts: at once, or when a large change has taken effect."""
        self._begin(now_us)
        if not SETTLES_BELOW <= after / before <= 1 / SETTLES_BELOW:
            self._settles, self._settles_at_us = after, None
            rows = zip(sample.counts, sample.latencies_s, strict=True)
            mean_s = sum(count * latency_s for count, latency_s in rows) / max(1, sample.ended)
            self._lag_us = min(LONGEST_US, round(mean_s * US_PER_S))

    def _settle(self, now_us: int) -> None:
        """Start the window one mean latency after as few are in flight as the limit says; or when that takes long."""
        if self._settles_at_us is None and self.total <= self._settles:
            self._settles_at_us = now_us + self._lag_us
        is_due = self._settles_at_us is not None and now_us >= self._settles_at_us
        if is_due or now_us - self._start_us >= LONGEST_US:
            self._settles = 0.0
            self._begin(now_us)

    def _sample(self, now_us: int) -> LoadSample | None:
        passed_us, ended = now_us - self._start_us, sum(self._counts)
        if passed_us < LEAST_US or not (ended or self._drops):
            return None
        spent_us = [spent + number * passed_us for spent, number in zip(self._spent_us, self.in_flight, strict=True)]
        least_us = max(LEAST_US if ended >= LEAST_ENDED else LONG_US, 2 * sum(spent_us) // max(1, ended))
        if passed_us < min(least_us, LONGEST_US):
            return None
        rows = zip(spent_us, self._counts, strict=True)
        latencies_s = tuple(max(0, spent) / max(1, count) / US_PER_S for spent, count in rows)
        return LoadSample(
            tuple(self._counts), latencies_s, sum(spent_us) / passed_us, self._shed, self._drops, self._noise(ended)
        )

    def _noise(self, ended: int) -> float:
        """The relative standard error of the mean latency."""
        variance = 0.0
        for count, took_us, squares in zip(self._counts, self._took_us, self._squares, strict=True):
            if took_us:
                variance += count * max(0.0, squares * count / (took_us * took_us) - 1)
        return math.sqrt(variance) / max(1, ended)
