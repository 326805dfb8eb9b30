"""The audit in PostgreSQL, for several processes: the same statements over asyncpg, one transaction per batch."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from frontrow.core.errors import Unavailable
from frontrow.shared.postgres_pool import borrow, keep_as_is
from frontrow.shared.postgres_url import PostgresHosts
from frontrow.waitingroom.audit.sql_audit import SCHEMA, RowsByStatement, SqlAudit

_SCHEMA_LOCK = 0x0F06_7201  # several processes may start at once, and CREATE IF NOT EXISTS can collide
_FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has ended the session, but the close has not arrived
    TargetServerAttributeNotMatched,  # no host is the primary yet
    OSError,
    TimeoutError,
)


def open_postgres_audit(url: str, *, timeout_s: float = 4.0) -> SqlAudit:
    """The audit in this database. It connects on first use. Connecting and each call take at most `timeout_s`."""
    return SqlAudit(PostgresDatabase(url, timeout_s=timeout_s))


class PostgresDatabase:
    """Implements `AuditDatabase` over at most two connections."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._hosts = PostgresHosts(url)
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._connecting = asyncio.Lock()

    async def write(self, rows_by_statement: RowsByStatement) -> None:
        try:
            async with self._transaction() as connection:
                for sql, values in rows_by_statement.items():
                    await connection.executemany(_number_values(sql), values)
        except _FAILURES as error:
            raise Unavailable(f"the room's audit did not answer: {error}", retry_after_s=1) from error

    async def query(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            # In a transaction: behind PgBouncer the next statement may run on another connection of the server.
            async with self._transaction() as connection:
                return [tuple(row) for row in await connection.fetch(_number_values(statement), *values)]
        except _FAILURES as error:
            raise Unavailable(f"the room's audit did not answer: {error}", retry_after_s=1) from error

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Any]:
        async with asyncio.timeout(self._timeout_s):
            pool = await self._connect()
        async with borrow(pool, self._timeout_s) as connection, connection.transaction():
            yield connection

    async def aclose(self) -> None:
        if self._pool is not None:
            self._pool.terminate()

    async def _connect(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._connecting:
            if self._pool is None:
                pool = await asyncpg.create_pool(
                    min_size=0,
                    max_size=2,
                    connect=self._hosts.connect,
                    command_timeout=self._timeout_s,
                    reset=keep_as_is,
                )
                async with pool.acquire() as connection, connection.transaction():
                    await connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
                    for statement in SCHEMA:
                        await connection.execute(statement)
                self._pool = pool
        return self._pool


def _number_values(sql: str) -> str:
    """Each `?` as `$1`, `$2`, …"""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
