"""Opens a ledger by its URL.

An embedded ledger (SQLite) upgrades its file to the newest schema. PostgreSQL must have been migrated by `frontrow
ledger migrate`, so that a fleet of servers is upgraded once and on purpose. A server of the version before may start
on a ledger that was migrated for the next one, as long as the ledger lists its version.
"""

import asyncio
import os
from typing import Any

from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.replica import MAX_LAG_S, Replica
from frontrow.boxoffice.adapters.ledger.engine.sqlite import SqliteStore
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.ledger_users import share_ledger
from frontrow.boxoffice.adapters.ledger.schema_versions import (
    check_served,
    known_versions,
    newest_version,
    schema_version,
)
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.core.errors import ConfigError


async def open_ledger(
    url: str,
    *,
    auto_migrate: bool | None = None,
    warm: bool = False,
    read_url: str = "",
    read_max_lag_s: float = MAX_LAG_S,
    **options: Any,
) -> SqlLedger:
    """The ledger at `url`. `auto_migrate` (default: only SQLite) upgrades its schema first.

    `warm`: connect and plan statements now, for servers. Otherwise the first hold waits for it.
    `read_url`: a replica for `SqlLedger.browsing`. Somebody must call its `look` or `run`, else it is not used.
    """
    if auto_migrate is None:
        auto_migrate = not is_postgres(url)
    if is_postgres(url):
        await _check_schema(url, auto_migrate)
        store = PostgresStore(url, **options)
        if warm:
            await store.warm()
        return SqlLedger(store, replica=Replica(read_url, store, max_lag_s=read_max_lag_s) if read_url else None)
    path = sqlite_path(url)
    lock = share_ledger(path)  # first: a restore must not replace the file between the look at its schema and its use
    try:
        await _check_schema(url, auto_migrate)
        return SqlLedger(SqliteStore(path, lock=lock, **options))
    except BaseException:
        if lock is not None:
            os.close(lock)
        raise


async def _check_schema(url: str, auto_migrate: bool) -> None:
    """Upgrade the schema if that is asked for and needed. Raises `ConfigError` if it does not serve this program."""
    version, newest = await asyncio.to_thread(schema_version, url), newest_version()
    if version and version not in known_versions():
        await asyncio.to_thread(check_served, url, version)
    elif version != newest and not auto_migrate:
        raise ConfigError(
            f"the ledger has schema {version or 'none'}, {newest} is needed: run `frontrow ledger migrate`",
            param="ledger",
        )
    elif version != newest:
        await asyncio.to_thread(_migrate, url)


def _migrate(url: str) -> None:
    from frontrow.boxoffice.adapters.ledger.migrate import migrate  # half a second to import, and rarely needed

    migrate(url)
