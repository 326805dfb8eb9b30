"""The audit in PostgreSQL, for several processes: the same statements over asyncpg, one transaction per batch."""

from typing import Final

from frontrow.shared.postgres_database import PostgresDatabase, number_values
from frontrow.waitingroom.audit.sql_audit import SCHEMA, RowsByStatement, SqlAudit

SCHEMA_LOCK: Final = 0x0F06_7201


def open_postgres_audit(url: str, *, timeout_s: float = 4.0) -> SqlAudit:
    """The audit in this database. It connects on first use. Connecting and each call take at most `timeout_s`."""
    return SqlAudit(PostgresAudit(url, timeout_s))


class PostgresAudit(PostgresDatabase):
    """Implements `AuditDatabase`."""

    def __init__(self, url: str, timeout_s: float) -> None:
        super().__init__(url, timeout_s=timeout_s, name="the room's audit", schema=SCHEMA, schema_lock=SCHEMA_LOCK)

    async def write(self, rows_by_statement: RowsByStatement) -> None:
        async with self.transaction() as connection:
            for sql, values in rows_by_statement.items():
                await connection.executemany(number_values(sql), values)
