"""The cap on calls to the payment provider that are in flight at once, over all servers.

With Redis the cap is divided into blocks, and a process holds as many as it needs. Only the first call of a block asks
Redis, so most calls cost nothing. A process that dies loses its blocks within `TTL_S`, an idle one gives them back.
When Redis does not answer, each process keeps to the cap by itself.
"""

import asyncio
from typing import Final

from frontrow.core.background_tasks import start_task
from frontrow.limits import ConcurrencyLimiter, Permit

BLOCKS: Final = 50
TTL_S: Final = 30.0
DEADLINE_S: Final = 1.0  # of Redis; a call to the provider takes longer anyway
IDLE_S: Final = 5.0
KEY: Final = "calls"


class CallCap:
    """Counts the calls in flight and refuses those over the cap."""

    def __init__(self, at_once: int, store: str = "memory://") -> None:
        self.at_once = at_once
        self.in_flight = self.most_in_flight = 0
        self._block = max(1, at_once // BLOCKS)
        self._shared: ConcurrencyLimiter | None = None
        if store != "memory://":
            blocks = at_once // self._block
            self._shared = ConcurrencyLimiter(
                blocks, name="payments", store=store, ttl_s=TTL_S, on_store_down="local", deadline_s=DEADLINE_S
            )
        self._held: list[Permit] = []
        self._taking = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._releasing: set[asyncio.Task[None]] = set()

    async def enter(self) -> bool:
        """Whether one more call may be made now. Whoever gets `True` must `leave`."""
        if self._shared is None:
            if self.in_flight >= self.at_once:
                return False
        elif self.in_flight >= self._room():
            async with self._taking:
                if self.in_flight >= self._room() and not await self._take_block(self._shared):
                    return False
                return self._count()
        return self._count()

    def _count(self) -> bool:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return True

    def leave(self) -> None:
        """A call has ended. Gives back blocks that are not needed any more."""
        self.in_flight -= 1
        if len(self._held) > 1 and self._room() - self.in_flight >= 2 * self._block:
            self._release(self._held.pop())
        if not self.in_flight and self._held and self._idle is None:
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._release_idle)

    def _room(self) -> int:
        """How many calls this process may have in flight with the blocks it holds."""
        self._held = [permit for permit in self._held if permit.is_held]
        return self._block * len(self._held)

    async def _take_block(self, shared: ConcurrencyLimiter) -> bool:
        permit = await shared.atry_acquire(KEY)
        if permit is not None:
            self._held.append(permit)
        return permit is not None

    def _release_idle(self) -> None:
        self._idle = None
        if not self.in_flight:
            held, self._held = self._held, []
            for permit in held:
                self._release(permit)

    def _release(self, permit: Permit) -> None:
        task = start_task(permit.arelease(), "payment permits")
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def aclose(self) -> None:
        """Give everything back."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        for permit in self._held:
            self._release(permit)
        self._held = []
        if self._releasing:
            await asyncio.wait(self._releasing, timeout=1.0)
        if self._shared is not None:
            await self._shared.aclose()
