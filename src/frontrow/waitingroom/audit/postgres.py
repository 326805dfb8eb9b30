"""The audit in PostgreSQL, for the grown-up mode: the same statements over asyncpg, one transaction for each batch."""

import asyncio
import re
from itertools import count
from typing import Any

import asyncpg

from frontrow.core.errors import Unavailable
from frontrow.waitingroom.audit.sqlite import SCHEMA, SqlAudit

_SCHEMA_LOCK = 0x0F06_7201  # several processes may start at once; CREATE IF NOT EXISTS alone can collide


def _numbered(sql: str) -> str:
    """`?` as `$1`, `$2`, …"""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)


class PostgresAudit(SqlAudit):
    """Rows in a PostgreSQL database, over at most two connections, made on first use."""

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        super().__init__()
        self._url = url
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._making = asyncio.Lock()

    async def _connections(self) -> "asyncpg.Pool[asyncpg.Record]":
        async with self._making:
            if self._pool is None:
                pool = await asyncpg.create_pool(self._url, min_size=0, max_size=2, command_timeout=self._timeout_s)
                async with pool.acquire() as connection, connection.transaction():
                    await connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
                    for statement in SCHEMA:
                        await connection.execute(statement)
                self._pool = pool
        return self._pool

    async def _write(self, by_sql: dict[str, list[tuple[Any, ...]]]) -> None:
        try:
            pool = await self._connections()
            async with pool.acquire() as connection, connection.transaction():
                for sql, values in by_sql.items():
                    await connection.executemany(_numbered(sql), values)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise Unavailable(f"the room's audit did not answer: {error}", retry_after_s=1) from error

    async def _query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        try:
            pool = await self._connections()
            return [tuple(row) for row in await pool.fetch(_numbered(sql), *values)]
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise Unavailable(f"the room's audit did not answer: {error}", retry_after_s=1) from error

    async def aclose(self) -> None:
        await self._writer.aclose()
        if self._pool is not None:
            await self._pool.close()
