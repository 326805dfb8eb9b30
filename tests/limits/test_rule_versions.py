"""The stores of rule books pass one contract, and a broken one does not."""

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits.stores.rule_versions import (
    MemoryRuleVersions,
    RuleVersion,
    RuleVersions,
    open_rule_versions,
)
from frontrow.limits.stores.sql_rule_versions import POSTGRESQL_SCHEMA, SqliteDatabase
from tests.contracts.rule_versions import CHECKS, Open, check_one_of_fifty_operators_wins
from tests.limits.shared_stores import KINDS, url_of_kind
from tests.support.eventually import eventually_sync


@pytest.fixture(params=["memory", *KINDS])
def open_versions(request: pytest.FixtureRequest) -> Open:
    if request.param == "memory":
        one = MemoryRuleVersions()
        return lambda: one
    url = url_of_kind(request.param, request)
    if request.param == "postgresql":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS frontrow_limits_rules_1 CASCADE")
    return lambda: open_rule_versions(url, "shop", timeout_s=5.0)


@pytest.fixture
def versions(open_versions: Open) -> Iterator[RuleVersions]:
    opened = open_versions()
    yield opened
    opened.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_store_of_rule_books_keeps_the_contract(versions: RuleVersions, check: Callable[..., None]) -> None:
    check(versions)


def test_one_of_fifty_operators_wins(open_versions: Open) -> None:
    """They also create the table at the same moment."""
    check_one_of_fifty_operators_wins(open_versions)


def test_operators_make_the_table_of_rule_books_one_after_the_other(postgres_url: str) -> None:
    """Two that create a schema at the same moment fail otherwise, though it says IF NOT EXISTS."""
    lock = next(re.finditer(r"pg_advisory_xact_lock\((\d+)\)", POSTGRESQL_SCHEMA))[1]
    versions = open_rule_versions(postgres_url, "shop", timeout_s=60.0)
    with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url, autocommit=True) as seen:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (int(lock),))
        with ThreadPoolExecutor(1) as threads:
            newest = threads.submit(versions.newest)

            def waits() -> bool:
                waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                found = seen.execute(waiting).fetchone()
                return found is not None and found[0] > 0

            assert eventually_sync(lambda: waits() or newest.done())
            assert not newest.done(), "it did not wait for the other one"
            other.rollback()
            assert newest.result(timeout=60) is None
    versions.close()


class Forgetful(MemoryRuleVersions):
    """A broken store: it puts whatever its caller has seen."""

    def put(self, text: str, by: str, note: str, seen: int) -> RuleVersion:
        return super().put(text, by, note, len(self._versions))


def test_canary_a_store_that_overwrites_is_caught() -> None:
    one = Forgetful()
    with pytest.raises(AssertionError):
        check_one_of_fifty_operators_wins(lambda: one)


@pytest.mark.parametrize(("store", "name"), [("memory://", "shop"), ("sqlite:///a.db", "no name"), ("ftp://x", "shop")])
def test_a_book_that_nobody_could_share_is_refused(store: str, name: str) -> None:
    with pytest.raises(ConfigError, match=r"needs a store that all servers read|book's name|is unknown"):
        open_rule_versions(store, name, timeout_s=1.0)


def test_a_file_that_somebody_writes_before_it_has_its_journal_mode_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waits for a writer by itself, but not to change the journal mode: it was locked at once."""
    once, tries = SqliteDatabase._execute_once, threading.Semaphore(0)

    def counted(database: SqliteDatabase, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        tries.release()
        return once(database, statement, values)

    monkeypatch.setattr(SqliteDatabase, "_execute_once", counted)
    versions = open_rule_versions(f"sqlite:///{tmp_path}/limits.db", "shop", timeout_s=30.0)
    writer = sqlite3.connect(tmp_path / "limits.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as threads:
        newest = threads.submit(versions.newest)
        assert all(tries.acquire(timeout=10) for _ in range(2))
        writer.execute("COMMIT")
        assert newest.result() is None
    writer.close()
