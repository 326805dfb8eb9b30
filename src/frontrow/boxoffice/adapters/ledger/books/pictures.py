"""Pictures in the ledger, where every server finds them: by their hash, as base64."""

import base64

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunStatements
from frontrow.boxoffice.ports.queries import Query


class SqlPictureBook:
    """Keeps prepared pictures. A picture never changes, because its hash is its name."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def add(self, picture_hash: str, organiser_id: str, body: bytes, now_us: int) -> None:
        """Keep a picture. A known one stays as it is."""
        row = (picture_hash, organiser_id, base64.b64encode(body).decode(), now_us)
        await self._line.submit(RunStatements((Query("add_pictures", [row]),), now_us=now_us))

    async def find(self, picture_hash: str) -> bytes | None:
        rows = await self._store.read(Query("picture_by_hash", params=(picture_hash,)))
        return base64.b64decode(rows[0][0]) if rows else None
