"""The versions of a rule book in PostgreSQL or SQLite: one row each. See `rule_versions`.

The primary key decides between two people who put at the same moment. The table is created on first use.
"""

import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from frontrow.core.errors import ConfigError
from frontrow.core.forks import begin_in_child
from frontrow.limits.stores.postgresql import BlockingConnection, connect_blocking, find_missing
from frontrow.limits.stores.protocol import SQLITE_SCHEMES
from frontrow.limits.stores.rule_versions import MAX_VERSIONS, RuleVersion, RuleVersions, conflict
from frontrow.limits.stores.sqlite import sqlite_path

SELECT = "SELECT version, text, put_by, at_us, note FROM @table WHERE book = ?"
NEWEST = """
SELECT * FROM (
    SELECT version, text, put_by, at_us, note FROM @table WHERE book = ? ORDER BY version DESC LIMIT 1
) AS newest WHERE version <> CAST(? AS bigint) OR at_us <> CAST(? AS bigint)
"""
PUT = """
INSERT INTO @table (book, version, text, put_by, at_us, note) SELECT ?, CAST(? AS bigint), ?, ?, @now_us, ?
WHERE (SELECT coalesce(max(version), 0) FROM @table WHERE book = ?) = CAST(? AS bigint)
ON CONFLICT DO NOTHING RETURNING version, text, put_by, at_us, note
"""
DROP_OLD = "DELETE FROM @table WHERE book = ? AND version <= ?"
POSTGRESQL_SCHEMA = """
BEGIN;
SELECT pg_advisory_xact_lock(5063714420861105);
CREATE SCHEMA IF NOT EXISTS frontrow_limits_rules_1;
CREATE TABLE IF NOT EXISTS frontrow_limits_rules_1.versions (
    book text NOT NULL, version bigint NOT NULL, text text NOT NULL, put_by text NOT NULL, at_us bigint NOT NULL,
    note text NOT NULL, PRIMARY KEY (book, version)
);
COMMIT;
"""
AGAIN_S = 0.005
SQLITE_SCHEMA = """
CREATE TABLE IF NOT EXISTS frontrow_limits_rule_versions_1 (
    book TEXT NOT NULL, version INTEGER NOT NULL, text TEXT NOT NULL, put_by TEXT NOT NULL, at_us INTEGER NOT NULL,
    note TEXT NOT NULL, PRIMARY KEY (book, version)
)
"""


class Database(Protocol):
    """Runs statements with `?` for values, each in a transaction of its own, and says what its clock and table are."""

    @property
    def table(self) -> str: ...

    @property
    def now_us(self) -> str: ...

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class SqlRuleVersions:
    """One book in a database."""

    def __init__(self, database: Database, book: str) -> None:
        self._database = database
        self._book = book

    def _execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        database = self._database
        written = statement.replace("@table", database.table).replace("@now_us", database.now_us)
        return database.execute(written, (self._book, *values))

    def newest(self, known: tuple[int, int] = (0, 0)) -> RuleVersion | None:
        return _first(self._execute(NEWEST, *known))

    def get(self, version: int) -> RuleVersion | None:
        return _first(self._execute(f"{SELECT} AND version = ?", version))

    def history(self, most: int = MAX_VERSIONS) -> list[RuleVersion]:
        return [_version(row) for row in self._execute(f"{SELECT} ORDER BY version DESC LIMIT ?", most)]

    def put(self, text: str, by: str, note: str, seen: int) -> RuleVersion:
        put = _first(self._execute(PUT, seen + 1, text, by, note, self._book, seen))
        if put is None:
            newest = self.newest()
            raise conflict(seen, newest.version if newest is not None else 0)
        self._execute(DROP_OLD, put.version - MAX_VERSIONS)
        return put

    def close(self) -> None:
        self._database.close()


def _first(rows: Sequence[tuple[Any, ...]]) -> RuleVersion | None:
    return _version(rows[0]) if rows else None


def _version(row: tuple[Any, ...]) -> RuleVersion:
    version, text, by, at_us, note = row
    return RuleVersion(int(version), text, by, int(at_us), note)


class PostgresqlDatabase:
    """One connection, opened on first use and again after a failure."""

    table = "frontrow_limits_rules_1.versions"
    now_us = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    _exists = "SELECT to_regclass('frontrow_limits_rules_1.versions') IS NOT NULL"

    def __init__(self, url: str, timeout_s: float) -> None:
        if find_missing("psycopg"):
            raise ConfigError("a rule book in PostgreSQL needs psycopg: pip install 'frontrow-limits[postgresql]'")
        self._url = url
        self._timeout_s = timeout_s
        self._connection: BlockingConnection | None = None
        self._lock = threading.Lock()
        begin_in_child(self._begin_in_child)

    def _begin_in_child(self) -> None:
        self._lock = threading.Lock()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close_in_child()

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        parts = statement.split("?")
        numbered = "".join(f"{part}${at}" for at, part in enumerate(parts[:-1], 1)) + parts[-1]
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = connect_blocking(self._url, self._exists, POSTGRESQL_SCHEMA)
                return self._connection.query(numbered, [str(value) for value in values], self._timeout_s)
            except BaseException:
                self._close()
                raise

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._close()


class SqliteDatabase:
    """A SQLite file, opened for each statement: there are few of them, and no connection is open during a fork."""

    table = "frontrow_limits_rule_versions_1"

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s

    @property
    def now_us(self) -> str:
        return str(time.time_ns() // 1000)

    def execute(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement. SQLite waits for locks by itself, but not while somebody changes the journal mode."""
        until_s = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._execute_once(statement, values)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() >= until_s:
                    raise
            time.sleep(AGAIN_S)

    def _execute_once(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self._path, timeout=self._timeout_s, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(SQLITE_SCHEMA)
            return connection.execute(statement, values).fetchall()
        finally:
            with suppress(sqlite3.Error):
                connection.close()

    def close(self) -> None:
        """Nothing to close."""


def open_sql_versions(url: str, book: str, timeout_s: float) -> RuleVersions:
    """The versions of a book at a `postgresql://` or `sqlite:///` URL."""
    database: Database
    if url.partition("://")[0] in SQLITE_SCHEMES:
        database = SqliteDatabase(sqlite_path(url), timeout_s)
    else:
        database = PostgresqlDatabase(url, timeout_s)
    return SqlRuleVersions(database, book)
