"""A small database in PostgreSQL with a schema of its own, for code whose SQL also runs in SQLite (`?` for values)."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from frontrow.core.errors import Unavailable
from frontrow.shared.postgres_pool import borrow, keep_as_is
from frontrow.shared.postgres_url import PostgresHosts

FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server has ended the session, but the close has not arrived
    TargetServerAttributeNotMatched,  # no host is the primary yet
    OSError,
    TimeoutError,
)


class PostgresDatabase:
    """At most two connections. It connects on first use, and makes its tables then. Connecting and each call take at
    most `timeout_s`."""

    def __init__(self, url: str, *, timeout_s: float, name: str, schema: Sequence[str], schema_lock: int) -> None:
        """`name`: what errors call it. `schema_lock`: several processes may start at once, and CREATE IF NOT EXISTS can
        collide."""
        self._hosts, self._timeout_s, self._name = PostgresHosts(url), timeout_s, name
        self._schema, self._schema_lock = schema, schema_lock
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._connecting = asyncio.Lock()

    async def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        # In a transaction: behind PgBouncer the next statement may run on another connection of the server.
        async with self.transaction() as connection:
            return [tuple(row) for row in await connection.fetch(number_values(sql), *values)]

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection with an open transaction. Raises `Unavailable` if the server does not answer in time."""
        try:
            async with asyncio.timeout(self._timeout_s):
                pool = await self._connect()
            async with borrow(pool, self._timeout_s) as connection, connection.transaction():
                yield connection
        except FAILURES as error:
            raise Unavailable(f"{self._name} did not answer: {error}", retry_after_s=1) from error

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
                    await connection.execute(f"SELECT pg_advisory_xact_lock({self._schema_lock})")
                    for statement in self._schema:
                        await connection.execute(statement)
                self._pool = pool
        return self._pool

    async def aclose(self) -> None:
        """Drop the connections."""
        if self._pool is not None:
            self._pool.terminate()


def number_values(sql: str) -> str:
    """Each `?` as `$1`, `$2`, …"""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
