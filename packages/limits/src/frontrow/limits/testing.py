"""Limits in your tests: switched off, or in memory on a clock that the test moves, with nothing counted.

    with limits_off(): ...

    with limits_in_memory() as limits:
        limits.advance(60)

Both switch every limiter of the process, those of an application that was imported long ago and those that are made
inside the block. pytest has them as the fixtures `rate_limits_off` and `rate_limits` (see `pytest_plugin`).
"""

import contextlib
from collections.abc import Iterator

from frontrow.core.clock import US_PER_S
from frontrow.limits.limiters_in_use import LimiterSwitch

__all__ = ["LimitsInTest", "ManualClock", "limits_in_memory", "limits_off"]


class ManualClock:
    """Give it to whatever takes a `clock`, then move it with `advance`."""

    __slots__ = ("now_us",)

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def sleep(self, seconds: float) -> None:
        """Advance the clock instead of waiting."""
        self.advance(seconds)

    def advance(self, seconds: float = 0.0, *, us: int = 0) -> int:
        """Move forward (or, with a negative number, back) and return the new time."""
        self.now_us += round(seconds * US_PER_S) + us
        return self.now_us


class LimitsInTest:
    """All limiters of the process, in the hands of a test."""

    def __init__(self, switch: LimiterSwitch, clock: ManualClock) -> None:
        self.clock = clock
        self._switch = switch

    def advance(self, seconds: float) -> None:
        """Let time pass for every limiter."""
        self.clock.advance(seconds)

    def off(self) -> None:
        """Limit nothing from now on."""
        self._switch.restart(None)

    def on(self) -> None:
        """Limit again. Nothing is counted yet."""
        self._switch.restart(self.clock)

    def reset(self) -> None:
        """Forget what was counted."""
        self.on()


@contextlib.contextmanager
def limits_off() -> Iterator[None]:
    """Nothing is limited inside this block, and no headers are written. Also a decorator of a test."""
    with LimiterSwitch(None):
        yield


@contextlib.contextmanager
def limits_in_memory(clock: ManualClock | None = None) -> Iterator[LimitsInTest]:
    """Every limiter counts in memory, on a clock that the test moves, with nothing counted at the beginning.

    Limits that the application switched off (`enabled=False`) are on. No Redis is asked.
    """
    clock = clock or ManualClock()
    with LimiterSwitch(clock) as switch:
        yield LimitsInTest(switch, clock)
