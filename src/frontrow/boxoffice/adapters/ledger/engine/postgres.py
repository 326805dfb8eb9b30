"""PostgreSQL as a ledger's store: batches as array statements over a few writer connections, reads over their own.

When a connection is lost, whether a batch was committed can be unknown. Every operation is safe to repeat (bookings
have ids made by the caller), so the batch is run again over a new connection: it finds what is there already and
answers it. Reconnecting is bounded; after that callers get `Unavailable`. A batch that fails for a reason that is one
operation's own is run again in halves, so only that operation's caller gets the error.

Round trips are what a small batch waits for, so there are few: a batch of holds has six (begin with the fans' locks,
count, seats, bookings, record, commit). Savepoints are only set while seats were in the way lately; a batch whose hope
was lost without one is run again with them.

Tables are empty when a sale opens, so plans made from statistics would scan whole indexes later (325 holds/s at 20,000
bookings). Writer connections therefore use generic plans without sequential, bitmap, hash and merge scans or joins, and
statements are written so that the rows of the batch come first. A test EXPLAINs every array statement on empty tables.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import asyncpg

from frontrow.boxoffice.adapters.ledger.audit_chain import Chain
from frontrow.boxoffice.adapters.ledger.engine.group_commit import Operation, fan_locks, transaction
from frontrow.boxoffice.adapters.ledger.engine.statements import (
    ALL_WENT_WELL,
    Dialect,
    postgres_arguments,
    render,
    statements,
)
from frontrow.boxoffice.adapters.ledger.programs.bookings import Program
from frontrow.boxoffice.adapters.ledger.programs.optimistic_insert import HopeLost, Hopes
from frontrow.boxoffice.ports.queries import Query, Row
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.core.ids import Ids

CONNECT_TIMEOUT_S: Final = 5.0
CALL_TIMEOUT_S: Final = 20.0
STATEMENTS: Final = 256  # kept prepared a connection, for good
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.2
# One writer at a time per fan and event, so that a cap counts everything committed before. Sorted: no deadlock.
LOCK_FANS: Final = "BEGIN; SELECT pg_advisory_xact_lock(key) FROM unnest('{%s}'::bigint[]) AS key"
WARM: Final = ("active_counts", "take_free_seats", "add_new_bookings", "move_bookings", "record", "take_keys")
MAX_CLASHES: Final = 8  # deadlocks or lock timeouts of one batch in a row
# Rows of a batch first, then tables by index: a plan made while the tables were empty would scan them forever after.
SETTINGS: Final = {
    "application_name": "frontrow-ledger",
    "synchronous_commit": "on",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_material": "off",
    "join_collapse_limit": "1",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
}
# Tables by index here too: a page of a search must not sort everything that might match.
READER_SETTINGS: Final = {
    "application_name": "frontrow-ledger-reader",
    "default_transaction_read_only": "on",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,  # the server is shutting down, has crashed or is just starting
    asyncpg.InsufficientResourcesError,
)
CLASH: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
BAD_INPUT: Final = (asyncpg.DataError, asyncpg.exceptions.DataError, UnicodeEncodeError, OverflowError)
Answer = TypeVar("Answer")


class _Writer:
    """One writer connection with its audit chain."""

    __slots__ = ("chain", "connection")

    def __init__(self) -> None:
        self.connection: asyncpg.Connection[asyncpg.Record] | None = None
        self.chain: Chain | None = None


class PostgresStore:
    """Runs batches over `writers` connections and reads over a pool."""

    def __init__(
        self,
        url: str,
        *,
        writers: int = 2,
        readers: int = 4,
        reconnect_for_s: float = 15.0,
        ids: Ids | None = None,
        sql: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self.writers = writers
        self._reader_count = readers
        self._reconnect_for_s = reconnect_for_s
        self._ids = ids or Ids()
        self._sql = {**render(Dialect.POSTGRES), **(sql or {})}
        self._idle = [_Writer() for _ in range(writers)]
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._pool_lock = asyncio.Lock()
        self._hopes = Hopes()
        self.batches_split = 0
        self.reconnects = 0

    async def write(self, operations: Sequence[Operation]) -> list[Any]:
        """Commit a batch; an answer or an exception per operation."""
        writer = self._idle.pop()  # the coalescer has at most `writers` batches in flight
        try:
            return await self._write(writer, operations)
        finally:
            self._idle.append(writer)

    async def _write(self, writer: _Writer, operations: Sequence[Operation]) -> list[Any]:
        deadline = time.monotonic() + self._reconnect_for_s
        pause_s, clashes = FIRST_PAUSE_S, 0
        while True:  # bounded by the deadline and by MAX_CLASHES
            try:
                return await self._transaction(writer, operations)
            except BAD_INPUT as error:
                own: Exception = InvalidInput(f"the ledger cannot store this: {error}")
                break
            except CLASH as error:
                clashes += 1
                own = Unavailable(f"others are changing the same bookings: {error}", retry_after_s=0.5)
                if clashes > MAX_CLASHES:
                    break
            except LOST as error:
                self.reconnects += 1
                await self._drop(writer)
                if time.monotonic() + pause_s > deadline:
                    lost = Unavailable(f"the ledger does not answer ({type(error).__name__})", retry_after_s=5.0)
                    return [lost] * len(operations)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except Exception as error:
                own = error
                break
        return await self._halves(writer, operations, own)

    async def _halves(self, writer: _Writer, operations: Sequence[Operation], own: Exception) -> list[Any]:
        if len(operations) == 1:
            return [own]
        self.batches_split += 1
        middle = len(operations) // 2
        first = await self._write(writer, operations[:middle])
        return first + await self._write(writer, operations[middle:])

    async def _transaction(self, writer: _Writer, operations: Sequence[Operation]) -> list[Any]:
        connection, chain = await self._connected(writer)
        try:
            return await self._try(connection, chain, operations, hopeful=not self._hopes.careful)
        except HopeLost:
            self._hopes.lost()
            return await self._try(connection, chain, operations, hopeful=False)

    async def _try(
        self, connection: "asyncpg.Connection[asyncpg.Record]", chain: Chain, operations: Sequence[Operation], *,
        hopeful: bool,
    ) -> list[Any]:  # fmt: skip
        locks = fan_locks(operations)
        try:
            await connection.execute(LOCK_FANS % ",".join(map(str, locks)) if locks else "BEGIN")
            program = transaction(operations, chain, hopes=self._hopes, at_once=True)
            answers, entry = await self._run(connection, program, hopeful=hopeful)
            await connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                await connection.execute("ROLLBACK", timeout=1.0)
            raise
        if entry is not None:
            chain.committed(entry)
        return answers

    async def _run(
        self, connection: "asyncpg.Connection[asyncpg.Record]", program: Program[Answer], *, hopeful: bool
    ) -> Answer:
        try:
            query = next(program)
            while True:  # ends with the program
                query = program.send(await self._query(connection, query, hopeful=hopeful))
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    async def _query(
        self, connection: "asyncpg.Connection[asyncpg.Record]", query: Query, *, hopeful: bool
    ) -> list[Row]:
        arguments = postgres_arguments(query)
        if not query.otherwise:
            return await connection.fetch(self._sql[query.name], *arguments)  # type: ignore[return-value]
        if not hopeful:
            await connection.execute("SAVEPOINT careful")
        try:
            rows = await connection.fetch(self._sql[query.name], *arguments)
            return rows or ALL_WENT_WELL  # type: ignore[return-value]
        except asyncpg.UniqueViolationError as error:
            if hopeful:
                raise HopeLost from error
            await connection.execute("ROLLBACK TO SAVEPOINT careful")
            return await connection.fetch(self._sql[query.otherwise], *arguments)  # type: ignore[return-value]

    async def _connected(self, writer: _Writer) -> "tuple[asyncpg.Connection[asyncpg.Record], Chain]":
        if writer.connection is None or writer.connection.is_closed() or writer.chain is None:
            writer.connection = await asyncpg.connect(
                self._url, timeout=CONNECT_TIMEOUT_S, command_timeout=CALL_TIMEOUT_S, server_settings=SETTINGS,
                statement_cache_size=STATEMENTS, max_cached_statement_lifetime=0,
            )  # fmt: skip
            # A new chain: whether the last entry of the old one was committed may be unknown.
            writer.chain = Chain(self._ids.new("aud"))
        return writer.connection, writer.chain

    async def warm(self) -> None:
        """Connect the writers and plan what holds need, so that the first buyers of a sale do not wait for it."""
        for writer in self._idle:
            connection, _ = await self._connected(writer)
            for name in WARM:
                await self._plan(connection, name)

    async def _plan(self, connection: "asyncpg.Connection[asyncpg.Record]", name: str) -> None:
        """Run a statement for no rows and undo it."""
        statement = statements()[name]
        nothing = ["{}"] * len(statement.columns) + [0 if kind == "int" else "" for _, kind in statement.params]
        await connection.execute("BEGIN")
        try:
            await connection.fetch(self._sql[name], *nothing)
        finally:
            await connection.execute("ROLLBACK")

    async def _drop(self, writer: _Writer) -> None:
        connection, writer.connection = writer.connection, None
        if connection is not None:
            connection.terminate()

    async def read(self, query: Query) -> list[Row]:
        """The rows of a reading statement, as last committed; tries again over a new connection until the deadline."""
        deadline = time.monotonic() + self._reconnect_for_s
        pause_s = FIRST_PAUSE_S
        while True:  # bounded by the deadline
            try:
                return await self._fetch(self._sql[query.name], *postgres_arguments(query))
            except BAD_INPUT as error:
                raise InvalidInput(f"the ledger cannot look for this: {error}") from error
            except LOST as error:
                if time.monotonic() + pause_s > deadline:
                    raise Unavailable(
                        f"the ledger does not answer ({type(error).__name__})", retry_after_s=5.0
                    ) from error
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def time_us(self) -> int:
        rows = await self._fetch("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(rows[0][0])

    async def _fetch(self, sql: str, *arguments: Any) -> list[Row]:
        async with self._pool_lock:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=self._reader_count,
                    timeout=CONNECT_TIMEOUT_S,
                    command_timeout=CALL_TIMEOUT_S,
                    server_settings=READER_SETTINGS,
                    reset=_keep_as_is,
                )
        return await self._pool.fetch(sql, *arguments)  # type: ignore[return-value]

    async def aclose(self) -> None:
        for writer in self._idle:
            if writer.connection is not None and not writer.connection.is_closed():
                await writer.connection.close(timeout=5.0)
        if self._pool is not None:
            self._pool.terminate()


async def _keep_as_is(connection: Any) -> None:
    """Readers change no session state; the pool's reset query would cost a round trip a read."""
