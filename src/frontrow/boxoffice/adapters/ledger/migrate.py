"""Upgrades a ledger to the newest schema with Alembic, on SQLite and PostgreSQL. Safe to repeat.

Uses its own connection and blocks: call it from a thread when an event loop is running. Two servers that start at once
on one PostgreSQL wait for each other on an advisory lock.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, create_engine, inspect, pool, text
from sqlalchemy.event import listen
from sqlalchemy.ext.asyncio import create_async_engine

from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import IS_PARTITIONED
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.schema_versions import MIGRATIONS, compatible_versions
from frontrow.shared.postgres_url import PostgresHosts

LOCK_KEY: Final = 0x66726F6E74726F77  # "frontrow"
HEAD: Final = "head"
Act = Callable[[Connection], str]
_one_at_a_time = threading.Lock()  # Alembic keeps its context in module globals


def migrate(url: str, revision: str = HEAD) -> str:
    """Upgrade the ledger at `url` to `revision` and return the version it has then."""
    with _one_at_a_time:
        if is_postgres(url):
            return asyncio.run(_on_postgres(url, lambda connection: _upgrade(connection, revision)))
        return _on_sqlite(url, lambda connection: _upgrade(connection, revision))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _upgrade(connection: Connection, revision: str) -> str:
    config = _config()
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK_KEY})
        connection.commit()
    command.upgrade(config, revision)
    version = _version(connection)
    _list_served(connection, version)
    return version


def _list_served(connection: Connection, version: str) -> None:
    """Write down which versions of the program this schema serves."""
    if "served_versions" in inspect(connection).get_table_names():
        postgres = connection.dialect.name == "postgresql"
        partitioned = postgres and bool(connection.execute(text(IS_PARTITIONED)).scalar())
        served = [{"version": one} for one in compatible_versions(version, partitioned=partitioned)]
        connection.execute(text("DELETE FROM served_versions"))
        connection.execute(text("INSERT INTO served_versions (version) VALUES (:version)"), served)


def _version(connection: Connection) -> str:
    return MigrationContext.configure(connection).get_current_revision() or ""


def _on_sqlite(url: str, act: Act) -> str:
    engine = create_engine(f"sqlite:///{sqlite_path(url)}", poolclass=pool.NullPool)
    # sqlite3 would commit each DDL statement by itself; with our own BEGIN a killed migration leaves nothing behind.
    listen(engine, "connect", lambda raw, record: setattr(raw, "isolation_level", None))
    listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.connect() as connection:
            answer = act(connection)
            connection.commit()
            return answer
    finally:
        engine.dispose()


async def _on_postgres(url: str, act: Act) -> str:
    hosts = PostgresHosts(url)
    engine = create_async_engine("postgresql+asyncpg://", async_creator=hosts.connect, poolclass=pool.NullPool)
    try:
        async with engine.connect() as connection:
            answer = await connection.run_sync(act)
            await connection.commit()
            return answer
    finally:
        await engine.dispose()
