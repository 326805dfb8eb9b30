"""The schema version of a ledger and the version this program needs, read without Alembic.

Alembic and SQLAlchemy take half a second to import: a server whose ledger is up to date starts without them.
"""

import asyncio
import contextlib
import functools
import re
import sqlite3
from pathlib import Path
from typing import Final

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.core.postgres_url import connect

READ_TIMEOUT_S: Final = 30.0
MIGRATIONS: Final = Path(__file__).parent / "migrations"
QUERY: Final = "SELECT version_num FROM alembic_version"


@functools.cache
def known_versions() -> dict[str, str]:
    """Every version this program knows and its predecessor (empty: the first). Numbers are only names."""
    sources = [path.read_text() for path in (MIGRATIONS / "versions").glob("v*.py")]
    return {_declared("revision", source): _declared("down_revision", source) for source in sources}


def _declared(name: str, source: str) -> str:
    found = re.search(rf'^{name} = "(\w+)"$', source, re.MULTILINE)
    return found[1] if found else ""


def newest_version() -> str:
    """The version this program needs: the one without a successor."""
    versions = known_versions()
    (newest,) = versions.keys() - versions.values()
    return newest


def schema_version(url: str) -> str:
    """The version of the ledger at `url`, or empty. Blocks: in an event loop, call it from a thread."""
    if is_postgres(url):
        return asyncio.run(asyncio.wait_for(_of_postgres(url), READ_TIMEOUT_S))
    return _of_sqlite(sqlite_path(url)) if sqlite_path(url).exists() else ""


def _of_sqlite(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(path, timeout=READ_TIMEOUT_S)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
            return ""
        row = connection.execute(QUERY).fetchone()
    return str(row[0]) if row else ""


async def _of_postgres(url: str) -> str:
    connection = await connect(url, command_timeout=READ_TIMEOUT_S)
    try:
        if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
            return ""
        return str(await connection.fetchval(QUERY) or "")
    finally:
        await connection.close()
