"""A ledger that a newer program migrated still serves programs of the versions it lists (ADR 0128): they start, and one
that it no longer serves is told so in a sentence.
"""

import asyncio
import re

import psycopg
import pytest

from frontrow.app.doctor import FAIL, WARN, schema
from frontrow.app.ledger_tools import migrate_ledger
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.schema_versions import (
    MIGRATIONS,
    compatible_versions,
    known_versions,
    newest_version,
)
from frontrow.core.errors import ConfigError


def change(url: str, *statements: str) -> None:
    """As a program of the future does."""
    if url.startswith("sqlite"):
        import sqlite3

        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_program_starts_on_the_next_schema_as_long_as_it_is_served(request, tmp_path, kind):
    url = request.getfixturevalue("postgres_ledger_url") if kind == "postgres" else f"sqlite:///{tmp_path}/a.db"
    if kind == "sqlite":
        await asyncio.to_thread(migrate, url)
    change(
        url,
        "UPDATE alembic_version SET version_num = 'next'",
        "INSERT INTO served_versions (version) VALUES ('next')",
        "ALTER TABLE bookings ADD COLUMN of_the_future text NOT NULL DEFAULT ''",
    )
    ledger = await open_ledger(url)
    assert await ledger.time_us() > 0
    await ledger.aclose()
    assert (await asyncio.to_thread(schema, url)).state == WARN
    assert await asyncio.to_thread(migrate_ledger, url) == ("next", "next"), "nothing to do, and no step back"
    change(url, f"DELETE FROM served_versions WHERE version = '{newest_version()}'")  # the next one took something away
    for opening in (open_ledger(url), asyncio.to_thread(migrate_ledger, url)):
        with pytest.raises(ConfigError, match="schema next, which does not serve this program .* install a newer one"):
            await opening
    assert (await asyncio.to_thread(schema, url)).state == FAIL


def test_versions_are_served_back_to_the_last_contraction(postgres_ledger_url):
    """Version 12 renamed people, and programs before 39 cannot show its tickets: neither serves earlier ones."""
    newest = newest_version()
    served = compatible_versions(newest)
    assert served[0] == newest
    assert served[-1] == "0039"
    assert compatible_versions("0038")[-1] == "0012"
    assert len(served) == len(set(served))
    assert set(compatible_versions("0011")) & set(compatible_versions("0038")) == set()
    assert set(served) <= set(known_versions())
    with psycopg.connect(postgres_ledger_url) as connection:
        listed = {row[0] for row in connection.execute("SELECT version FROM served_versions")}
    assert listed == set(served)


TAKES_AWAY = re.compile(r"\b(DROP (TABLE|COLUMN|CONSTRAINT)|RENAME|ALTER COLUMN|SET NOT NULL)\b", re.IGNORECASE)
NEW_COLUMN = re.compile(r"ADD COLUMN [^;]*", re.IGNORECASE)


def test_a_migration_that_takes_something_away_says_so():
    """All that is listed as served only adds; a new column has a value for rows that an old program writes."""
    sources = [path.read_text() for path in (MIGRATIONS / "versions").glob("v*.py")]
    adding = compatible_versions(newest_version())[:-1] + compatible_versions("0038")[:-1]
    served = [text for text in sources if any(f'\nrevision = "{version}"' in text for version in adding)]
    assert len(served) == len(adding)
    for text in served:
        assert not TAKES_AWAY.search(text), text[:200]
        for column in NEW_COLUMN.findall(text):
            assert "NOT NULL" not in column or "DEFAULT" in column, column
    assert TAKES_AWAY.search((MIGRATIONS / "versions" / "v0012_persons.py").read_text()), "the canary"
