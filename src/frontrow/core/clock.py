"""Time, as an integer of microseconds since 1970 (`now_us`), taken from outside.

A `Clock` is anything that, called, answers the time. `SystemClock` follows the machine's monotonic clock, anchored to
the wall clock once, so somebody setting the machine's time neither grants nor burns anything. `ManualClock` is moved by
tests and simulations. `steady` makes any other clock safe against being set back.
"""

import threading
import time
from typing import Protocol, runtime_checkable

US_PER_S = 1_000_000


@runtime_checkable
class Clock(Protocol):
    """Answers the current time in microseconds since 1970."""

    def __call__(self) -> int: ...


class SystemClock:
    """Wall time at the moment it was made, then the monotonic clock: never goes back, never jumps."""

    __slots__ = ("offset_ns",)

    def __init__(self) -> None:
        self.offset_ns = min(_anchor() for _ in range(_ANCHOR_TRIES))[1]

    def __call__(self) -> int:
        return (time.monotonic_ns() + self.offset_ns) // 1000


_ANCHOR_TRIES = 5


def _anchor() -> tuple[int, int]:
    """How long reading both clocks took, and what lies between them: a process stopped in between would be wrong."""
    before_ns = time.monotonic_ns()
    wall_ns = time.time_ns()
    after_ns = time.monotonic_ns()
    return after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2


class WallClock:
    """The machine's wall clock as it is; for time stamps that other machines and people read."""

    __slots__ = ()

    def __call__(self) -> int:
        return time.time_ns() // 1000


class ManualClock:
    """A clock that moves only when told to."""

    __slots__ = ("now_us",)

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def sleep(self, seconds: float) -> None:
        """Waiting, in a world where only this clock moves."""
        self.advance(seconds)

    def advance(self, seconds: float = 0.0, *, us: int = 0) -> int:
        """Move forward (or, with a negative number, back) and return the new time."""
        self.now_us += round(seconds * US_PER_S) + us
        return self.now_us


class SteadyClock:
    """Follows `clock` while it moves forward; when it is set back, goes on from where it was at the same pace."""

    __slots__ = ("_clock", "_last_us", "_lock", "_offset_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_us = clock()
        self._offset_us = 0

    def __call__(self) -> int:
        with self._lock:
            raw_us = self._clock() + self._offset_us
            if raw_us < self._last_us:
                self._offset_us += self._last_us - raw_us
                return self._last_us
            self._last_us = raw_us
            return raw_us


def steady(clock: Clock) -> Clock:
    """`clock` itself if it can never go back, else a `SteadyClock` around it."""
    return clock if isinstance(clock, SystemClock | SteadyClock) else SteadyClock(clock)
