"""Answers kept under their Idempotency-Key, in the ledger: whichever server is asked again gives the same one."""

from typing import Final

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, Store, Written
from frontrow.boxoffice.ports.queries import Query, Row

PURGED_AT_ONCE: Final = 5_000


class KeptAnswer(msgspec.Struct, frozen=True):
    """What is known of a key: the hash of its request and, once there is one (`status`), the answer."""

    asked: str
    status: int = 0
    kind: str = ""
    headers: str = "{}"
    body: str = ""


class IdempotencyStore:
    """Idempotency keys and the responses stored under them."""

    def __init__(self, store: Store, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def begin(self, name: str, asked: str, now_us: int, lease_until_us: int) -> KeptAnswer | None:
        """Take the key (None: it is yours), or what is known of it. One of many at once gets it; so does whoever comes
        after a lease that ended without an answer, with the same request."""
        rows: list[Row] = await self._line.submit(
            Written((Query("begin_requests", [(name, asked, now_us, lease_until_us)]),), now_us=now_us)
        )
        if rows:
            return None
        found: list[Row] = await self._store.read(Query("request_by_name", params=(name,)))
        return KeptAnswer(*found[0]) if found else KeptAnswer(asked)

    async def finish(self, name: str, answer: KeptAnswer, now_us: int) -> None:
        """Keep the answer."""
        row = (name, answer.status, answer.kind, answer.headers, answer.body)
        await self._line.submit(Written((Query("finish_requests", [row]),), now_us=now_us))

    async def forget(self, name: str) -> None:
        """The key is free again, unless it has its answer."""
        await self._line.submit(Written((Query("forget_requests", [(name,)]),)))

    async def purge(self, before_us: int) -> None:
        """Forget what is older."""
        query = Query("purge_requests", params=(before_us, PURGED_AT_ONCE))
        await self._line.submit(Written((query,)))
