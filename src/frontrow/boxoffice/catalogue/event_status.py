"""Keeps every event's status and count of free seats true, without anybody asking (B20).

Facts say which event to look at; a look counts its seats and moves it to sold out, back on sale or completed, in one
transaction of the ledger. An event is looked at about once a second at most, however many seats change hands. Facts can
be lost, so a sweep looks at a few events at a time, those that were not counted for the longest, and at all that are
over. Any number of processes may do this.
"""

import asyncio
import contextlib
from typing import Final, Protocol

from frontrow.boxoffice.model import facts
from frontrow.boxoffice.model.event_status import SettledEvent
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

EVERY_S: Final = 1.0  # between two looks at what was heard of
SWEEP_EVERY_S: Final = 5.0
SWEPT_AT_ONCE: Final = 50
RECOUNT_AFTER_US: Final = 300 * US_PER_S
LONGEST_PAUSE_S: Final = 30.0
MAX_HEARD: Final = 100_000  # events; what is forgotten is found by the sweep
NO_SEATS: Final = (
    facts.HoldExtended,
    facts.PaymentBegun,
    facts.PaymentSteppedBack,
    facts.RefundPaid,
    facts.RefundFailed,
    facts.PriorityGranted,
    facts.EventSoldOut,
    facts.EventReopened,
    facts.EventCompleted,
)


class EventLedger(Protocol):
    """What is needed of a ledger."""

    async def settle_event(self, event_id: str, now_us: int) -> SettledEvent | None: ...

    async def ended_events(self, now_us: int, limit: int) -> list[str]: ...

    async def stale_counts(self, before_us: int, limit: int) -> list[str]: ...


class EventStatusKeeper:
    """Looks at events whose seats changed, and at those whose time has come."""

    def __init__(
        self, ledger: EventLedger, clock: Clock, *, every_s: float = EVERY_S, sweep_every_s: float = SWEEP_EVERY_S
    ) -> None:
        self._ledger, self._clock, self._every_s, self._sweep_every_s = ledger, clock, every_s, sweep_every_s
        self._heard: set[str] = set()
        self._woken = asyncio.Event()
        self.moved = 0
        self.failures = 0

    def hear(self, fact: facts.Fact) -> None:
        """A fact from the bus, in any order, once, twice or never."""
        if not isinstance(fact, NO_SEATS) and len(self._heard) < MAX_HEARD:
            self._heard.add(fact.event_id)
            self._woken.set()

    async def settle_heard(self) -> None:
        """Look at the events that facts told of."""
        heard, self._heard = self._heard, set()
        try:
            while heard:
                await self._settle(next(iter(heard)))
                heard.pop()
        finally:
            self._heard |= heard

    async def sweep(self) -> None:
        """Look at what is over, and at a few events that were not counted for long."""
        now_us = self._clock()
        due = await self._ledger.ended_events(now_us, SWEPT_AT_ONCE)
        due += await self._ledger.stale_counts(now_us - RECOUNT_AFTER_US, SWEPT_AT_ONCE)
        for event_id in dict.fromkeys(due):
            await self._settle(event_id)

    async def _settle(self, event_id: str) -> None:
        settled = await self._ledger.settle_event(event_id, self._clock())
        self.moved += settled is not None and settled.move is not None

    async def run(self) -> None:
        """Look at what is heard of, and sweep, until cancelled."""
        pause_s, swept_at_us = self._every_s, -(10**18)
        while True:
            try:
                await self.settle_heard()
                if self._clock() - swept_at_us >= self._sweep_every_s * US_PER_S:
                    await self.sweep()
                    swept_at_us = self._clock()
                pause_s = self._every_s
            except FrontrowError:  # the ledger is away: longer pauses, up to a bound
                self.failures += 1
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)  # facts of one event gather
            self._woken.clear()
            if not self._heard:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._sweep_every_s - pause_s)):
                        await self._woken.wait()
