"""The platform's keys as the ledger keeps them: sealed texts by name. Whoever has only the ledger can use none."""

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, Ran, Store
from frontrow.boxoffice.adapters.ledger.programs.bookings import Program
from frontrow.boxoffice.ports.queries import Query, Row


class KeyBook:
    """Sealed keys by name. Making and changing them is noted in the audit log."""

    def __init__(self, store: Store, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def find(self, name: str) -> str | None:
        rows = await self._store.read(Query("keys_by_name", params=(name,)))
        return str(rows[0][0]) if rows else None

    async def add(self, name: str, sealed: str, now_us: int) -> str:
        """Keep it unless there is one; what is kept. Of many servers that start at once, all hear the same."""
        added = await self._write(Query("add_keys", [(name, sealed, now_us)]), "keys_made", name, now_us)
        return sealed if added else await self.find(name) or sealed

    async def swap(self, name: str, was: str, sealed: str, now_us: int) -> bool:
        """Put new ones in place of `was`, unless somebody was quicker."""
        return await self._write(Query("swap_keys", [(name, was, sealed, now_us)]), "keys_rotated", name, now_us)

    async def _write(self, query: Query, act: str, name: str, now_us: int) -> bool:
        note = f'{{"act":"{act}","name":"{name}","at_us":{now_us}}}'
        return bool(await self._line.submit(Ran(lambda facts: _only(query), now_us, note=note)))


def _only(query: Query) -> Program[list[Row]]:
    return (yield query)
