"""An event loop on which a minute without work takes a moment: its clock jumps to the next timer.

While a thread works for the loop (SQLite), the clock stands still.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any


class FastTimeLoop(asyncio.SelectorEventLoop):
    """`time()` jumps over waits. `wakes` counts how often the loop had waited for something."""

    def __init__(self) -> None:
        self._jumped_s = 0.0
        self._in_threads = 0
        self.wakes = 0
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]
        self._select: Callable[[float | None], Any] = selector.select
        selector.select = self._wait

    def time(self) -> float:
        return time.perf_counter() + self._jumped_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        self._in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_is_done)
        return future

    def _thread_is_done(self, _: Any) -> None:
        self._in_threads -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """The clock stands still while threads end. Since Python 3.12 a runner gives them five minutes."""
        self._in_threads += 1
        try:
            await super().shutdown_default_executor(*([] if timeout is None else [timeout]))
        finally:
            self._in_threads -= 1

    def _wait(self, timeout_s: float | None = None) -> Any:
        if timeout_s is not None and timeout_s <= 0:
            return self._select(timeout_s)
        self.wakes += 1
        if timeout_s is None or self._in_threads:
            return self._select(timeout_s)
        found = self._select(0)
        if not found:
            self._jumped_s += timeout_s
        return found
