"""The console's book in one SQLite file: WAL, synchronous FULL, one thread. Several processes may share the file."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from frontrow.core.errors import Unavailable
from frontrow.shared.sqlite_wal import use_wal
from frontrow.waitingroom.console.sql_book import SCHEMA, BookStatement, SqlConsoleBook

LOCK_TIMEOUT_S = 10
Result = TypeVar("Result")


def open_sqlite_book(path: str | Path) -> SqlConsoleBook:
    """The book in this file, which is made if there is none; only its owner may read it."""
    return SqlConsoleBook(SqliteConsole(path))


class SqliteConsole:
    """Implements `ConsoleDatabase`."""

    def __init__(self, path: str | Path) -> None:
        self._thread = ThreadPoolExecutor(1, "console-book")
        try:
            self._connection = self._thread.submit(_connect, Path(path)).result()
        except BaseException:
            self._thread.shutdown()
            raise

    async def run(self, statements: Sequence[BookStatement]) -> bool:
        return await self._in_thread(lambda: self._run(statements))

    def _run(self, statements: Sequence[BookStatement]) -> bool:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for one in statements:
                if connection.execute(one.sql, one.values).rowcount < 1 and one.must:
                    connection.execute("ROLLBACK")
                    return False
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return True

    async def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self._in_thread(lambda: self._connection.execute(sql, values).fetchall())

    async def _in_thread(self, act: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, act)
        except sqlite3.Error as error:
            raise Unavailable(f"the console's file cannot be used: {error}", retry_after_s=1) from error

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        for statement in SCHEMA:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection
