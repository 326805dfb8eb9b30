"""The schema itself refuses two rows that may not both be, whatever a program believes (N4)."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from tests.boxoffice.adapters.ledger.raw_sql import insert_rows
from tests.boxoffice.adapters.ledger.unique_rows import ALLOWED, TOGETHER, unique_names

COLUMNS = (
    "SELECT column_name, data_type, column_default FROM information_schema.columns"
    " WHERE table_name = %s AND is_nullable = 'NO' AND is_identity = 'NO' AND is_generated = 'NEVER'"
)


def columns_of(url: str, table: str) -> Iterator[tuple[str, bool]]:
    """The columns that a row must have, and whether each is a text."""
    if is_postgres(url):
        with psycopg.connect(url) as admin:
            for name, kind, default in admin.execute(COLUMNS, (table,)):
                if default is None:
                    yield name, kind == "text"
        return
    connection = sqlite3.connect(sqlite_path(url))
    for _, name, kind, needed, default, in_key in connection.execute(f"PRAGMA table_info({table})"):
        if (needed or (in_key and kind == "text")) and default is None:
            yield name, kind == "text"
    connection.close()


def a_row(url: str, table: str, number: int, values: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """An INSERT of a row that has nothing in common with others but these values and those of `ALLOWED`."""
    row = {name: f"{name} {number}" if is_text else number for name, is_text in columns_of(url, table)}
    row |= {name: value for name, value in ALLOWED.items() if name in row}
    row |= values
    marks = ", ".join(["%s"] * len(row))
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())


@pytest.mark.parametrize("name", TOGETHER)
def test_two_such_rows_cannot_both_be(name: str, sqlite_ledger_url: str) -> None:
    refuses_a_second(sqlite_ledger_url, name)


def test_nor_on_postgres(postgres_ledger_url: str) -> None:
    """In one database: copying it costs more than all of this."""
    for at, name in enumerate(TOGETHER):
        try:
            refuses_a_second(postgres_ledger_url, name, 100 * (at + 1))
        except BaseException as error:
            error.add_note(name)
            raise


def refuses_a_second(url: str, name: str, first: int = 1) -> None:
    """Insert a row, a second one that must be refused, and one that differs in the first value."""
    table, together = TOGETHER[name]
    key = next(iter(together))
    values = together | {key: f"{together[key]} {first}"}
    insert_rows(url, [a_row(url, table, first, values)])
    with pytest.raises((psycopg.errors.UniqueViolation, sqlite3.IntegrityError), match="(?i)unique"):
        insert_rows(url, [a_row(url, table, first + 1, values)])
    insert_rows(url, [a_row(url, table, first + 2, values | {key: f"other {first}"})])


def test_every_index_is_tried() -> None:
    assert TOGETHER.keys() == unique_names(), "say in unique_rows.py which rows a new index keeps apart"
