"""A commit is on disk before it is answered (N4): read from the connections that write, not from the settings."""

import contextlib
from pathlib import Path

import psycopg

from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from tests.boxoffice.conftest import opened
from tests.boxoffice.shop import sqlite_url
from tests.contracts.ledger_contract import Bench

FULL = 2  # what `PRAGMA synchronous` says


async def test_every_connection_to_a_file_waits_for_the_disk(tmp_path: Path) -> None:
    async with opened(sqlite_url(tmp_path)) as ledger:
        await Bench(ledger, ledger).hold(1)
        assert isinstance(ledger.store, SqliteStore)
        connections = ledger.store._connections
        assert connections
        for connection in connections:
            found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
            assert found == [FULL, "wal"]


async def test_every_writer_waits_for_postgresql_even_if_its_database_does_not(postgres_ledger_url: str) -> None:
    name = postgres_ledger_url.rpartition("/")[2].partition("?")[0]
    with contextlib.closing(psycopg.connect(postgres_ledger_url, autocommit=True)) as admin:
        admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')  # type: ignore[arg-type]
    async with opened(postgres_ledger_url) as ledger:
        assert isinstance(ledger.store, PostgresStore)
        await ledger.store.warm()
        connections = [writer.connection for writer in ledger.store._idle]
        assert connections
        for connection in connections:
            assert connection is not None
            assert await connection.fetchval("SHOW synchronous_commit") == "on"
