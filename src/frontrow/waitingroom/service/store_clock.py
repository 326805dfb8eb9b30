"""The store's time, by which all servers agree when a pass has expired.

The store dates passes. A server whose own clock is an hour off would refuse all of them, so it checks them by the
store's time: its monotonic clock plus an offset, which every state read from the store updates.
"""

from frontrow.core.clock import Clock, SystemClock


class StoreClock:
    """The store's time; before the first state was read, this machine's own time."""

    __slots__ = ("_local", "_offset_us")

    def __init__(self, local: Clock | None = None) -> None:
        """`local` must never jump."""
        self._local = local or SystemClock()
        self._offset_us = 0

    def follow(self, store_now_us: int) -> None:
        """Set the time to that of a state just read."""
        self._offset_us = store_now_us - self._local()

    def __call__(self) -> int:
        return self._local() + self._offset_us
