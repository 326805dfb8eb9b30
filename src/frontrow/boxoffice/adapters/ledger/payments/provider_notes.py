"""What providers said of objects that cannot be read there, note by note. See ProviderNotes."""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.payments.ports import ProviderNote

END_US: Final = 2**62
MADE: Final = "made"


class SqlProviderNotes:
    """Notes in the ledger. They are only added."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def keep(self, provider: str, note: ProviderNote) -> bool:
        row = (provider, note.ref, note.name, note.account, note.their_ref, note.body, note.at_us)
        added: list[Row] = await self._line.submit(RunStatements((Query("add_provider_notes", [row]),)))
        return bool(added)

    async def notes_of(self, provider: str, refs: Sequence[str]) -> dict[str, list[ProviderNote]]:
        found: dict[str, list[ProviderNote]] = {ref: [] for ref in refs}
        if refs:
            for row in await self._store.read(Query("provider_notes_of", [(provider, ref) for ref in found])):
                found[row[0]].append(ProviderNote(*row))
        return found

    async def ref_of(self, provider: str, their_ref: str) -> str:
        rows = await self._store.read(Query("provider_note_by_their_ref", params=(provider, their_ref)))
        return str(rows[0][0]) if rows else ""

    async def newest(self, provider: str, account: str, since_us: int, after: str, limit: int) -> list[str]:
        before_us = END_US
        if after:
            notes = (await self.notes_of(provider, [after]))[after]
            before_us = next((one.at_us for one in notes if one.name == MADE), END_US)
        given = (provider, account, since_us, before_us, after, limit)
        return [str(row[0]) for row in await self._store.read(Query("provider_objects", params=given))]
