"""Whether there is work for the background jobs: one read for all of them, instead of a transaction per job.

About ten jobs of a process claim work several times per second. While nothing happens, each of these transactions finds
nothing. A job asks here first. The answer of one read is good for all jobs for a moment, or until this process writes.

After some seconds without work the reads are rarer. Each then also asks about what becomes due before the next one, so
nothing that has a time is late. Only what another process writes after a quiet time is seen up to QUIET_FRESH_S late.
Meanwhile the jobs sleep (`wait_while_quiet`): one task reads for all of them, and wakes them when there may be work.
"""

import asyncio
import time
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.group_commit import LedgerStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.core.background_tasks import start_loop
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

FRESH_S: Final = 0.1
FRESH_US: Final = round(FRESH_S * US_PER_S)
QUIET_AFTER_S: Final = 5.0  # without any work
QUIET_FRESH_S: Final = 0.5
QUIET_FRESH_US: Final = round(QUIET_FRESH_S * US_PER_S)
FACTS, HOLDS, PAYMENTS, REFUNDS, CANCELLATIONS = "facts", "holds", "payments", "refunds", "cancellations"
BUYER_MESSAGES, DRAWS, NOTICES = "buyer messages", "draws", "notices"
_PATIENT: Final = frozenset({NOTICES})  # they wait for a sale, perhaps for months: no reason to read often
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
        self._writes = self._writes_read = 0
        self._reading = asyncio.Lock()
        self._clock: Clock | None = None
        self._resting = 0  # jobs that sleep
        self._bell = asyncio.Event()
        self._will_ring = False
        self._watching: asyncio.Task[None] | None = None

    def share(self, clock: Clock | None = None) -> None:
        """From now on jobs share their reads. An answer knows all writes of this process; those of others are seen at
        most FRESH_S late, or QUIET_FRESH_S after a quiet time. With a clock, jobs may sleep in quiet times."""
        self._shared, self._clock = True, clock

    def forget(self) -> None:
        """This process wrote something: the next question is answered by a new read, and jobs that sleep ask soon."""
        self._writes += 1
        self._fresh_until_s = 0.0
        if self._resting and not self._will_ring:
            self._will_ring = True
            asyncio.get_running_loop().call_later(FRESH_S, self.wake)

    def wake(self) -> None:
        """Let all jobs that sleep go on."""
        self._will_ring = False
        self._bell.set()
        self._bell = asyncio.Event()

    async def wait_while_quiet(self) -> None:
        """Return at once, or after a quiet time as soon as there may be work for somebody."""
        if not self._is_quiet():
            return
        if self._watching is None or self._watching.done():
            self._watching = start_loop(self._watch, "due work")
        self._resting += 1
        try:
            await self._bell.wait()
        finally:
            self._resting -= 1

    def _is_quiet(self) -> bool:
        if self._clock is None or self._writes != self._writes_read or self._due - _PATIENT:
            return False
        return time.monotonic() - self._busy_at_s >= QUIET_AFTER_S

    async def _watch(self) -> None:
        """Read for the jobs that sleep, until none does."""
        assert self._clock is not None
        while True:
            await asyncio.sleep(QUIET_FRESH_S)
            if not self._resting:
                return
            try:
                async with self._reading:
                    await self._read(self._clock())
            except FrontrowError:  # the jobs find out by themselves, and wait as they do then
                self.wake()
            if not self._is_quiet():
                self.wake()

    async def aclose(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

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
        self._writes_read = writes
        if self._due - _PATIENT:
            self._busy_at_s, is_quiet = time.monotonic(), False
        self._good_until_us = asked_us if is_quiet else now_us + FRESH_US
        fresh_s = QUIET_FRESH_S if is_quiet else FRESH_S
        self._fresh_until_s = time.monotonic() + fresh_s if writes == self._writes else 0.0
