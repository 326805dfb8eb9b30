"""An event loop in virtual time that a seed repeats exactly: no threads, no sockets, no wall clock.

Every callback belongs to a process (`PROCESS`, a context variable that tasks inherit). Within a process callbacks run
in the order in which they were scheduled, as asyncio promises. Which process runs next is drawn from the seed. Time
moves only when nobody has anything to do: it jumps to the next timer. A process that crashed runs no more callbacks:
its tasks stop at the await at which they are, and no `finally` of theirs runs. Callbacks that only some versions of
Python schedule are run at once and are no steps, so that a seed has the same trace on all of them.
"""

import asyncio
import contextlib
import gc
import hashlib
import heapq
import logging
import os
import random
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context, ContextVar
from typing import Any, Final, TypeVar

PROCESS: Final[ContextVar[str]] = ContextVar("simulated_process", default="world")
BEGIN_US: Final = 1_700_000_000_000_000  # the wall time at which every simulation begins
MAX_STEPS: Final = 2_000_000  # callbacks of one seed
HASHED_AT_ONCE: Final = 512  # lines
BOOKKEEPING: Final = "_clear_awaited_by_callback"  # of `asyncio.shield`, since Python 3.14
Answer = TypeVar("Answer")


class Stuck(AssertionError):
    """Nobody has anything to do and no timer is set, or a seed never ends."""


class Trace:
    """A running hash of everything that happens. `lines` keeps the text too, to compare two runs."""

    def __init__(self, *, keep: bool = False) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._new: list[str] = []
        self.lines: list[str] | None = [] if keep else None

    def add(self, line: str) -> None:
        self._new.append(line)
        if len(self._new) >= HASHED_AT_ONCE:
            self._take()

    def _take(self) -> None:
        if self._new:
            self._hash.update("\n".join((*self._new, "")).encode())
            if self.lines is not None:
                self.lines += self._new
            self._new.clear()

    def digest(self) -> str:
        self._take()
        return self._hash.hexdigest()


class SeededLoop(asyncio.BaseEventLoop):
    """See the module."""

    def __init__(self, seed: int, trace: Trace) -> None:
        super().__init__()
        self._now_us = 0
        self._order = random.Random(f"schedule {seed}").random
        self._queues: dict[str, deque[asyncio.Handle]] = {}
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._numbers = 0
        self.dead: set[str] = set()
        self.trace = trace
        self.steps = 0

    # time

    def time(self) -> float:
        return self._now_us / 1e6

    @property
    def now_us(self) -> int:
        """Virtual microseconds since the simulation began."""
        return self._now_us

    # what asyncio calls

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        if getattr(callback, "__name__", "") == BOOKKEEPING:
            handle._run()
        else:
            self._enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def create_task(self, coro: Any, **named: Any) -> Any:
        return asyncio.Task(coro, loop=self, **named)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:  # type: ignore[override]
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._numbers += 1
        heapq.heappush(self._timers, (round(when * 1e6), self._numbers, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_us / 1e6 + delay, callback, *args, context=context)

    def pause(self, delay: float) -> "asyncio.Future[None]":
        """Done after this many seconds: `asyncio.sleep` at half its price."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        self.call_later(delay, set_result, future, None)
        return future

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when their time comes."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """What a thread would do is done now. The answer comes later, as it would."""
        future = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self.call_soon(set_error, future, error)
        else:
            self.call_soon(set_result, future, result)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    def _process_events(self, event_list: Any) -> None:
        """There are no sockets."""

    # one step

    def crash(self, process: str) -> None:
        """End a process: none of its callbacks runs any more."""
        self.dead.add(process)
        self._queues.pop(process, None)

    def _enqueue(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(PROCESS, "world")  # type: ignore[attr-defined]
        if process in self.dead:
            return
        queue = self._queues.get(process)
        if queue is None:
            queue = self._queues[process] = deque()
        queue.append(handle)

    def _run_once(self) -> None:
        """Run callbacks until the loop is stopped."""
        timers, queues = self._timers, self._queues
        while True:  # bounded by MAX_STEPS
            while timers and (timers[0][0] <= self._now_us or timers[0][2]._cancelled):
                timer = heapq.heappop(timers)[2]
                if not timer._cancelled:
                    self._enqueue(timer)
            if queues:
                self._step(queues)
            elif timers and not self._stopping:  # type: ignore[attr-defined]
                self._now_us = timers[0][0]
            elif not self._stopping:  # type: ignore[attr-defined]
                raise Stuck("nobody has anything to do, and nobody waits for a moment to come")
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _step(self, queues: dict[str, deque[asyncio.Handle]]) -> None:
        """Run the next callback of the process that the seed draws."""
        if len(queues) > 1:
            names = [*queues]
            process = names[int(self._order() * len(names))]
        else:
            (process,) = queues
        queue = queues[process]
        handle = queue.popleft()
        if not queue:
            del queues[process]
        if handle._cancelled:
            return
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Stuck(f"{MAX_STEPS:,} callbacks, and no end")
        self.trace.add(f"{self._now_us} {process}")
        handle._run()


def set_result(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def set_error(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


@contextlib.contextmanager
def _seeded_machine(loop: SeededLoop, seed: int) -> Iterator[None]:
    """Until the block ends, this process' clocks are virtual and its randomness is the seed's."""
    stream = random.Random(f"machine {seed}")

    def now_ns() -> int:
        return loop.now_us * 1_000

    fakes: list[tuple[Any, str, Any]] = [
        (os, "urandom", stream.randbytes),
        (random, "_urandom", stream.randbytes),
        (time, "time", lambda: (BEGIN_US + loop.now_us) / 1e6),
        (time, "time_ns", lambda: BEGIN_US * 1_000 + now_ns()),
        (time, "monotonic", lambda: loop.now_us / 1e6),
        (time, "monotonic_ns", now_ns),
        (time, "perf_counter", lambda: loop.now_us / 1e6),
        (time, "perf_counter_ns", now_ns),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in fakes]
    drawn, heard, collects = random.getstate(), sys.unraisablehook, gc.isenabled()
    gc.disable()  # what the collector finalizes, it finalizes at no fixed moment
    gc.freeze()  # nor does it look at what was there before, when the seed has ended
    random.seed(f"module {seed}")
    for owner, name, fake in fakes:
        setattr(owner, name, fake)
    sys.unraisablehook = lambda _: None  # tasks of crashed processes are dropped where they stand
    try:
        yield
    finally:
        for owner, name, real in before:
            setattr(owner, name, real)
        random.setstate(drawn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines that a crashed process never began
            loop.close()
            gc.collect()
        gc.unfreeze()
        sys.unraisablehook = heard
        if collects:
            gc.enable()


def run_seeded(seed: int, main: Callable[[SeededLoop], Coroutine[Any, Any, Answer]], trace: Trace) -> Answer:
    """Run `main` to its end on a loop of this seed."""
    logging.disable(logging.CRITICAL)
    loop = SeededLoop(seed, trace)
    loop.set_exception_handler(lambda *_: None)  # tasks of crashed processes
    with _seeded_machine(loop, seed):
        try:
            return loop.run_until_complete(main(loop))
        finally:
            logging.disable(logging.NOTSET)
