"""PostgreSQL as a ledger's store: batches as array statements over a few writer connections, reads over their own.

When a connection is lost, it can be unknown whether a batch was committed. Every operation is safe to repeat, because
the caller makes the booking ids. So the batch is run again over a new connection, finds what is already there and
answers with it. Reconnecting is bounded by the length of the outage, not of the call: once the ledger has been away for
`reconnect_for_s`, each call tries once and then gets `Unavailable`, and calls that waited behind it get it at once.
A batch that fails because of one operation is run again in halves, so only that operation's caller gets the error. The
same happens when somebody else's transaction keeps a lock for too long: repeating the whole batch would
only wait again.

A small batch mostly waits for round trips, so there are few: a batch of holds has six (begin with the fans' locks,
count, seats, bookings, record, commit). Savepoints are set only after a recent conflict. A batch that hits a conflict
without savepoints is rolled back and run again with them.

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
from asyncpg.exceptions import TargetServerAttributeNotMatched

from frontrow.boxoffice.adapters.ledger.audit_chain import Chain
from frontrow.boxoffice.adapters.ledger.engine.group_commit import Operation, fan_locks, transaction
from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import (
    IS_PARTITIONED,
    ReaderPool,
    StatementRefused,
    is_refused,
)
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.statements import (
    NO_CONFLICT,
    Dialect,
    postgres_arguments,
    render,
    statements,
)
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import ConflictDetected, ConflictHistory
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.shared.ids import Ids
from frontrow.shared.postgres_url import PostgresHosts, begin_with

# A request is answered within 10 s. One that meets a silent server waits for its call, then for new connections.
CALL_TIMEOUT_S: Final = 4.0
READ_TIMEOUT_S: Final = 6.0
RECONNECT_FOR_S: Final = 6.0
REST_S: Final = 0.5  # after a call that waited in vain: who waited behind it does not wait for as long again
SPLIT_FOR_S: Final = 4.0  # how long a batch is halved to find the operation that waits for a lock
STATEMENTS: Final = 256  # prepared statements kept per connection
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.2
# One writer at a time per fan and event, so that a cap counts everything committed before. Sorted to avoid deadlocks.
LOCK_FANS: Final = "; SELECT pg_advisory_xact_lock(key) FROM unnest('{%s}'::bigint[]) AS key"
WARM: Final = ("active_counts", "take_free_seats", "add_new_bookings", "move_bookings", "record", "take_keys")
MAX_CLASHES: Final = 8  # deadlocks or lock timeouts of one batch in a row
# Of a partitioned ledger: a booking id belongs to one event. Broken if two events get it at the same moment.
ONE_EVENT_PER_BOOKING: Final = "booking_events_pkey"
# Join a batch's rows to tables by index. A plan made while the tables were empty would otherwise scan them forever.
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
    "lock_timeout": "2s",
    # A server that was frozen or cut off inside a transaction keeps its locks so long, and no longer.
    "idle_in_transaction_session_timeout": "5s",
}
# The heartbeat of the primary. One server of many writes it; the others find it young enough.
NOW_US: Final = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
BEAT: Final = f"UPDATE ledger_heartbeat SET beat_us = {NOW_US} WHERE abs({NOW_US} - beat_us) > $1::bigint"  # noqa: S608
LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server said goodbye, and its hanging up has not arrived
    asyncpg.OperatorInterventionError,  # the server is shutting down, has crashed or is just starting
    asyncpg.InsufficientResourcesError,  # of connections, memory or disk
    asyncpg.ReadOnlySQLTransactionError,  # this server is a standby now; another one is the primary
    TargetServerAttributeNotMatched,  # no host is the primary yet
    asyncpg.InvalidAuthorizationSpecificationError,  # the password was changed
    asyncpg.InvalidCatalogNameError,
    asyncpg.PostgresSystemError,
    asyncpg.InternalServerError,
)
CLASH: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
LOCKED: Final = asyncpg.LockNotAvailableError  # lock_timeout
BAD_INPUT: Final = (asyncpg.DataError, asyncpg.exceptions.DataError, UnicodeEncodeError, OverflowError)
Answer = TypeVar("Answer")


class _Writer:
    """One writer connection with its audit chain."""

    __slots__ = ("chain", "connection")

    def __init__(self) -> None:
        self.connection: asyncpg.Connection[asyncpg.Record] | None = None
        self.chain: Chain | None = None


class _Outage:
    """How long the ledger has been away, for all calls together: a call that comes late does not wait all over.

    After a call that waited in vain while nobody else was answered either, calls rest for `rest_s`: those that stood in
    line behind it fail at once.
    """

    __slots__ = ("_answered_s", "_began_s", "_longest_s", "_rest_s", "_rests_until_s")

    def __init__(self, longest_s: float, rest_s: float) -> None:
        self._longest_s, self._rest_s = longest_s, rest_s
        self._began_s: float | None = None
        self._answered_s = self._rests_until_s = 0.0

    def too_long(self, asked_s: float) -> bool:
        """Note that a call made at `asked_s` has failed; whether such failures go on for too long to try again."""
        if self._began_s is None or asked_s < self._began_s:
            self._began_s = asked_s
        now_s = time.monotonic()
        if now_s - self._began_s <= self._longest_s:
            return False
        if self._answered_s < asked_s:
            self._rests_until_s = now_s + self._rest_s
        return True

    def rests(self, asked_s: float) -> bool:
        return asked_s < self._rests_until_s

    def over(self) -> None:
        """A call was answered."""
        self._began_s, self._rests_until_s, self._answered_s = None, 0.0, time.monotonic()


class PostgresStore:
    """Runs batches over `writers` connections and reads over a pool."""

    def __init__(
        self,
        url: str,
        *,
        writers: int = 2,
        readers: int = 4,
        reconnect_for_s: float = RECONNECT_FOR_S,
        rest_s: float = REST_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        ids: Ids | None = None,
        sql: Mapping[str, str] | None = None,
    ) -> None:
        self._hosts = PostgresHosts(url)
        # A pooler gives each transaction another connection, so each makes its own settings (`shared.postgres_url`).
        self._begin = begin_with(SETTINGS) if self._hosts.is_pooled else "BEGIN"
        self.writers = writers
        self._readers = ReaderPool(self._hosts, readers, READ_TIMEOUT_S)
        self._outage = _Outage(reconnect_for_s, rest_s)
        self._call_timeout_s = call_timeout_s
        self._ids = ids or Ids()
        self._own_sql = dict(sql or {})
        self._sql: dict[str, str] = {}  # of the tables that the last writer has found, plain or partitioned
        self._idle = [_Writer() for _ in range(writers)]
        self._conflict_history = ConflictHistory()
        self.batches_split = 0
        self.reconnects = 0

    async def write(self, operations: Sequence[Operation]) -> list[Any]:
        """Commit a batch; an answer or an exception per operation."""
        writer = self._idle.pop()  # the coalescer has at most `writers` batches in flight
        try:
            return await self._write(writer, operations, time.monotonic() + SPLIT_FOR_S)
        finally:
            self._idle.append(writer)

    async def _write(self, writer: _Writer, operations: Sequence[Operation], split_until_s: float) -> list[Any]:
        pause_s, clashes, asked_s = FIRST_PAUSE_S, 0, time.monotonic()
        if self._outage.rests(asked_s):
            return [_unavailable()] * len(operations)
        while True:  # bounded by the outage's length and by MAX_CLASHES
            try:
                answers = await self._transaction(writer, operations)
                self._outage.over()
                return answers
            except BAD_INPUT as error:
                own: Exception = InvalidInput(f"the ledger cannot store this: {error}")
                break
            except CLASH as error:
                clashes += 1
                own = Unavailable(f"others are changing the same bookings: {error}", retry_after_s=0.5)
                if clashes > MAX_CLASHES:
                    break
            except asyncpg.UniqueViolationError as error:
                clashes, own = clashes + 1, error
                if error.constraint_name != ONE_EVENT_PER_BOOKING or clashes > MAX_CLASHES:
                    break
            except LOCKED as error:
                own = Unavailable(f"somebody else's transaction keeps a lock: {error}", retry_after_s=2.0)
                if time.monotonic() > split_until_s:
                    return [own] * len(operations)
                break
            except LOST as error:
                self.reconnects += 1
                await self._drop(writer)
                if self._outage.too_long(asked_s):
                    return [_unavailable(error)] * len(operations)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except Exception as error:
                own = error
                break
        if len(operations) == 1:
            return [own]
        self.batches_split += 1
        middle = len(operations) // 2
        first = await self._write(writer, operations[:middle], split_until_s)
        return first + await self._write(writer, operations[middle:], split_until_s)

    async def _transaction(self, writer: _Writer, operations: Sequence[Operation]) -> list[Any]:
        connection, chain = await self._connected(writer)
        try:
            return await self._try(connection, chain, operations, optimistic=not self._conflict_history.careful_batches)
        except ConflictDetected:
            return await self._try(connection, chain, operations, optimistic=False, again=True)

    async def _try(
        self,
        connection: "asyncpg.Connection[asyncpg.Record]",
        chain: Chain,
        operations: Sequence[Operation],
        *,
        optimistic: bool,
        again: bool = False,
    ) -> list[Any]:
        locks = fan_locks(operations)
        try:
            await connection.execute(self._begin + (LOCK_FANS % ",".join(map(str, locks)) if locks else ""))
            program = transaction(operations, chain, history=self._conflict_history, again=again, at_once=True)
            answers, entry = await self._run(connection, program, optimistic=optimistic)
            await self._commit(connection)
        except LOST:
            raise  # the connection is dropped; a ROLLBACK would only wait
        except BaseException:
            with contextlib.suppress(Exception):
                await connection.execute("ROLLBACK", timeout=1.0)
            raise
        if entry is not None:
            chain.committed(entry)
        return answers

    async def _run(
        self, connection: "asyncpg.Connection[asyncpg.Record]", program: Program[Answer], *, optimistic: bool
    ) -> Answer:
        try:
            query = next(program)
            while True:  # ends with the program
                query = program.send(await self._query(connection, query, optimistic=optimistic))
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        except asyncpg.InterfaceError as error:
            if is_refused(error, connection):
                raise StatementRefused(str(error)) from error
            raise

    async def _commit(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        """Commit. A commit without an answer is never cancelled, only its connection is dropped.

        If it were, PostgreSQL would no longer wait for its synchronous standby and show others what no standby has.
        """
        drop = asyncio.get_running_loop().call_later(self._call_timeout_s, connection.terminate)
        try:
            await connection.execute("COMMIT", timeout=10 * self._call_timeout_s)
        finally:
            drop.cancel()

    async def _query(
        self, connection: "asyncpg.Connection[asyncpg.Record]", query: Query, *, optimistic: bool
    ) -> list[Row]:
        arguments = postgres_arguments(query)
        if not query.fallback:
            return await connection.fetch(self._sql[query.name], *arguments)  # type: ignore[return-value]
        if not optimistic:
            await connection.execute("SAVEPOINT careful")
        try:
            rows = await connection.fetch(self._sql[query.name], *arguments)
            return rows or NO_CONFLICT  # type: ignore[return-value]
        except asyncpg.UniqueViolationError as error:
            if optimistic:
                self._conflict_history.record_conflict()
                raise ConflictDetected from error
            await connection.execute("ROLLBACK TO SAVEPOINT careful")
            return await connection.fetch(self._sql[query.fallback], *arguments)  # type: ignore[return-value]

    async def _connected(self, writer: _Writer) -> "tuple[asyncpg.Connection[asyncpg.Record], Chain]":
        if writer.connection is None or writer.connection.is_closed() or writer.chain is None:
            writer.connection = await self._hosts.connect(
                command_timeout=self._call_timeout_s,
                server_settings=SETTINGS,
                statement_cache_size=STATEMENTS,
                max_cached_statement_lifetime=0,
            )
            async with writer.connection.transaction():
                partitioned = bool(await writer.connection.fetchval(IS_PARTITIONED))
            self._sql = {**render(Dialect.POSTGRES, partitioned=partitioned), **self._own_sql}
            # Start a new chain: it may be unknown whether the last entry of the old one was committed.
            writer.chain = Chain(self._ids.new("aud"))
        return writer.connection, writer.chain

    async def warm(self) -> None:
        """Connect the writers and plan the statements of holds, so that a sale's first buyers do not wait for it."""
        for writer in self._idle:
            connection, _ = await self._connected(writer)
            for name in WARM:
                await self._plan(connection, name)

    async def _plan(self, connection: "asyncpg.Connection[asyncpg.Record]", name: str) -> None:
        """Run a statement with no rows and roll it back."""
        statement = statements()[name]
        nothing = ["{}"] * len(statement.columns) + [0 if kind == "int" else "" for _, kind in statement.params]
        await connection.execute(self._begin)
        try:
            await connection.fetch(self._sql[name], *nothing)
        finally:
            await connection.execute("ROLLBACK")

    async def _drop(self, writer: _Writer) -> None:
        connection, writer.connection = writer.connection, None
        if connection is not None:
            connection.terminate()

    async def read(self, query: Query) -> list[Row]:
        """The rows of a read, as last committed. Retries over a new connection while the outage is short."""
        pause_s, asked_s = FIRST_PAUSE_S, time.monotonic()
        if self._outage.rests(asked_s):
            raise _unavailable()
        while True:  # bounded by the outage's length
            try:
                known = await self._readers.statements()
                sql = self._own_sql.get(query.name) or known[query.name]
                rows = await self._readers.fetch(sql, *postgres_arguments(query))
                self._outage.over()
                return rows
            except BAD_INPUT as error:
                raise InvalidInput(f"the ledger cannot look for this: {error}") from error
            except LOST as error:
                if self._outage.too_long(asked_s):
                    raise _unavailable(error) from error
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def time_us(self) -> int:
        """The database's clock. Tries once."""
        try:
            rows = await self._readers.fetch(f"SELECT {NOW_US}")
        except LOST as error:
            raise _unavailable(error) from error
        return int(rows[0][0])

    async def beat(self, every_us: int) -> int:
        """Renew the heartbeat that replicas show, if it is older than `every_us`; the database's clock. Tries once."""
        try:
            async with self._readers.connection() as connection, connection.transaction():
                await connection.execute("SET LOCAL transaction_read_only TO off")
                await connection.execute(BEAT, every_us)
                return int(await connection.fetchval(f"SELECT {NOW_US}"))
        except LOST as error:
            raise _unavailable(error) from error

    async def aclose(self) -> None:
        for writer in self._idle:
            if writer.connection is not None and not writer.connection.is_closed():
                with contextlib.suppress(*LOST):  # it is gone either way
                    await writer.connection.close(timeout=5.0)
        self._readers.close()


def _unavailable(error: Exception | None = None) -> Unavailable:
    why = f" ({type(error).__name__})" if error is not None else ""
    return Unavailable(f"the ledger does not answer{why}", retry_after_s=5.0)
