"""A time limit for many calls at once, with one timer for all of them.

`asyncio.timeout` sets and cancels a timer for every call, which costs more than the rest of a short call. Calls with
the same limit end in the order in which they began, so one timer for the oldest of them is enough. Otherwise it does
what `asyncio.timeout` does: the task is cancelled, and its `CancelledError` becomes a `TimeoutError` unless somebody
else cancelled it too.
"""

import asyncio
from types import TracebackType
from typing import Any, Final

RESOLUTION_S: Final = 1e-6  # a timer may fire so much early: a limit that ends within it is over


class TimeLimit:
    """`with limit.start(): ...` raises `TimeoutError` if the block takes longer than `within_s`."""

    def __init__(self, within_s: float) -> None:
        self.within_s = within_s
        self._running: dict[_Limited, None] = {}  # the oldest first
        self._loop: asyncio.AbstractEventLoop | None = None  # the one that has the timer
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> "_Limited":
        """The limit of one block, counted from now."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the blocks of a loop that has ended are over
            self._loop, self._timer = loop, None
            self._running.clear()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a time limit needs a task")
        one = _Limited(self._running, task, loop.time() + self.within_s)
        self._running[one] = None
        if self._timer is None:
            self._timer = loop.call_at(one.ends_s, self._expire, loop)
        return one

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the tasks whose time is over, and wait for the next one."""
        self._timer = None
        now_s = loop.time() + RESOLUTION_S
        for one in list(self._running):
            if one.ends_s > now_s:
                self._timer = loop.call_at(one.ends_s, self._expire, loop)
                return
            one.expire()


class _Limited:
    """One block under a limit."""

    __slots__ = ("_cancelling", "_is_expired", "_running", "_task", "ends_s")

    def __init__(self, running: "dict[_Limited, None]", task: "asyncio.Task[Any]", ends_s: float) -> None:
        self._running, self._task, self.ends_s = running, task, ends_s
        self._cancelling = task.cancelling()
        self._is_expired = False

    def expire(self) -> None:
        del self._running[self]
        self._is_expired = True
        self._task.cancel()

    def __enter__(self) -> "_Limited":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._is_expired:
            self._running.pop(self, None)
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
