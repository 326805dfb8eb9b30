"""Calls to a SQL store from one event loop. Tasks that ask at the same time share one connection and one call.

One task makes the calls, one after the other. Requests that come while a call runs go out together in the next one. A
caller that is cancelled only leaves: the call belongs to that task, so nothing is left half done on the connection.

The deadline is the store's time, as for blocking calls (`blocking_calls`). When the store misses it, all who wait are
told so, and the connection is given up. Connecting has the same deadline; the attempt goes on and serves those who come
later.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.blocking_calls import (
    MAX_BATCH,
    MAX_STARVED_S,
    MIN_TURN_S,
    RETRYABLE,
    SLICES,
    TURN_DEADLINES,
    Asker,
    ConnectionLost,
    running_time_s,
)
from frontrow.limits.stores.protocol import StoreRequest, StoreResult

MAX_WAITING = 10_000
T = TypeVar("T")


class SqlAsker(Asker, Protocol):
    """A store that also asks from an event loop."""

    async def asend(self, connection: Any, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]:
        """Decide `requests` over a connection of the running loop."""


class LoopConnection(Protocol):
    """What an event loop sends its requests over."""

    @property
    def survives_failure(self) -> bool: ...

    def give_up(self) -> None:
        """Close at once, without waiting for a call that runs."""

    async def aclose(self) -> None: ...


class Pending(NamedTuple):
    """A request in line: since when, who asks, and what."""

    since_s: float
    asker: SqlAsker
    request: StoreRequest
    future: "asyncio.Future[StoreResult]"


class LoopCalls:
    """Decides the requests of one event loop, one call at a time."""

    def __init__(self, open_connection: Callable[[], Awaitable[LoopConnection]], deadline_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._open_connection = open_connection
        self._deadline_s = deadline_s
        self._turn_s = max(MIN_TURN_S, TURN_DEADLINES * deadline_s)
        self._connection: LoopConnection | None = None
        self._connecting: asyncio.Task[LoopConnection] | None = None
        self._waiting: deque[Pending] = deque()
        self._working: asyncio.Task[None] | None = None
        self._closed = False

    def submit(self, asker: SqlAsker, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Put a request in line and return the future of its result."""
        if len(self._waiting) >= MAX_WAITING:
            raise StoreDown(f"{MAX_WAITING} requests already wait for the limit store")
        future: asyncio.Future[StoreResult] = self.loop.create_future()
        self._waiting.append(Pending(self.loop.time(), asker, request, future))
        if self._working is None:
            self._working = self.loop.create_task(self._work())
        return future

    # -- one call after the other ------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Make calls until nobody waits. Each takes a part of those who wait, so this ends when they stop coming."""
        batch: list[Pending] = []
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
                await self._decide([pending for pending in batch if self._wants_answer(pending)])
        finally:
            self._working = None
            _fail(batch, "the call was interrupted")
            if self._closed:
                self._fail_waiting("the limit store was closed")

    def _wants_answer(self, pending: Pending) -> bool:
        """Whether a caller still waits: it was not cancelled, and has not waited for too long already."""
        waited_s = self.loop.time() - pending.since_s
        if not pending.future.done() and waited_s >= max(self._turn_s, MAX_STARVED_S):
            pending.future.set_exception(StoreDown(f"the limit store was busy for {self._turn_s:g} s"))
        return not pending.future.done()

    async def _decide(self, batch: Sequence[Pending]) -> None:
        """One command for each store that asks."""
        by_asker: dict[SqlAsker, list[Pending]] = {}
        for pending in batch:
            by_asker.setdefault(pending.asker, []).append(pending)
        for asker, of_asker in by_asker.items():
            started = time.perf_counter()
            try:
                results = await self._call(asker, [pending.request for pending in of_asker])
            except ConnectionLost as lost:
                self._drop()
                asker.health.record_failure(str(lost))
                _fail(of_asker, str(lost))
                if lost.late:
                    _fail(batch, str(lost))
                    self._fail_waiting(str(lost))
                    return
            else:
                asker.health.record_success(time.perf_counter() - started)
                for pending, result in zip(of_asker, results, strict=True):
                    if not pending.future.done():
                        pending.future.set_result(result)

    async def _call(self, asker: SqlAsker, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]:
        try:
            return await self._send(asker, requests)
        except ConnectionLost as lost:
            if not lost.unanswered or any(request.op not in RETRYABLE for request in requests):
                raise
        self._drop()
        return await self._send(asker, requests)

    async def _send(self, asker: SqlAsker, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]:
        connection = self._connection or await self._connect()
        call = self.loop.create_task(_whole(asker.asend(connection, requests)))
        try:
            if not await self._ends_in_time(call):
                raise ConnectionLost("no answer within the deadline", late=True)
        finally:
            if not call.done():
                connection.give_up()
                call.cancel()
        return call.result()

    async def _ends_in_time(self, task: "asyncio.Task[Any]") -> bool:
        """Whether a task ends within the deadline. A turn of the loop that takes much too long counts as one slice."""
        slice_s, left_s = self._deadline_s / SLICES, self._deadline_s
        now_s = self.loop.time()
        gives_up_s = now_s + max(self._deadline_s, MAX_STARVED_S)
        while left_s > 0 and now_s < gives_up_s:
            if (await asyncio.wait((task,), timeout=slice_s))[0]:
                return True
            began_s, now_s = now_s, self.loop.time()
            left_s -= running_time_s(slice_s, now_s - began_s)
        return task.done()

    async def _connect(self) -> LoopConnection:
        """Wait for a connection. An attempt goes on after the deadline and serves later calls."""
        attempt = self._connecting
        if attempt is None:
            attempt = self._connecting = self.loop.create_task(_whole(self._open_connection()))
        if not await self._ends_in_time(attempt):
            raise ConnectionLost("no connection within the deadline", late=True)
        self._connecting = None
        error = attempt.exception()
        if error is not None:
            raise ConnectionLost(f"{type(error).__name__}: {error}") from None
        self._connection = attempt.result()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None and not self._connection.survives_failure:
            self._connection.give_up()
            self._connection = None

    def _fail_waiting(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        _fail(waiting, reason)

    # -- closing ---------------------------------------------------------------------------------------------------

    def close_with_the_loop(self) -> AsyncGenerator[None, None]:
        """A generator that closes the connection when the loop closes its asynchronous generators, or when dropped."""
        generator = self._until_closed()
        with suppress(StopIteration):
            generator.asend(None).send(None)  # enters it, which makes it known to the loop
        return generator

    async def _until_closed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Wait for the call that runs, then close the connection."""
        self._closed = True
        if self._working is not None:
            await asyncio.wait((self._working,), timeout=self._deadline_s)
        for task in (self._working, self._connecting):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait((task,))
        attempt, self._connecting = self._connecting, None
        connection, self._connection = self._connection, None
        if attempt is not None and not attempt.cancelled() and attempt.exception() is None:
            connection = attempt.result()
        if connection is not None:
            await connection.aclose()
        self._closed = False

    def abandon(self) -> None:
        """Close the connection of a loop that was closed before it."""
        if self._connection is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._connection.give_up()
        self._connection = None


def _fail(pending: Sequence[Pending] | deque[Pending], reason: str) -> None:
    for each in pending:
        if not each.future.done():
            each.future.set_exception(StoreDown(f"the limit store failed: {reason}"))


def _whole(work: Awaitable[T]) -> Coroutine[Any, Any, T]:
    async def run() -> T:
        return await work

    return run()
