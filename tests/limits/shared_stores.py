"""The stores that several servers share, by URL: how to open one for given slots, and how to empty it."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
import redis

from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import QuotaSlot, names_sql
from frontrow.limits.stores.redis import RedisStore
from frontrow.limits.stores.sql import SqlStore, open_sql_store
from frontrow.limits.stores.sqlite import SqliteConnection, sqlite_path

KINDS = ("redis", "postgresql", "sqlite")


def open_shared(url: str, slots: Sequence[QuotaSlot], **options: Any) -> RedisStore | SqlStore:
    """The store at `url` without what makes it resilient."""
    if names_sql(url):
        return open_sql_store(url, slots, Stats([]), deadline_s=5.0, **options)
    return RedisStore(url, slots, Stats([]), deadline_s=5.0, **options)


def empty_store(url: str) -> None:
    """Forget everything that was counted."""
    if url.startswith("sqlite"):
        connection = SqliteConnection(sqlite_path(url))
        connection.open().execute("DELETE FROM frontrow_limits_counts_1")
        connection.close()
    elif names_sql(url):
        with psycopg.connect(url, autocommit=True) as connected:
            row = connected.execute("SELECT to_regclass('frontrow_limits_1.counts')").fetchone()
            if row is not None and row[0] is not None:
                connected.execute("DELETE FROM frontrow_limits_1.counts")
    else:
        with redis.Redis.from_url(url) as client:
            client.flushdb()


def url_of_kind(kind: str, request: pytest.FixtureRequest) -> str:
    """The URL of an empty shared store."""
    if kind == "redis":
        return str(request.getfixturevalue("redis_url"))
    if kind == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path')}/limits.db"
    url = str(request.getfixturevalue("limits_database"))
    empty_store(url)
    return url
