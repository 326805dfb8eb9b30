"""SQLite as a ledger's store: one file, one writer thread, WAL with synchronous=FULL, readers that never block it.

A batch of operations is one transaction. A batch that fails because of one operation is run again in halves, so only
that operation's caller gets the error. An optimistic batch to which a unique index objected is rolled back and run
again with statements that leave nothing behind when they fail. A file that was moved or replaced while it is open is
not written to any more: sales would go into a file that nobody finds again.
"""

import asyncio
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from frontrow.boxoffice.adapters.ledger.audit_chain import Chain
from frontrow.boxoffice.adapters.ledger.engine.group_commit import Operation, transaction
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.statements import (
    NO_CONFLICT,
    Dialect,
    render,
    sqlite_arguments,
    sqlite_piece,
    statements,
)
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import ConflictDetected, ConflictHistory
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.shared.ids import Ids
from frontrow.shared.sqlite_wal import BUSY_TIMEOUT_S, use_wal

READERS: Final = 2
PIECES: Final = (64, 16, 4, 1)  # rows per piece; few sizes, so that each is prepared once
PREPARED: Final = 1_024
# FULL: a commit is on disk before it is answered. The WAL is checkpointed less often than by default.
PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    f"PRAGMA busy_timeout = {round(1_000 * BUSY_TIMEOUT_S)}",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA cache_size = -65536",
)
Answer = TypeVar("Answer")


class SqliteStore:
    """Runs batches in its writer thread and reads in others."""

    writers: Final = 1

    def __init__(
        self, path: Path, *, ids: Ids | None = None, sql: Mapping[str, str] | None = None, lock: int | None = None
    ) -> None:
        """`lock`: a handle that says that the file is in use; closed with the store."""
        self._path, self._lock = path, lock
        self._file: tuple[int, int] | None = None  # which file this is, by device and inode
        self._ids = ids or Ids()
        self._sql = {**render(Dialect.SQLITE), **(sql or {})}
        self._in_pieces = {name for name, each in statements().items() if each.row_by_row} - set(sql or ())
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ledger-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="ledger-reader")
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._chain = Chain(self._ids.new("aud"))
        self._conflict_history = ConflictHistory()
        self.batches_split = 0

    async def write(self, operations: Sequence[Operation]) -> list[Any]:
        """Commit a batch; an answer or an exception per operation."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._write, operations)

    async def read(self, query: Query) -> list[Row]:
        """The rows of a read, as last committed."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, query)

    async def time_us(self) -> int:
        return time.time_ns() // 1000

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._writer.shutdown()
        self._readers.shutdown()
        for connection in self._connections:
            connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, cached_statements=PREPARED
            )
            self._connections.append(connection)
            use_wal(connection)
            for pragma in PRAGMAS:
                connection.execute(pragma)
            self._file = self._file or _identity(self._path)
            self._local.connection = connection
        return connection

    def _read(self, query: Query) -> list[Row]:
        return _with_our_errors(lambda: self._run_query(self._connection(), query))

    def _run_query(self, connection: sqlite3.Connection, query: Query, *, optimistic: bool = False) -> list[Row]:
        if query.name in self._in_pieces and (optimistic or not query.fallback):
            return self._run_pieces(connection, query)
        arguments = sqlite_arguments(query)
        try:
            cursor = connection.execute(self._sql[query.name], arguments)
            return cursor.fetchall() if cursor.description or not query.fallback else NO_CONFLICT
        except sqlite3.IntegrityError:  # the statement left nothing behind; the transaction goes on
            if not query.fallback:
                raise
            return connection.execute(self._sql[query.fallback], arguments).fetchall()

    def _run_pieces(self, connection: sqlite3.Connection, query: Query) -> list[Row]:
        """Run a statement piece by piece with bound values.

        A conflict in the middle leaves the earlier pieces behind.
        """
        found: list[Row] = []
        cursor = connection.cursor()
        try:
            for piece in _pieces(query.rows):
                cursor.execute(sqlite_piece(query.name, len(piece)), list(itertools.chain.from_iterable(piece)))
                if cursor.description:
                    found += cursor.fetchall()
        except sqlite3.IntegrityError as error:
            if not query.fallback:
                raise
            self._conflict_history.record_conflict()
            raise ConflictDetected from error
        return NO_CONFLICT if query.fallback and not found else found

    def _write(self, operations: Sequence[Operation]) -> list[Any]:
        try:
            return _with_our_errors(lambda: self._transaction(operations))
        except Unavailable as error:
            return [error] * len(operations)
        except Exception as error:
            if len(operations) == 1:
                return [error]
            self.batches_split += 1
            middle = len(operations) // 2
            return self._write(operations[:middle]) + self._write(operations[middle:])

    def _transaction(self, operations: Sequence[Operation]) -> list[Any]:
        try:
            return self._try(operations, optimistic=not self._conflict_history.careful_batches)
        except ConflictDetected:
            return self._try(operations, optimistic=False, again=True)

    def _check_file(self) -> None:
        """The path still names the file that is open."""
        if _identity(self._path) != self._file:
            raise Unavailable(f"the ledger's file {self._path} was moved or replaced while it is open; start again")

    def _try(self, operations: Sequence[Operation], *, optimistic: bool, again: bool = False) -> list[Any]:
        connection = self._connection()
        self._check_file()
        connection.execute("BEGIN IMMEDIATE")
        try:
            program = transaction(operations, self._chain, history=self._conflict_history, again=again)
            answers, entry = self._run(connection, program, optimistic=optimistic)
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not isinstance(error, ConflictDetected):  # the commit may have happened: its chain ends there
                self._chain = Chain(self._ids.new("aud"))
            raise
        if entry is not None:
            self._chain.committed(entry)
        return answers

    def _run(self, connection: sqlite3.Connection, program: Program[Answer], *, optimistic: bool) -> Answer:
        try:
            query = next(program)
            while True:  # ends with the program
                query = program.send(self._run_query(connection, query, optimistic=optimistic))
        except StopIteration as done:
            answer: Answer = done.value
            return answer


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path names, by device and inode; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows, cut into the largest pieces for which there are statements."""
    at = 0
    for size in PIECES:
        while len(rows) - at >= size:
            yield rows[at : at + size]
            at += size


def _with_our_errors(act: Callable[[], Answer]) -> Answer:
    """The result of `act`, with SQLite's errors translated into ours."""
    try:
        return act()
    except sqlite3.OperationalError as error:
        raise Unavailable(f"the ledger's file cannot be used: {error}", retry_after_s=1.0) from error
    except (sqlite3.DataError, UnicodeEncodeError, OverflowError) as error:
        raise InvalidInput(f"the ledger cannot store this: {error}") from error
