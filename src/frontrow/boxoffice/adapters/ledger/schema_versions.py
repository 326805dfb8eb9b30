"""The schema version of a ledger and the version this program needs, read without Alembic.

Migrations only add, unless they declare `contracts = True`. So a ledger that a newer program migrated still serves
programs of the versions since the last contraction: it lists them, and they may start on it (ADR 0128).

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
from frontrow.core.errors import ConfigError
from frontrow.shared.postgres_url import connect

READ_TIMEOUT_S: Final = 30.0
MIGRATIONS: Final = Path(__file__).parent / "migrations"
QUERY: Final = "SELECT version_num FROM alembic_version"
SERVED: Final = "SELECT version FROM served_versions"
PARTITIONS_SINCE: Final = "0038"  # programs of earlier versions cannot use a ledger that is partitioned by event


@functools.cache
def known_versions() -> dict[str, str]:
    """Every version this program knows and its predecessor (empty: the first). Numbers are only names."""
    return {_declared("revision", source): _declared("down_revision", source) for source in _sources()}


def compatible_versions(newest: str, *, partitioned: bool = False) -> list[str]:
    """The versions whose programs work on schema `newest`, itself first: back to the last contraction.

    `partitioned`: or to the first that knows partitions.
    """
    versions, found = known_versions(), [newest]
    last = _contractions() | ({PARTITIONS_SINCE} if partitioned else set())
    while (before := versions[found[-1]]) and found[-1] not in last:
        found.append(before)
    return found


@functools.cache
def _contractions() -> set[str]:
    """The versions that take something away which programs of earlier versions need."""
    contracts = re.compile(r"^contracts = True\b", re.MULTILINE)
    return {_declared("revision", source) for source in _sources() if contracts.search(source)}


def _sources() -> list[str]:
    return [path.read_text() for path in (MIGRATIONS / "versions").glob("v*.py")]


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
        async with connection.transaction():
            if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
                return ""
            return str(await connection.fetchval(QUERY) or "")
    finally:
        await connection.close()


def check_served(url: str, version: str) -> None:
    """Raise unless the ledger at `url`, whose `version` a newer program made, lists our version. Blocks."""
    if newest_version() not in _served(url):
        raise ConfigError(
            f"the ledger has schema {version}, which does not serve this program (its schema is {newest_version()}): "
            "install a newer one",
            param="ledger",
        )


def _served(url: str) -> set[str]:
    if is_postgres(url):
        return asyncio.run(asyncio.wait_for(_served_by_postgres(url), READ_TIMEOUT_S))
    with contextlib.closing(sqlite3.connect(sqlite_path(url), timeout=READ_TIMEOUT_S)) as connection:
        return {str(row[0]) for row in connection.execute(SERVED)}


async def _served_by_postgres(url: str) -> set[str]:
    connection = await connect(url, command_timeout=READ_TIMEOUT_S)
    try:
        async with connection.transaction():
            return {str(row[0]) for row in await connection.fetch(SERVED)}
    finally:
        await connection.close()
