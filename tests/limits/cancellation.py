"""Cancels a coroutine at its k-th await, for every k, and stores whose requests and answers take time to travel."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from frontrow.limits.stores.permits import PermitAnswer, PermitRequest, PermitStore
from frontrow.limits.stores.protocol import Store, StoreRequest, StoreResult

MAX_AWAITS = 200  # of one attempt


class CancelledAt:
    """Awaits `work`, and cancels the task that does when `work` waits for the k-th time."""

    def __init__(self, work: Awaitable[Any], k: int) -> None:
        self._work = work
        self._k = k
        self.awaits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        answer: Any = None
        raised: BaseException | None = None
        while True:
            try:
                waited_for = steps.send(answer) if raised is None else steps.throw(raised)
            except StopIteration as done:
                return done.value
            self.awaits += 1
            if self.awaits == self._k:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()  # takes effect while the task waits, as a client that hangs up does
            try:
                answer, raised = (yield waited_for), None
            except BaseException as error:
                raised = error


async def cancel_at_every_await(
    attempt: Callable[[], Awaitable[Any]],
) -> AsyncIterator[int]:
    """Make the attempt with a cancellation at its 1st await, its 2nd and so on, until it ends without one.

    Yields k after each, when everything that was started has ended, so that the caller can look at what is left.
    """
    for k in range(1, MAX_AWAITS):
        cancelled = CancelledAt(attempt(), k)

        async def run(cancelled: CancelledAt = cancelled) -> None:
            await cancelled

        [outcome] = await asyncio.gather(asyncio.create_task(run()), return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome
        await others_ended()
        yield k
        if cancelled.awaits < k:
            return
    raise AssertionError(f"more than {MAX_AWAITS} awaits")


async def others_ended() -> None:
    """Until all other tasks have ended."""
    for _ in range(MAX_AWAITS):
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if not others:
            return
        await asyncio.wait(others, timeout=5)


class SlowStore:
    """A store of this process behind a network: a request is one turn of the loop away, and so is its answer."""

    tag_parts = None

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def decide(self, request: StoreRequest) -> StoreResult:
        return self._inner.decide(request)

    async def adecide(self, request: StoreRequest) -> StoreResult:
        await asyncio.sleep(0)
        result = self._inner.decide(request)
        await asyncio.sleep(0)
        return result

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""


class SlowPermits:
    """`SlowStore` for permits."""

    def __init__(self, inner: PermitStore) -> None:
        self._inner = inner

    def apply(self, request: PermitRequest) -> PermitAnswer:
        return self._inner.apply(request)

    async def aapply(self, request: PermitRequest) -> PermitAnswer:
        await asyncio.sleep(0)
        answer = self._inner.apply(request)
        await asyncio.sleep(0)
        return answer

    def close(self) -> None:
        """Nothing to close."""

    async def aclose(self) -> None:
        """Nothing to close."""
