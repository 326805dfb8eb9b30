"""Writes the ledger's tables and indexes into one file, as all migrations together leave them on SQLite.

python -m docsite.ledger_schema > src/frontrow/boxoffice/adapters/ledger/schema.sql
"""

import sqlite3
import tempfile
import textwrap
from contextlib import closing
from pathlib import Path
from typing import Final

from frontrow.boxoffice.adapters.ledger.migrate import migrate

HEAD: Final = """\
-- The ledger's tables and indexes, to read. Nothing runs this file: the migrations beside it make the schema, and
-- `python -m docsite.ledger_schema` writes it from them. PostgreSQL has the same names. No two live bookings share a
-- seat because of the unique index `one_active_booking_per_seat`."""
ALL: Final = """
SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name <> 'alembic_version'
ORDER BY tbl_name, type DESC, name"""
WIDTH: Final = 118


def schema() -> str:
    """The statements that would make an empty ledger of today's version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        migrate(f"sqlite:///{path}")
        with closing(sqlite3.connect(path)) as ledger:
            found = [str(sql) for (sql,) in ledger.execute(ALL)]
    return "\n\n".join([HEAD, *(f"{_wrapped(sql)};" for sql in found)]) + "\n"


def _wrapped(sql: str) -> str:
    words = " ".join(sql.split())
    lines = textwrap.wrap(words, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


if __name__ == "__main__":
    print(schema(), end="")
