"""An upgrade that is killed anywhere starts again: each version, at several statements, on both databases (N4)."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path
from frontrow.boxoffice.adapters.ledger.schema_versions import known_versions, newest_version, schema_version
from tests.support.sources import ROOT

POSTGRES = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
    " WHERE table_schema = 'public'",
    "SELECT tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '' FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    "SELECT event_object_table, trigger_name, action_statement, '', '' FROM information_schema.triggers",
    "SELECT version, '', '', '', '' FROM served_versions",
)


def schema_of(url: str) -> set[tuple[str, ...]]:
    """Everything that an upgrade makes."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(sqlite_path(url))) as file:
            made = file.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
            return {*made, *file.execute("SELECT 'served', version FROM served_versions").fetchall()}
    with psycopg.connect(url) as admin:
        return {tuple(map(str, row)) for query in POSTGRES for row in admin.execute(query)}  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_upgrade_that_is_killed_midway_starts_again(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    undisturbed = request.getfixturevalue(f"{kind}_ledger_url")
    command = [sys.executable, "-m", "tests.boxoffice.adapters.ledger.killed_migrations", url]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=175, check=False)
    assert told.returncode == 0, told.stderr
    kills = json.loads(told.stdout)
    assert kills.keys() == known_versions().keys()
    assert min(kills.values()) >= 2, kills
    assert schema_version(url) == newest_version()
    assert schema_of(url) == schema_of(undisturbed)
