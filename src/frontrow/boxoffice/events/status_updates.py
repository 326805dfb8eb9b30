"""Keeps the status and the count of free seats of every event up to date (B20).

Facts say which event to update. An update counts its seats and moves the event to sold out, back on sale or completed,
in one transaction of the ledger. An event is updated at most about once per second, however many seats change. Facts
can be lost, so a sweep also updates all events that are over, and a few whose last count is the oldest. Any number of
processes may do this.
"""

import asyncio
import contextlib
from typing import Final

from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.facts import model as facts
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success

EVERY_S: Final = 1.0  # between two updates of the events named by facts
SWEEP_EVERY_S: Final = 5.0
EVENTS_PER_SWEEP: Final = 50
RECOUNTS_PER_SWEEP: Final = 2  # so that a thousand events on sale cost no more than a hundred
RECOUNT_AFTER_US: Final = 300 * US_PER_S
LONGEST_PAUSE_S: Final = 30.0
MAX_CHANGED: Final = 100_000  # events; the sweep finds the others
SEATS_UNCHANGED: Final = (
    facts.HoldExtended,
    facts.PaymentBegun,
    facts.PaymentSteppedBack,
    facts.RefundPaid,
    facts.RefundFailed,
    facts.DisputeOpened,
    facts.DisputeEnded,
    facts.DisputeLost,
    facts.BankTransferAwaited,
    facts.BankTransferReminded,
    facts.PriorityGranted,
    facts.EventSoldOut,
    facts.EventReopened,
    facts.EventCompleted,
)


class EventStatusKeeper:
    """Updates events whose seats changed and events that are over."""

    def __init__(
        self,
        catalogue: Catalogue,
        clock: Clock,
        *,
        every_s: float = EVERY_S,
        sweep_every_s: float = SWEEP_EVERY_S,
    ) -> None:
        self._catalogue, self._clock, self._every_s, self._sweep_every_s = catalogue, clock, every_s, sweep_every_s
        self._changed: set[str] = set()
        self._woken = asyncio.Event()
        self.moved = 0
        self.failures = 0

    def add_fact(self, fact: facts.Fact) -> None:
        """Note the event of a fact. Facts may come in any order, more than once, or never."""
        if not isinstance(fact, SEATS_UNCHANGED) and len(self._changed) < MAX_CHANGED:
            self._changed.add(fact.event_id)
            self._woken.set()

    async def update_changed(self) -> None:
        """Update the events named by facts."""
        changed, self._changed = self._changed, set()
        try:
            while changed:
                await self._update(next(iter(changed)))
                changed.pop()
        finally:
            self._changed |= changed

    async def sweep(self) -> None:
        """Update the events that are over, and a few whose last count is the oldest."""
        now_us = self._clock()
        due = await self._catalogue.ended_events(now_us, EVENTS_PER_SWEEP)
        due += await self._catalogue.stale_counts(now_us - RECOUNT_AFTER_US, RECOUNTS_PER_SWEEP)
        for event_id in dict.fromkeys(due):
            await self._update(event_id)

    async def _update(self, event_id: str) -> None:
        change = await self._catalogue.update_event_status(event_id, self._clock())
        self.moved += change is not None and change.move is not None

    async def run(self) -> None:
        """Update events and sweep until cancelled."""
        pause_s, swept_at_us = self._every_s, -(10**18)
        while True:
            try:
                await self.update_changed()
                if self._clock() - swept_at_us >= self._sweep_every_s * US_PER_S:
                    await self.sweep()
                    swept_at_us = self._clock()
                pause_s = self._every_s
                note_success()
            except FrontrowError as error:  # the ledger is unavailable: longer pauses, up to a bound
                self.failures += 1
                note_failure(error)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)  # several facts of one event need one update
            self._woken.clear()
            if not self._changed:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._sweep_every_s - pause_s)):
                        await self._woken.wait()
