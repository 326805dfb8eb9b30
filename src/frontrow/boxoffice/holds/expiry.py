"""Expiry of holds (B14): the sweeper, and the clock all servers agree on.

Correctness never waits for the sweeper: every access checks `hold_expires_at_us <= now_us` itself, so a dead hold can
be taken over at once. The sweeper only tidies up and tells the world (a fact HoldExpired per end). Any number may run.

Which time counts? The ledger's. `LedgerClock` asks it a few times at start and from then on follows this machine's
monotonic clock at that offset, so a server whose wall clock is an hour off, or is set back or forth while it runs,
ends nothing early and keeps nothing late.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from frontrow.boxoffice.model.holds import ExpiredHold
from frontrow.core.clock import Clock
from frontrow.core.errors import Overloaded, Unavailable

SAMPLES: Final = 5
BATCH: Final = 500
BATCHES_A_SWEEP: Final = 200  # then the others get a turn; what is left waits for the next sweep
EVERY_S: Final = 0.25
LONGEST_PAUSE_S: Final = 5.0


class ExpiringLedger(Protocol):
    """What expiry needs of a ledger."""

    async def time_us(self) -> int: ...

    async def expire_due(self, now_us: int, limit: int) -> list[ExpiredHold]: ...


class LedgerClock:
    """The ledger's time, told by this machine's steady clock and the offset measured at start."""

    __slots__ = ("_local", "offset_us")

    def __init__(self, local: Clock, offset_us: int) -> None:
        self._local = local
        self.offset_us = offset_us

    @classmethod
    async def measured(cls, ledger: ExpiringLedger, local: Clock) -> "LedgerClock":
        """Ask the ledger for its time, keep the answer that came quickest: it is the least wrong.

        The ledger's time lies between asking and hearing; the later bound is taken for our own time, so this clock is
        never ahead of the ledger's. `local` must never jump (SystemClock).
        """
        best: tuple[int, int] | None = None
        for _ in range(SAMPLES):
            asked_us = local()
            ledger_us = await ledger.time_us()
            heard_us = local()
            sample = (heard_us - asked_us, ledger_us - heard_us)
            best = min(best or sample, sample)
        assert best is not None
        return cls(local, best[1])

    def __call__(self) -> int:
        return self._local() + self.offset_us


Told = Callable[[Sequence[ExpiredHold]], Awaitable[None]]


async def _nobody(ended: Sequence[ExpiredHold]) -> None:
    """Nobody else wants to know: the facts in the outbox say it all."""


class Sweeper:
    """Ends dead holds in bounded batches, again and again."""

    def __init__(
        self,
        ledger: ExpiringLedger,
        clock: Clock,
        *,
        told: Told = _nobody,
        every_s: float = EVERY_S,
        batch: int = BATCH,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._told = told
        self._every_s = every_s
        self._batch = batch
        self._hint = asyncio.Event()
        self.ended = 0
        self.failures = 0

    async def sweep(self) -> int:
        """End what is due now; how many holds this worker ended. `told` hears of each batch once it is durable."""
        now_us = self._clock()
        count = 0
        for _ in range(BATCHES_A_SWEEP):
            ended = await self._ledger.expire_due(now_us, self._batch)
            if ended:
                await self._told(ended)
            count += len(ended)
            if len(ended) < self._batch:
                break
        self.ended += count
        return count

    def hint(self) -> None:
        """Something may have expired (a keyspace notification): sweep now. Nothing depends on hints coming."""
        self._hint.set()

    async def run(self) -> None:
        """Sweep until cancelled; when the ledger does not answer, wait longer each time, up to a bound."""
        pause_s = self._every_s
        while True:  # until cancelled
            try:
                await self.sweep()
                pause_s = self._every_s
            except (Unavailable, Overloaded):
                self.failures += 1
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._hint.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._hint.wait()
