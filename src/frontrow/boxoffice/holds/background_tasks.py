"""Best-effort work that nobody waits for: audits of local refusals and releases of claims."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from frontrow.core.background_tasks import start_task


class BackgroundTasks:
    """Runs awaitables in the background. Expiry or claim recovery repairs whatever fails here."""

    def __init__(self) -> None:
        self.running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Awaitable[Any], then: Callable[[], None] | None = None) -> "asyncio.Task[None]":
        """Start `work`; call `then` when it ends, whether or not it succeeded."""
        task = start_task(_run(work, then), "seat claims")
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return task


async def _run(work: Awaitable[Any], then: Callable[[], None] | None) -> None:
    try:
        await work
    finally:
        if then is not None:
            then()
