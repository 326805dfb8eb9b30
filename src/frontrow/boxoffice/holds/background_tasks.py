"""Best-effort work that nobody waits for: audits of local refusals and releases of claims."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from frontrow.core.errors import FrontrowError


class BackgroundTasks:
    """Runs awaitables in the background and keeps a reference to each until it ends."""

    def __init__(self) -> None:
        self.running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Awaitable[Any], then: Callable[[], None] | None = None) -> None:
        """Start `work`; call `then` when it ends, whether or not it succeeded."""
        task = asyncio.ensure_future(_run_quietly(work, then))
        self.running.add(task)
        task.add_done_callback(self.running.discard)


async def _run_quietly(work: Awaitable[Any], then: Callable[[], None] | None) -> None:
    """Expiry or claim recovery repairs whatever fails here."""
    try:
        await work
    except FrontrowError:
        return
    finally:
        if then is not None:
            then()
