"""Responses stored under their Idempotency-Key, so that every server answers a repeated request the same way."""

from typing import Final

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row

PURGED_AT_ONCE: Final = 5_000


class KeptAnswer(msgspec.Struct, frozen=True):
    """What is stored under a key: the hash of its request and, once `status` is set, the response."""

    asked: str
    status: int = 0
    kind: str = ""
    headers: str = "{}"
    body: str = ""


class IdempotencyStore:
    """Idempotency keys and the responses stored under them."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def begin(self, name: str, asked: str, now_us: int, lease_until_us: int) -> KeptAnswer | None:
        """Claim the key. Returns None when the caller has it now, or else what is stored under it.

        Of many callers at once, one gets the key. After a claim that ended without a response, the next caller with the
        same request gets it.
        """
        rows: list[Row] = await self._line.submit(
            RunStatements((Query("begin_requests", [(name, asked, now_us, lease_until_us)]),), now_us=now_us)
        )
        if rows:
            return None
        return await self.find(name) or KeptAnswer(asked)

    async def find(self, name: str) -> KeptAnswer | None:
        """What is stored under a key; None if nothing is."""
        found: list[Row] = await self._store.read(Query("request_by_name", params=(name,)))
        return KeptAnswer(*found[0]) if found else None

    async def finish(self, name: str, answer: KeptAnswer, now_us: int) -> None:
        """Store the response."""
        row = (name, answer.status, answer.kind, answer.headers, answer.body)
        await self._line.submit(RunStatements((Query("finish_requests", [row]),), now_us=now_us))

    async def forget(self, name: str) -> None:
        """Free the key unless it has a response."""
        await self._line.submit(RunStatements((Query("forget_requests", [(name,)]),)))

    async def purge(self, before_us: int) -> None:
        """Delete keys created before `before_us`, at most `PURGED_AT_ONCE`."""
        query = Query("purge_requests", params=(before_us, PURGED_AT_ONCE))
        await self._line.submit(RunStatements((query,)))
