"""The audit in one SQLite file, for the embedded mode: WAL, synchronous FULL, one thread for writes and reads."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from frontrow.core.errors import Unavailable
from frontrow.shared.sqlite_wal import use_wal
from frontrow.waitingroom.audit.sql_audit import SCHEMA, RowsByStatement, SqlAudit


def open_sqlite_audit(path: str | Path) -> SqlAudit:
    """The audit in this file, created if needed. `":memory:"` keeps nothing and suits tests."""
    return SqlAudit(SqliteDatabase(path))


class SqliteDatabase:
    """Implements `AuditDatabase`."""

    def __init__(self, path: str | Path) -> None:
        self._thread = ThreadPoolExecutor(1, "room-audit")
        try:
            self._connection = self._thread.submit(_connect, str(path)).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def write(self, rows_by_statement: RowsByStatement) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, rows_by_statement)

    def _commit(self, rows_by_statement: RowsByStatement) -> None:
        try:
            with self._connection:
                for sql, values in rows_by_statement.items():
                    self._connection.executemany(sql, values)
        except sqlite3.Error as error:
            raise Unavailable(f"the room's audit file could not be written: {error}", retry_after_s=1) from error

    async def query(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        def run() -> list[tuple[Any, ...]]:
            return self._connection.execute(statement, values).fetchall()

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, check_same_thread=False)
    try:
        use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        with connection:
            for statement in SCHEMA:
                connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection
