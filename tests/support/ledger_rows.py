"""Everything that a ledger in a file holds, table by table."""

import contextlib
import sqlite3

from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path

Rows = dict[str, list[tuple[object, ...]]]


def read_all_rows(url: str) -> Rows:
    """Every row of every table of the SQLite ledger at `url`."""
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as file:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        tables = [row[0] for row in file.execute(names)]
        return {table: file.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}
