"""Time as an integer of microseconds since 1970 (`now_us`), always passed in.

A `Clock` is a callable that returns the time. `SystemClock` follows the machine's monotonic clock, anchored to the wall
clock once, so a change of the machine's time has no effect on it. `steady` makes any other clock safe against being set
back. Tests use `frontrow.testing.clock.ManualClock`.
"""

import time
from typing import Protocol, runtime_checkable

from frontrow.core.errors import ConfigError
from frontrow.core.forks import fork_safe_lock

US_PER_S = 1_000_000


@runtime_checkable
class Clock(Protocol):
    """Returns the current time in microseconds since 1970."""

    def __call__(self) -> int: ...


class SystemClock:
    """The wall time at its creation, continued by the monotonic clock: never goes back, never jumps."""

    __slots__ = ("offset_ns",)

    def __init__(self) -> None:
        self.offset_ns = min(_anchor() for _ in range(_ANCHOR_TRIES))[1]

    def __call__(self) -> int:
        return (time.monotonic_ns() + self.offset_ns) // 1000


_ANCHOR_TRIES = 5


def _anchor() -> tuple[int, int]:
    """How long reading both clocks took, and their difference. A slow reading is wrong (the process was stopped)."""
    before_ns = time.monotonic_ns()
    wall_ns = time.time_ns()
    after_ns = time.monotonic_ns()
    return after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2


class WallClock:
    """The machine's wall clock, for timestamps that other machines and people read."""

    __slots__ = ()

    def __call__(self) -> int:
        return time.time_ns() // 1000


class SteadyClock:
    """Follows `clock` while it moves forward. When it is set back, continues from where it was at the same pace."""

    __slots__ = ("_clock", "_last_us", "_lock", "_offset_us")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = fork_safe_lock()
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
    if not callable(clock):
        raise ConfigError(
            f"clock must be a function that returns microseconds since 1970, not {clock!r}", param="clock"
        )
    return clock if isinstance(clock, SystemClock | SteadyClock) else SteadyClock(clock)
