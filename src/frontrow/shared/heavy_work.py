"""Work that takes the CPU for long (drawing PDFs, reading plans), kept away from the requests of everybody else.

A thread is not enough: such work holds the interpreter's lock, so every request waits for it. A server therefore has
`processes` of its own for it. They are started when first needed, and killed when a piece of work is not done by its
deadline or nobody waits for it any more. Each may use `memory_mb` of memory: work that needs more is refused, and the
server stays as it is. Without processes (commands) a thread does the work, one piece at a time.
Whoever is more urgent goes first, and at most `max_waiting` wait.
"""

import asyncio
import contextlib
import functools
import heapq
import itertools
import logging
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from enum import IntEnum
from typing import Any, Final, TypeVar

from frontrow.core.errors import InvalidInput, Overloaded, Unavailable

Result = TypeVar("Result")
MAX_WAITING: Final = 64
RETRY_AFTER_S: Final = 3.0
DEFAULT_MEMORY_MB: Final = 2_048  # a plan of a million seats takes 650 MB from CSV, a gigabyte from pretix

log = logging.getLogger("frontrow.heavy_work")


class TooLarge(InvalidInput):
    """The work needs more memory than its process may use."""

    code = "too_large"


class Urgency(IntEnum):
    """Who goes first: somebody who waits for a page, then an organiser's import, then mails."""

    SOMEBODY_WAITS = 0
    IMPORT = 1
    MAIL = 2


class HeavyWork:
    """Runs functions of modules (they are sent to another process by name) one at a time per process."""

    def __init__(
        self, processes: int = 0, *, max_waiting: int = MAX_WAITING, memory_mb: int = DEFAULT_MEMORY_MB
    ) -> None:
        self._processes, self._max_waiting, self._memory_mb = processes, max_waiting, memory_mb
        self._idle: list[Executor | None] = [None] * max(1, processes)  # None: not started yet
        self._waiting: list[tuple[Urgency, int, asyncio.Future[Executor | None]]] = []
        self._numbers = itertools.count()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def run(self, urgency: Urgency, within_s: float, function: Callable[..., Result], *arguments: Any) -> Result:
        """The function's result. Raises `Overloaded` when too many wait, `Unavailable` when it takes too long, and
        `TooLarge` when it needs more memory than a process may use."""
        async with self._worker(urgency) as place:
            executor = place[0] = place[0] or self._start()  # None: the loop's own threads
            work = asyncio.get_running_loop().run_in_executor(executor, functools.partial(function, *arguments))
            try:
                async with asyncio.timeout(within_s):
                    return await work
            except BrokenProcessPool:
                place[0] = None
                raise Unavailable("the work was interrupted; try again", retry_after_s=RETRY_AFTER_S) from None
            except MemoryError:
                place[0] = None
                self._end(executor)
                log.warning("%s needed more than %d MB", function.__name__, self._memory_mb)
                raise TooLarge(f"this needs more than {self._memory_mb:,} MB of memory; give less") from None
            except (TimeoutError, asyncio.CancelledError) as error:
                place[0] = None
                self._end_late(executor)
                if isinstance(error, TimeoutError):
                    raise Unavailable(f"this took longer than {within_s:g} s", retry_after_s=RETRY_AFTER_S) from None
                raise

    @contextlib.asynccontextmanager
    async def _worker(self, urgency: Urgency) -> AsyncIterator[list[Executor | None]]:
        """A worker for this block alone, in a list so that the block can replace it."""
        place = [await self._take(urgency)]
        try:
            yield place
        finally:
            self._give_back(place[0])

    async def _take(self, urgency: Urgency) -> Executor | None:
        if self._idle:
            return self._idle.pop()
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded(f"{self._max_waiting} others wait for the same; try again", retry_after_s=RETRY_AFTER_S)
        turn: asyncio.Future[Executor | None] = asyncio.get_running_loop().create_future()
        entry = (urgency, next(self._numbers), turn)
        heapq.heappush(self._waiting, entry)
        try:
            return await turn
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)
            elif not turn.cancelled():
                self._give_back(turn.result())
            raise

    def _give_back(self, executor: Executor | None) -> None:
        while self._waiting:
            turn = heapq.heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(executor)
                return
        self._idle.append(executor)

    def _start(self) -> Executor | None:
        if not self._processes:
            return None
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(
            1, mp_context=spawn, initializer=_begin_process, initargs=(os.getpid(), self._memory_mb)
        )

    def _end_late(self, executor: Executor | None) -> None:
        """Kill the process of work that is late. A thread cannot be killed; it ends by itself."""
        log.warning("heavy work was given up")
        self._end(executor)

    def _end(self, executor: Executor | None) -> None:
        if executor is not None:
            for process in list((getattr(executor, "_processes", None) or {}).values()):
                process.kill()
            executor.shutdown(wait=False, cancel_futures=True)

    async def aclose(self) -> None:
        """End the idle workers; one that works is ended by the cancellation of whoever waits for it."""
        idle, self._idle = self._idle, []
        for executor in idle:
            if executor is not None:
                await asyncio.to_thread(executor.shutdown)


def _begin_process(parent: int, memory_mb: int) -> None:
    """In the new process: leave Ctrl-C to the parent, give way to requests, bound the memory, end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    _limit_memory(memory_mb * 1_048_576)
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_end_with_the_parent, daemon=True, name="parent").start()


def _limit_memory(most_bytes: int) -> None:
    """From here on the process gets a `MemoryError` instead of more. Counted is what it writes to, not what it maps."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or most_bytes < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))


def _end_with_the_parent() -> None:
    found = multiprocessing.parent_process()
    if found is not None:
        multiprocessing.connection.wait([found.sentinel])
        os._exit(1)
