"""Coalescing: what many coroutines ask of one store in the same moment travels as one call.

The first question of a quiet moment is sent at once, so an idle system pays no delay. What arrives while that call is
in flight is gathered and goes out together in the next one. Each caller gets its own answer. A caller that is cancelled
takes nothing away from the others; a batch that fails fails exactly its own callers; a batch function may give single
callers an error by answering an exception in their place.

Bounds: at most `max_batch` questions a call, `max_in_flight` calls at once, `max_waiting` questions in line; one more
is refused at once with `Overloaded` instead of growing the line.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from frontrow.core.errors import Overloaded

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Slot(Protocol):
    """Where one answer is put: a future, or anything that looks like one and takes the answer without the loop's help.
    Its methods must not raise."""

    def done(self) -> bool: ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, exception: Any, /) -> None: ...

    def cancel(self) -> bool: ...


class Coalescer(Generic[Ask, Answer]):
    """Gathers single questions into calls of `send(batch)`, which answers them in the same order."""

    def __init__(
        self,
        send: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer | BaseException]]],
        *,
        max_batch: int = 256,
        max_in_flight: int = 1,
        max_waiting: int = 100_000,
        name: str = "store",
    ) -> None:
        if min(max_batch, max_in_flight, max_waiting) < 1:
            raise ValueError("max_batch, max_in_flight and max_waiting must be at least 1")
        self._send = send
        self._max_batch = max_batch
        self._max_in_flight = max_in_flight
        self._max_waiting = max_waiting
        self._name = name
        self._waiting: deque[tuple[Ask, Slot]] = deque()
        self._flights: set[asyncio.Task[None]] = set()
        self._flying = 0  # not len(_flights): a task that has finished leaves the set only one turn of the loop later
        self.calls = 0
        self.asked = 0

    def __len__(self) -> int:
        """How many questions wait for a call."""
        return len(self._waiting)

    def submit(self, ask: Ask) -> "asyncio.Future[Answer]":
        """Put a question in line and return the future of its answer."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.submit_into(ask, future)
        return future

    def submit_into(self, ask: Ask, slot: Slot) -> None:
        """`submit` for callers that bring a slot of their own: it is filled in the turn the answer comes."""
        if len(self._waiting) >= self._max_waiting:
            raise Overloaded(f"{self._name}: {self._max_waiting} requests are already waiting", retry_after_s=1.0)
        self._waiting.append((ask, slot))
        self.asked += 1
        if self._flying < self._max_in_flight:
            self._flying += 1
            flight = asyncio.get_running_loop().create_task(self._fly())
            self._flights.add(flight)
            flight.add_done_callback(self._flights.discard)

    async def ask(self, ask: Ask) -> Answer:
        """The answer to one question."""
        return await self.submit(ask)

    async def _fly(self) -> None:
        """Send batch after batch until nobody waits; bounded by the line it drains."""
        try:
            while self._waiting:
                take = self._waiting.popleft
                line = [take() for _ in range(min(len(self._waiting), self._max_batch))]
                line = [pair for pair in line if not pair[1].done()]  # done: its caller was cancelled while in line
                asks = [ask for ask, _ in line]
                futures = [future for _, future in line]
                if asks:
                    self.calls += 1
                    await self._deliver(asks, futures)
        finally:
            self._flying -= 1

    async def _deliver(self, asks: list[Ask], futures: list[Slot]) -> None:
        try:
            answers = await self._send(asks)
            if len(answers) != len(asks):
                raise RuntimeError(f"{self._name}: {len(answers)} answers to {len(asks)} questions")
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()
            raise
        except Exception as error:
            for future in futures:
                if not future.done():
                    future.set_exception(error)
            return
        for future, answer in zip(futures, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def aclose(self) -> None:
        """Wait for the calls in flight and for everybody in line."""
        while self._flights:
            await asyncio.gather(*self._flights, return_exceptions=True)
