"""The console's book in PostgreSQL, for several servers."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from frontrow.core.errors import Unavailable
from frontrow.shared.postgres_pool import borrow
from frontrow.shared.postgres_url import PostgresHosts
from frontrow.waitingroom.console.sql_book import SCHEMA, BookStatement, SqlConsoleBook

_SCHEMA_LOCK = 0x0F06_7202  # several servers may start at once, and CREATE IF NOT EXISTS can collide
_FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TargetServerAttributeNotMatched,
    OSError,
    TimeoutError,
)


def open_postgres_book(url: str, *, timeout_s: float = 4.0) -> SqlConsoleBook:
    """The book in this database. It connects on first use; each call takes at most `timeout_s`."""
    return SqlConsoleBook(PostgresConsole(url, timeout_s))


class _NothingChanged(Exception):
    """A statement that must change a row changed none: the transaction is undone."""


class PostgresConsole:
    """Implements `ConsoleDatabase` over at most two connections."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._hosts = PostgresHosts(url)
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._connecting = asyncio.Lock()

    async def run(self, statements: Sequence[BookStatement]) -> bool:
        try:
            async with self._transaction() as connection:
                for one in statements:
                    done = await connection.execute(_number_values(one.sql), *one.values)
                    if one.must and done.rpartition(" ")[2] == "0":
                        raise _NothingChanged
        except _NothingChanged:
            return False
        except _FAILURES as error:
            raise Unavailable(f"the console's database did not answer: {error}", retry_after_s=1) from error
        return True

    async def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            async with self._transaction() as connection:
                return [tuple(row) for row in await connection.fetch(_number_values(sql), *values)]
        except _FAILURES as error:
            raise Unavailable(f"the console's database did not answer: {error}", retry_after_s=1) from error

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with asyncio.timeout(self._timeout_s):
            pool = await self._connect()
        async with borrow(pool, self._timeout_s) as connection, connection.transaction():
            yield connection

    async def _connect(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._connecting:
            if self._pool is None:
                pool = await asyncpg.create_pool(
                    min_size=0, max_size=2, connect=self._hosts.connect, command_timeout=self._timeout_s
                )
                async with pool.acquire() as connection, connection.transaction():
                    await connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
                    for statement in SCHEMA:
                        await connection.execute(statement)
                self._pool = pool
        return self._pool

    async def aclose(self) -> None:
        if self._pool is not None:
            self._pool.terminate()


def _number_values(sql: str) -> str:
    """Each `?` as `$1`, `$2`, …"""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
