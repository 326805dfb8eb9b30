"""The console's book in PostgreSQL, for several servers."""

from collections.abc import Sequence
from typing import Final

from frontrow.shared.postgres_database import PostgresDatabase, number_values
from frontrow.waitingroom.console.sql_book import SCHEMA, BookStatement, ConsoleDatabase, SqlConsoleBook

SCHEMA_LOCK: Final = 0x0F06_7202


def open_postgres_book(url: str, *, timeout_s: float = 4.0) -> SqlConsoleBook:
    """The book in this database. It connects on first use; each call takes at most `timeout_s`."""
    return SqlConsoleBook(PostgresConsole(url, timeout_s))


class _NothingChanged(Exception):
    """A statement that must change a row changed none: the transaction is undone."""


class PostgresConsole(PostgresDatabase, ConsoleDatabase):
    """See `ConsoleDatabase`."""

    def __init__(self, url: str, timeout_s: float) -> None:
        super().__init__(
            url, timeout_s=timeout_s, name="the console's database", schema=SCHEMA, schema_lock=SCHEMA_LOCK
        )

    async def run(self, statements: Sequence[BookStatement]) -> bool:
        try:
            async with self.transaction() as connection:
                for one in statements:
                    done = await connection.execute(number_values(one.sql), *one.values)
                    if one.must and done.rpartition(" ")[2] == "0":
                        raise _NothingChanged
        except _NothingChanged:
            return False
        return True
