"""The store's time, for what all servers must agree on: when a pass has run out.

A server's own clock may be an hour off, and then it would take every pass for expired. Passes are dated by the store,
so they are checked by its time: this machine's monotonic clock, set anew by every state that is read from the store.
"""

from frontrow.core.clock import Clock, SystemClock


class StoreClock:
    """Follows the store. Until the first state was read it is this machine's own time."""

    __slots__ = ("_local", "_offset_us")

    def __init__(self, local: Clock | None = None) -> None:
        """`local` must never jump."""
        self._local = local or SystemClock()
        self._offset_us = 0

    def follow(self, store_now_us: int) -> None:
        """The store said just now that this is the time."""
        self._offset_us = store_now_us - self._local()

    def __call__(self) -> int:
        return self._local() + self._offset_us
