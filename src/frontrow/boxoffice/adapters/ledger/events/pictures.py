"""Pictures in the ledger, where every server finds them: by their hash, as base64."""

import base64
from typing import cast

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.events.model.pictures import KEEP_UNUSED_US


class SqlPictureBook:
    """Keeps prepared pictures. A picture never changes, because its hash is its name."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def add(self, picture_hash: str, organiser_id: str, body: bytes, now_us: int) -> None:
        """Keep a picture. A known one stays as it is; whether it is used is checked some time later."""
        row = (picture_hash, organiser_id, base64.b64encode(body).decode(), now_us, now_us + KEEP_UNUSED_US)
        await self._line.submit(RunStatements((Query("add_pictures", [row]),), now_us=now_us))

    async def find(self, picture_hash: str) -> bytes | None:
        rows = await self._store.read(Query("picture_by_hash", params=(picture_hash,)))
        return base64.b64decode(rows[0][0]) if rows else None

    async def to_check(self, now_us: int, limit: int) -> list[tuple[str, int]]:
        """Pictures that may be used no more, each with the time at which that was to be checked."""
        rows = await self._store.read(Query("pictures_to_check", params=(now_us, limit)))
        return [(str(row[0]), int(row[1])) for row in rows]

    async def drop_unused(self, picture_hash: str, check_at_us: int, now_us: int) -> bool:
        """Delete the picture if no event and no brand shows it. False if one does, or it was uploaded again."""
        row = (picture_hash, check_at_us)

        def run() -> Program[bool]:
            if (yield Query("uses_of_picture", params=(picture_hash,))):
                yield Query("keep_pictures", [row])
                return False
            return bool((yield Query("drop_pictures", [row])))

        return cast(bool, await self._line.submit(RunProgram(lambda _: run(), now_us)))
