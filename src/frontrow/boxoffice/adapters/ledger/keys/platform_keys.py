"""The platform's signing keys in the ledger: sealed texts by name. Without the sealing key they are useless."""

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program


class KeyBook:
    """Sealed keys by name. Making and changing them is noted in the audit log."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def find(self, name: str) -> str | None:
        rows = await self._store.read(Query("keys_by_name", params=(name,)))
        return str(rows[0][0]) if rows else None

    async def add(self, name: str, sealed: str, now_us: int) -> str:
        """Store the key unless there is one. Returns what is stored: all servers that start at once get the same."""
        added = await self._write(Query("add_keys", [(name, sealed, now_us)]), "keys_made", name, now_us)
        return sealed if added else await self.find(name) or sealed

    async def swap(self, name: str, was: str, sealed: str, now_us: int) -> bool:
        """Replace `was`. False when another server was faster."""
        return await self._write(Query("swap_keys", [(name, was, sealed, now_us)]), "keys_rotated", name, now_us)

    async def _write(self, query: Query, act: str, name: str, now_us: int) -> bool:
        note = f'{{"act":"{act}","name":"{name}","at_us":{now_us}}}'
        return bool(await self._line.submit(RunProgram(lambda facts: _only(query), now_us, note=note)))


def _only(query: Query) -> Program[list[Row]]:
    return (yield query)
