"""Expiry of holds (B14): the sweeper, and the clock that all servers agree on.

Correctness never waits for the sweeper: every access checks `hold_expires_at_us <= now_us` itself, so the seats of an
expired hold can be taken at once. The sweeper only cleans up and publishes a HoldExpired fact per hold. Any number of
sweepers may run.

The ledger's time counts. `LedgerClock` reads it a few times at startup and then follows this machine's monotonic clock
with the measured offset. A server whose wall clock is an hour off, or is changed while it runs, therefore ends no hold
early and keeps none too long.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import ExpiredHold
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.core.clock import US_PER_S, Clock, WallClock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.log_lines import HOLD_EXPIRED_WHILE_PAYING
from frontrow.shared.quiet_time import QuietTime

SAMPLES: Final = 5
BATCH: Final = 500
BATCHES_PER_SWEEP: Final = 200  # the rest waits for the next sweep
EVERY_S: Final = 0.25
LONGEST_PAUSE_S: Final = 5.0


class LedgerClock:
    """The ledger's time: this machine's monotonic clock plus the offset measured at startup."""

    __slots__ = ("_local", "offset_us")

    def __init__(self, local: Clock, offset_us: int) -> None:
        self._local = local
        self.offset_us = offset_us

    @classmethod
    async def measure(cls, ledger: Ledger, local: Clock) -> "LedgerClock":
        """Read the ledger's time several times and use the fastest answer, which is the most accurate.

        The ledger read its clock between our request and its answer. The offset assumes the moment of the answer, so
        this clock is never ahead of the ledger's. `local` must never jump (SystemClock).
        """
        best: tuple[int, int] | None = None
        for _ in range(SAMPLES):
            sent_us = local()
            ledger_us = await ledger.time_us()
            received_us = local()
            sample = (received_us - sent_us, ledger_us - received_us)
            best = min(best or sample, sample)
        assert best is not None
        return cls(local, best[1])

    def __call__(self) -> int:
        return self._local() + self.offset_us

    def wall_ahead_s(self) -> float:
        """How far this machine's wall clock is ahead of the ledger now; negative if it is behind."""
        return (WallClock()() - self()) / US_PER_S


OnExpired = Callable[[Sequence[ExpiredHold]], Awaitable[None]]


async def ignore_expired(ended: Sequence[ExpiredHold]) -> None:
    """Do nothing: the facts in the outbox are enough."""


class Sweeper:
    """Ends expired holds in bounded batches, repeatedly."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        on_expired: OnExpired = ignore_expired,
        every_s: float = EVERY_S,
        batch: int = BATCH,
        quiet: QuietTime | None = None,
    ) -> None:
        self._ledger, self._quiet = ledger, quiet
        self._clock = clock
        self._on_expired = on_expired
        self._every_s = every_s
        self._batch = batch
        self.ended = 0
        self.failures = 0

    async def sweep(self) -> int:
        """End the holds that are due and return how many. `on_expired` is called with each batch once it is durable."""
        now_us = self._clock()
        count = 0
        for _ in range(BATCHES_PER_SWEEP):
            ended = await self._ledger.expire_due(now_us, self._batch)
            for hold in ended:
                if hold.was is BookingState.PAYING:
                    HOLD_EXPIRED_WHILE_PAYING(booking_id=hold.booking_id, event_id=hold.event_id, seats=len(hold.seats))
            if ended:
                await self._on_expired(ended)
            count += len(ended)
            if len(ended) < self._batch:
                break
        self.ended += count
        return count

    async def run(self) -> None:
        """Sweep until cancelled. While the ledger does not answer, wait longer each time, up to a bound."""
        pause_s = self._every_s
        while True:  # until cancelled
            try:
                await self.sweep()
                note_success()
                pause_s = self._every_s
            except (Unavailable, Overloaded) as error:
                self.failures += 1
                note_failure(error)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)
            if self._quiet is not None:
                await self._quiet.wait_while_quiet()
