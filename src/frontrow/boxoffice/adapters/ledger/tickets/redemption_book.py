"""The ledger's redemptions of add-ons. The contract is `gate.ports.RedemptionBook`."""

import functools
from collections.abc import Sequence
from typing import Final, cast

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerReader, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import SqlOrganiserBook
from frontrow.boxoffice.adapters.ledger.tickets import redemption_transactions as programs
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.gate.model.redemptions import Redeemed, Redemption

MAX_PAGE: Final = 10_000


class SqlRedemptionBook:
    """Add-ons that were handed out (`gate.ports.RedemptionBook`)."""

    def __init__(self, store: LedgerReader, line: CommitLine, reads: ReadsByKey, changes: SqlOrganiserBook) -> None:
        self._store, self._line, self._reads, self._changes = store, line, reads, changes

    async def redeem(self, redemption: Redemption, *, offline: bool = False) -> Redeemed:
        run = functools.partial(programs.redeem, redemption, offline)
        return cast(Redeemed, await self._line.submit(RunProgram(run, redemption.at_us)))

    async def undo(self, redemption_id: str, change: Change) -> bool:
        row = (redemption_id, change.event_id, change.at_us)
        return bool(await self._changes.changed(change, Query("undo_redemptions", [row])))

    async def redemptions_of(self, booking_id: str) -> list[Redemption]:
        rows = await self._reads["redemptions_of_bookings"].read(booking_id)
        return [programs.redemption_of(row) for row in rows]

    async def redemptions_of_event(self, event_id: str, after: str, limit: int) -> list[Redemption]:
        params = (event_id, after, max(1, min(limit, MAX_PAGE)))
        rows: Sequence[Sequence[object]] = await self._store.read(Query("redemptions_of_event", params=params))
        return [programs.redemption_of(row) for row in rows]

    async def redemption_mark(self, event_id: str) -> tuple[int, int, int]:
        rows = await self._store.read(Query("redemption_mark", params=(event_id,)))
        return int(rows[0][0]), int(rows[0][1]), int(rows[0][2])
