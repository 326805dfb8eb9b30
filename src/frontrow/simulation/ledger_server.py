"""The ledger behind the simulated network: one SQLite file that every process writes to, and a replica that lags.

What PostgreSQL does to its clients is modelled where the client can see it: a transaction that clashed or violated a
unique index was rolled back and is run again, whole or in halves; a connection breaks before or after the commit; a
failover breaks all of them at once, and its standby has every commit that was answered.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from frontrow.boxoffice.adapters.ledger.engine.group_commit import Operation
from frontrow.boxoffice.adapters.ledger.engine.postgres import MAX_CLASHES
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.replica import Replica, ReplicaAway
from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.core.errors import Unavailable
from frontrow.simulation.loop import BEGIN_US, SeededLoop
from frontrow.simulation.network import LEDGER, REPLICA, Lost, Network

RECONNECTS: Final = 3  # tries of the ledger's client, as PostgresStore makes them while an outage is short
# Columns that servers of schema 40 do not know. What they insert has none of them.
UNKNOWN_BEFORE: Final = "origin = NULL, visit_id = NULL, sold_by = NULL, payment_begun_at_us = NULL"


class StoreRefusal(StrEnum):
    """Why a transaction was rolled back."""

    NONE = ""
    CLASH = "serialization failure"
    UNIQUE = "unique violation"
    LOCKED = "lock timeout"


class RolledBack(Exception):
    """The transaction left nothing behind."""

    def __init__(self, why: StoreRefusal) -> None:
        super().__init__(why.value)
        self.why = why


class SharedLedger:
    """The database server: the real statements on a real SQLite file. `after_commit` is called after each batch."""

    def __init__(self, store: SqliteStore, loop: SeededLoop) -> None:
        self.store, self._loop = store, loop
        self.after_commit: Callable[[], None] = lambda: None
        self.refuse: Callable[[], StoreRefusal] = lambda: StoreRefusal.NONE
        self.commits: list[int] = []  # when each was made
        self.beat_us = 0

    async def write(self, operations: Sequence[Operation], *, as_schema_40: bool = False) -> list[Any]:
        why = self.refuse()
        if why:
            raise RolledBack(why)
        before = self._begun() if as_schema_40 else {}
        answers = self.store._write(operations)
        if as_schema_40:
            self._forget_new_columns(before)
        self.commits.append(self._loop.now_us)
        self.after_commit()
        return answers

    async def read(self, query: Query) -> list[Row]:
        return self.store._read(query)

    async def beat(self) -> int:
        """Renew the heartbeat that replicas show; the time."""
        self.beat_us = BEGIN_US + self._loop.now_us
        return self.beat_us

    def _begun(self) -> dict[str, int | None]:
        return dict(self.store._connection().execute("SELECT id, payment_begun_at_us FROM bookings").fetchall())

    def _forget_new_columns(self, before: dict[str, int | None]) -> None:
        """Leave in the new columns what a server that does not know them leaves there."""
        connection = self.store._connection()
        for booking_id, begun_us in self._begun().items():
            if booking_id not in before:
                connection.execute(f"UPDATE bookings SET {UNKNOWN_BEFORE} WHERE id = ?", (booking_id,))
            elif begun_us != before[booking_id]:
                connection.execute(
                    "UPDATE bookings SET payment_begun_at_us = ? WHERE id = ?", (before[booking_id], booking_id)
                )


class RemoteLedgerStore:
    """The ledger's store as one process reaches it. A batch whose connection was lost, or that was rolled back, is run
    again as PostgreSQL's adapter does, and after some tries every caller is told that the ledger does not answer."""

    writers: Final = 2

    def __init__(self, network: Network, store: SharedLedger, loop: SeededLoop, *, as_schema_40: bool = False) -> None:
        self._network, self._store, self._loop, self._as_schema_40 = network, store, loop, as_schema_40

    async def write(self, operations: Sequence[Operation]) -> list[Any]:
        what = "+".join(sorted({type(one).__name__ for one in operations}))
        lost = clashes = 0
        while True:  # bounded by RECONNECTS and MAX_CLASHES
            try:
                return list(await self._network.call(LEDGER, what, lambda: self._commit(operations)))
            except Lost:
                lost += 1
                if lost >= RECONNECTS:
                    return [Unavailable("the ledger does not answer", retry_after_s=5.0)] * len(operations)
                await self._loop.pause(0.1 * lost)
            except RolledBack as error:
                clashes += 1
                if error.why is StoreRefusal.LOCKED or clashes > MAX_CLASHES:
                    return [Unavailable("others are changing the same bookings", retry_after_s=0.5)] * len(operations)
                if error.why is StoreRefusal.UNIQUE and len(operations) > 1:
                    middle = len(operations) // 2
                    return await self.write(operations[:middle]) + await self.write(operations[middle:])

    async def _commit(self, operations: Sequence[Operation]) -> list[Any]:
        return await self._store.write(operations, as_schema_40=self._as_schema_40)

    async def read(self, query: Query) -> list[Row]:
        rows: list[Row] = await self._again(query.name, lambda: self._store.read(query))
        return rows

    async def beat(self, _within_us: int) -> int:
        there_us: int = await self._again("beat", self._store.beat)
        return there_us

    async def _again(self, what: str, act: Callable[[], Any]) -> Any:
        for attempt in range(RECONNECTS):
            try:
                return await self._network.call(LEDGER, what, act)
            except Lost:
                await self._loop.pause(0.1 * (attempt + 1))
        raise Unavailable("the ledger does not answer", retry_after_s=5.0)

    async def time_us(self) -> int:
        return BEGIN_US + self._loop.now_us

    async def aclose(self) -> None:
        """The connection of a process ends with it."""


