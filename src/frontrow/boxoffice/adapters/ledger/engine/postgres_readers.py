"""Connections that only read: a small pool to one PostgreSQL, the primary or a replica.

They are opened when they are first needed. A read waits for a free connection and for its rows within one time-out.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import asyncpg

from frontrow.boxoffice.adapters.ledger.engine.queries import Row
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render
from frontrow.shared.postgres_pool import borrow, keep_as_is
from frontrow.shared.postgres_url import PostgresHosts, begin_with

# By index: a page of a search must not sort everything that might match.
READER_SETTINGS: Final = {
    "application_name": "frontrow-ledger-reader",
    "default_transaction_read_only": "on",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
IS_PARTITIONED: Final = "SELECT relkind = 'p' FROM pg_class WHERE oid = 'bookings'::regclass"
BEGIN_READING: Final = begin_with(READER_SETTINGS, "BEGIN READ ONLY")


class StatementRefused(Exception):
    """The driver refuses a statement itself (the wrong number of values). Repeating it changes nothing."""


def is_refused(error: asyncpg.InterfaceError, connection: Any) -> bool:
    """Whether the statement is at fault. Of a connection that cannot be used asyncpg raises the same error."""
    return not connection.is_closed() and not str(error).startswith("cannot perform operation")


class ReaderPool:
    """At most `size` connections to `hosts`."""

    def __init__(self, hosts: PostgresHosts, size: int, timeout_s: float) -> None:
        self._hosts, self._size, self._timeout_s = hosts, size, timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._opening = asyncio.Lock()
        self._is_partitioned: bool | None = None

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        """The rows, as last committed there."""
        async with self.connection() as connection:
            try:
                if self._hosts.is_pooled:
                    return await self._fetch_pooled(connection, sql, arguments)
                return await connection.fetch(sql, *arguments)  # type: ignore[no-any-return]
            except asyncpg.InterfaceError as error:
                if is_refused(error, connection):
                    raise StatementRefused(str(error)) from error
                raise

    async def statements(self) -> Mapping[str, str]:
        """The ledger's statements for the tables that are there, plain or partitioned; looked up once."""
        if self._is_partitioned is None:
            self._is_partitioned = bool((await self.fetch(IS_PARTITIONED))[0][0])
        return render(Dialect.POSTGRES, partitioned=self._is_partitioned)

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """One connection, for a transaction of its own."""
        pool = await self._open()
        async with borrow(pool, self._timeout_s) as connection:
            yield connection

    async def _open(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    min_size=0,
                    max_size=self._size,
                    connect=self._hosts.connect,
                    command_timeout=self._timeout_s,
                    server_settings=READER_SETTINGS,
                    reset=keep_as_is,
                )
            return self._pool

    async def _fetch_pooled(self, connection: Any, sql: str, arguments: Sequence[Any]) -> list[Row]:
        await connection.execute(BEGIN_READING)
        try:
            return await connection.fetch(sql, *arguments)  # type: ignore[no-any-return]
        finally:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")  # nothing was written

    def close(self) -> None:
        """End all connections. The next read opens new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.terminate()
