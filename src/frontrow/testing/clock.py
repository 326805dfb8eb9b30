"""A clock for tests and simulations: it moves only when it is told to."""

from frontrow.core.clock import US_PER_S


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
