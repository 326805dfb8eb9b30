"""SQL past the ledger, as somebody with the database's password would run it."""

import contextlib
import sqlite3
from typing import Any

import psycopg

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path


def run_sql(url: str, *statements: str) -> None:
    """Run statements one by one, each in its own transaction."""
    if is_postgres(url):
        with psycopg.connect(url, autocommit=True) as admin:
            for statement in statements:
                admin.execute(statement)  # type: ignore[arg-type]
        return
    connection = sqlite3.connect(sqlite_path(url), isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def insert_rows(url: str, rows: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Run statements with their values; `%s` marks a value."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            for statement, values in rows:
                connection.execute(statement.replace("%s", "?"), values)
        return
    with psycopg.connect(url) as admin:
        for statement, values in rows:
            admin.execute(statement, values)


def read_pairs(url: str, statement: str) -> dict[str, str]:
    """The second column of each row by the first."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        found = connection.execute(statement).fetchall()
        connection.close()
    else:
        with psycopg.connect(url) as admin:
            found = admin.execute(statement).fetchall()
    return {str(row[0]): str(row[1]) for row in found}
