"""Whether there is work for the background jobs: one read for all of them, instead of a transaction per job.

About ten jobs of a process lease work several times per second. While nothing happens, each of these transactions finds
nothing. A job asks here first. The answer of one read is good for all jobs for a moment, or until this process writes.

After some seconds without work the reads are rarer. Each then also asks about what becomes due before the next one, so
nothing that has a time is late. Only what another process writes after a quiet time is seen up to QUIET_FRESH_S late.
"""

import asyncio
import time
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerStore
from frontrow.boxoffice.ports.queries import Query
from frontrow.core.clock import US_PER_S

FRESH_S: Final = 0.1
FRESH_US: Final = round(FRESH_S * US_PER_S)
QUIET_AFTER_S: Final = 5.0  # without any work
QUIET_FRESH_S: Final = 0.5
QUIET_FRESH_US: Final = round(QUIET_FRESH_S * US_PER_S)
FACTS, HOLDS, PAYMENTS, REFUNDS, CANCELLATIONS = "facts", "holds", "payments", "refunds", "cancellations"
BUYER_MESSAGES: Final = "buyer messages"
_DELIVERIES: Final = "deliveries "


class DueWork:
    """Answers whether work of a kind may be due. Before `share` it always says yes, and a job looks for itself."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._shared = False
        self._kinds: set[str] = set()  # of deliveries that somebody asks for
        self._due: frozenset[str] = frozenset()
        self._fresh_until_s = 0.0
        self._good_until_us = 0  # later questions need a new read
        self._busy_at_s = time.monotonic()  # when there was work the last time
        self._writes = 0
        self._reading = asyncio.Lock()

    def share(self) -> None:
        """From now on jobs share their reads. An answer knows all writes of this process; those of others are seen at
        most FRESH_S late, or QUIET_FRESH_S after a quiet time."""
        self._shared = True

    def forget(self) -> None:
        """This process wrote something: the next question is answered by a new read."""
        self._writes += 1
        self._fresh_until_s = 0.0

    async def may_have(self, work: str, now_us: int) -> bool:
        if not self._shared:
            return True
        async with self._reading:
            if time.monotonic() >= self._fresh_until_s or now_us > self._good_until_us:
                await self._read(now_us)
        return work in self._due

    async def may_have_deliveries(self, kind: str, now_us: int) -> bool:
        if self._shared and kind not in self._kinds:
            self._kinds.add(kind)
            self._fresh_until_s = 0.0
        return await self.may_have(_DELIVERIES + kind, now_us)

    async def _read(self, now_us: int) -> None:
        writes, is_quiet = self._writes, time.monotonic() - self._busy_at_s >= QUIET_AFTER_S
        asked_us = now_us + (QUIET_FRESH_US if is_quiet else 0)
        kinds = [(kind,) for kind in sorted(self._kinds)] or [("",)]
        rows = await self._store.read(Query("due_work", kinds, (asked_us,)))
        self._due = frozenset(str(row[0]) for row in rows)
        if self._due:
            self._busy_at_s, is_quiet = time.monotonic(), False
        self._good_until_us = asked_us if is_quiet else now_us + FRESH_US
        fresh_s = QUIET_FRESH_S if is_quiet else FRESH_S
        self._fresh_until_s = time.monotonic() + fresh_s if writes == self._writes else 0.0