class ReplicaServer:
    """A copy of the ledger as it was at its last turn: its rows, and the heartbeat that was committed by then."""

    def __init__(self, primary: SharedLedger, path: Any) -> None:
        self._primary, self._path = primary, path
        self.copy = sqlite3.connect(":memory:", isolation_level=None)
        self.beat_us = self.commits = 0

    def follow(self) -> None:
        """Take over everything that the primary has committed."""
        if self.commits == len(self._primary.commits) > 0:
            self.beat_us = self._primary.beat_us
            return
        self.copy.close()
        self.copy = sqlite3.connect(":memory:", isolation_level=None)
        with contextlib.closing(sqlite3.connect(self._path)) as source:
            source.backup(self.copy)
        self.beat_us, self.commits = self._primary.beat_us, len(self._primary.commits)

    async def read(self, query: Query) -> tuple[list[Row], int]:
        """The rows, and how many commits they show."""
        return self._primary.store._run_query(self.copy, query), self.commits

    async def shown_us(self) -> int:
        return self.beat_us

    def close(self) -> None:
        self.copy.close()


class _Host:
    """The replica as one process asks it for its heartbeat."""

    def __init__(self, network: Network, server: ReplicaServer) -> None:
        self._network, self._server = network, server

    async def fetch(self, _sql: str) -> list[tuple[int]]:
        try:
            return [(await self._network.call(REPLICA, "look", self._server.shown_us),)]
        except Lost as error:
            raise OSError(str(error)) from None

    def close(self) -> None:
        """The connection of a process ends with it."""


class RemoteReplica(Replica):
    """The real rules of when a replica is believed, over the simulated network. `saw` hears what each read showed."""

    def __init__(
        self,
        network: Network,
        server: ReplicaServer,
        primary: RemoteLedgerStore,
        loop: SeededLoop,
        saw: Callable[[int, int], None],
    ) -> None:
        super().__init__("postgresql://replica/frontrow", primary, clock=loop.time)  # type: ignore[arg-type]
        self._network, self._server, self._saw = network, server, saw
        self._hosts = [_Host(network, server)]  # type: ignore[list-item]

    async def read(self, query: Query) -> list[Row]:
        as_of_us = self.as_of_us
        try:
            rows, commits = await self._network.call(REPLICA, query.name, lambda: self._server.read(query))
        except Lost as error:
            self._leave(str(error))
            raise ReplicaAway from None
        self._saw(as_of_us, commits)
        found: list[Row] = rows
        return found
