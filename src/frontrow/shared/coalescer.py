"""Coalescing: requests that many coroutines make to one store at the same time travel in one call.

The first request of a quiet moment is sent at once, so an idle system pays no delay. Requests that arrive while that
call is in flight go out together in the next one. Each caller gets its own result. A cancelled caller takes nothing
away from the others. A batch that fails fails exactly its own callers. A batch function can fail single callers by
returning an exception in their place.

Bounds: at most `max_batch` requests per call, `max_in_flight` calls at once and `max_waiting` requests in line. One
more is refused at once with `Overloaded` instead of growing the line.

A second call at the same time costs as much as the first, for half of the requests. So it begins only when
`spread_from` requests are in line, or when they have waited for `PATIENCE_S`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from frontrow.core.errors import Overloaded

PATIENCE_S: Final = 0.02  # then another call does not wait for those in flight
Request = TypeVar("Request")
Result = TypeVar("Result")


class ResultSlot(Protocol):
    """Where a result is put: a future, or an object with these methods that needs no loop. They must not raise."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, exception: Any, /) -> None: ...

    def cancel(self) -> bool: ...


def move_result(future: "asyncio.Future[Any]", slot: ResultSlot) -> None:
    """Put the result of a future that is done into a slot."""
    if future.cancelled():
        slot.cancel()
    elif (error := future.exception()) is not None:
        slot.set_exception(error)
    else:
        slot.set_result(future.result())


class Coalescer(Generic[Request, Result]):
    """Gathers single requests into calls of `send(batch)`, which returns their results in the same order."""

    def __init__(
        self,
        send: Callable[[Sequence[Request]], Awaitable[Sequence[Result | BaseException]]],
        *,
        max_batch: int = 256,
        max_in_flight: int = 1,
        max_waiting: int = 100_000,
        spread_from: int = 1,
        name: str = "store",
    ) -> None:
        if min(max_batch, max_in_flight, max_waiting, spread_from) < 1:
            raise ValueError("max_batch, max_in_flight, max_waiting and spread_from must be at least 1")
        self._send = send
        self._max_batch = max_batch
        self._max_in_flight = max_in_flight
        self._max_waiting = max_waiting
        self._spread_from = spread_from
        self._impatient: asyncio.TimerHandle | None = None
        self._name = name
        self._waiting: deque[tuple[Request, ResultSlot]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls_in_flight = 0  # not len(_tasks): a finished task leaves the set one turn of the loop later
        self.calls = 0

    def __len__(self) -> int:
        """The number of requests that wait for a call."""
        return len(self._waiting)

    def submit(self, request: Request) -> "asyncio.Future[Result]":
        """Put a request in line and return the future of its result."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.submit_into(request, future)
        return future

    def submit_into(self, request: Request, slot: ResultSlot) -> None:
        """`submit` for callers with their own slot. It is filled in the turn of the loop that brings the result."""
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded(f"{self._name}: {self._max_waiting} requests are already waiting", retry_after_s=1.0)
        self._waiting.append((request, slot))
        if self._calls_in_flight >= self._max_in_flight:
            return
        if self._calls_in_flight == 0 or len(self._waiting) >= self._spread_from:
            self._start_call()
        elif self._impatient is None:
            self._impatient = asyncio.get_running_loop().call_later(PATIENCE_S, self._start_more)

    def _start_call(self) -> None:
        self._calls_in_flight += 1
        task = asyncio.get_running_loop().create_task(self._send_batches())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _start_more(self) -> None:
        """The calls in flight take long: do not wait for them."""
        self._impatient = None
        if self._waiting and self._calls_in_flight < self._max_in_flight:
            self._start_call()

    async def ask(self, request: Request) -> Result:
        """Submit a request and wait for its result."""
        return await self.submit(request)

    async def _send_batches(self) -> None:
        """Send batch after batch until no request waits."""
        try:
            while self._waiting:
                pop = self._waiting.popleft
                batch = [pop() for _ in range(min(len(self._waiting), self._max_batch))]
                batch = [pair for pair in batch if not pair[1].done()]  # done: the caller was cancelled while in line
                requests = [request for request, _ in batch]
                slots = [slot for _, slot in batch]
                if requests:
                    self.calls += 1
                    await self._deliver(requests, slots)
        finally:
            self._calls_in_flight -= 1

    async def _deliver(self, requests: list[Request], slots: list[ResultSlot]) -> None:
        try:
            results = await self._send(requests)
            if len(results) != len(requests):
                raise RuntimeError(f"{self._name}: {len(results)} results for {len(requests)} requests")
        except asyncio.CancelledError:
            for slot in slots:
                slot.cancel()
            raise
        except Exception as error:
            for slot in slots:
                if not slot.done():
                    slot.set_exception(error)
            return
        for slot, result in zip(slots, results, strict=True):
            if slot.done():
                continue
            if isinstance(result, BaseException):
                slot.set_exception(result)
            else:
                slot.set_result(result)

    async def aclose(self) -> None:
        """Wait for the calls in flight and for all requests in line."""
        while self._tasks:  # emptied by callbacks, so wait in a way that lets the loop run them: `gather` may not
            await asyncio.wait(self._tasks)
        if self._impatient is not None:
            self._impatient.cancel()
