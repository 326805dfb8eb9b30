"""The ledger's ticket transfers. The contract is in `tickets/ports/transfers.py`."""

import functools
from typing import Final, cast

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.tickets import transfer_transactions as programs
from frontrow.boxoffice.tickets.model.ticket_transfers import HandOver, Transfer

MAX_LISTED: Final = 1_000


class SqlTransferBook:
    """Tickets on their way to somebody else (`tickets.ports.transfers.TransferBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def send(self, transfer: Transfer) -> Transfer:
        run = functools.partial(programs.send, transfer)
        return cast(Transfer, await self._line.submit(RunProgram(run, transfer.created_at_us)))

    async def accept(self, ask: HandOver) -> Transfer:
        return cast(Transfer, await self._line.submit(RunProgram(functools.partial(programs.accept, ask), ask.now_us)))

    async def withdraw(self, transfer_id: str, now_us: int) -> Transfer:
        run = functools.partial(programs.withdraw, transfer_id, now_us)
        return cast(Transfer, await self._line.submit(RunProgram(run, now_us)))

    async def transfer(self, transfer_id: str) -> Transfer | None:
        rows = await self._store.read(Query("transfer_by_id", params=(transfer_id,)))
        return programs.transfer_of(rows[0]) if rows else None

    async def transfers_of(self, booking_id: str) -> list[Transfer]:
        rows = await self._store.read(Query("transfers_of_booking", params=(booking_id,)))
        return [programs.transfer_of(row) for row in rows]

    async def received(self, email: str, limit: int = 100) -> list[Transfer]:
        if not email:
            return []
        params = (email, max(1, min(limit, MAX_LISTED)))
        return [programs.transfer_of(row) for row in await self._store.read(Query("transfers_received", params=params))]
