"""Writes audit rows in the background, so that a join does not wait for a commit.

Rows gathered for a tenth of a second share one transaction. Rows that could not be written are kept up to a bound and
retried.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from frontrow.core.background_tasks import start_task
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.ports import Audit, AuditRow

log = logging.getLogger("frontrow.room")

MAX_FAILED_BATCHES = 10_000
GATHER_S = 0.1  # a commit costs about a millisecond of CPU, so batches of this time share one


class AuditWriter:
    """Gathers rows per event and appends them to the audit."""

    def __init__(self, audit: Audit, counts: Counter[str]) -> None:
        self._audit = audit
        self._counts = counts
        self._gathered: dict[str, list[AuditRow]] = {}
        self._failed: list[tuple[str, Sequence[AuditRow]]] = []
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_failed_rows(self) -> bool:
        """Whether rows are waiting to be retried."""
        return bool(self._failed)

    def append_later(self, event: str, rows: Sequence[AuditRow]) -> None:
        """Write these rows soon, without making the caller wait."""
        self._gathered.setdefault(event, []).extend(rows)
        if not self._tasks:
            task = start_task(self._run(), "room audit")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def flush(self) -> None:
        """Write all rows that are not in the audit yet."""
        await self._write_gathered()
        failed, self._failed = self._failed, []
        for number, (event, rows) in enumerate(failed, start=1):
            if not await self._append(event, rows):  # still down: the others need not be tried
                self._failed += failed[number:]
                break

    async def aclose(self) -> None:
        """Write the remaining rows and stop."""
        await self.flush()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while self._gathered:
            await asyncio.sleep(GATHER_S)
            await self._write_gathered()

    async def _write_gathered(self) -> None:
        """Write the rows gathered so far. Rows that arrive meanwhile are written by the next transaction."""
        async with self._writing:
            gathered, self._gathered = self._gathered, {}
            for event, rows in gathered.items():
                await self._append(event, rows)

    async def _append(self, event: str, rows: Sequence[AuditRow]) -> bool:
        """Whether the rows were written."""
        try:
            await self._audit.append(event, rows)
            return True
        except FrontrowError as error:
            self._counts["audit_errors"] += 1
            log.warning("audit rows not written yet", extra={"event": event, "problem": str(error)})
            if len(self._failed) < MAX_FAILED_BATCHES:
                self._failed.append((event, rows))
            return False
