"""The store in a SQL database, for those who have no Redis: PostgreSQL for many servers, SQLite for one machine.

Each decision is one atomic step over all its rules: one statement in PostgreSQL, one transaction in SQLite. Threads
share the calls of `blocking_calls`, the tasks of an event loop those of `sql_asyncio`, and all stores of a process at
one URL share both (`shared_calls`). The database's clock decides unless a request carries its own time, so servers
whose clocks differ agree. A caller whose call is not answered within the deadline gets `StoreDown`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from frontrow.core.breaker import Breaker
from frontrow.core.clock import SystemClock
from frontrow.core.errors import ConfigError
from frontrow.limits.stats import Stats
from frontrow.limits.stores.protocol import (
    DEFAULT_PREFIX,
    SQLITE_SCHEMES,
    QuotaSlot,
    StoreRequest,
    StoreResult,
    check_prefix,
)
from frontrow.limits.stores.shared_calls import CallSource, share_calls
from frontrow.limits.stores.store_health import StoreHealth


class Batches(Protocol):
    """Decides batches of requests over connections of one kind of database."""

    def send(self, connection: Any, requests: Sequence[StoreRequest], left_s: float) -> Sequence[StoreResult]: ...

    async def asend(self, connection: Any, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]: ...


class SqlSource(CallSource, Protocol):
    """A database: where it is, how to connect, and how requests are decided there."""

    @property
    def identity(self) -> Any:
        """Equal for sources that connect in the same way."""

    @property
    def shown(self) -> str:
        """Its URL without a password."""

    def batches(self, slots: Sequence[QuotaSlot], prefix: str) -> Batches: ...


class SqlStore:
    """Counts in a database, under keys starting with `prefix`."""

    tag_parts = None

    def __init__(
        self,
        source: SqlSource,
        slots: Sequence[QuotaSlot],
        stats: Stats,
        *,
        breaker: Breaker | None = None,
        deadline_s: float = 0.025,
        prefix: str = DEFAULT_PREFIX,
    ) -> None:
        batches = source.batches(slots, check_prefix(prefix))
        self.send, self.asend = batches.send, batches.asend
        self.health = StoreHealth(source.shown, breaker or Breaker(SystemClock()), stats)
        self._calls = share_calls(source, source.identity, self, deadline_s=deadline_s)

    def decide(self, request: StoreRequest) -> StoreResult:
        """Decide one request. Blocks while the database answers."""
        return self._calls.decide(self, request)

    def adecide(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """`decide` for asyncio."""
        return self._calls.adecide(self, request)

    def close(self) -> None:
        """Close the blocking connection, unless other stores use it."""
        self._calls.close(self)

    async def aclose(self) -> None:
        """Close the blocking connection and that of the running event loop, unless other stores use them."""
        await self._calls.aclose(self)


def open_sql_store(url: str, slots: Sequence[QuotaSlot], stats: Stats, **options: Any) -> SqlStore:
    """Open the store at a `postgresql://` or `sqlite:///` URL."""
    unknown = set(options) - {"prefix", "breaker", "deadline_s"}
    if unknown:
        raise ConfigError(f"a SQL store takes the option prefix, not {min(unknown)!r}", param=min(unknown))
    return SqlStore(sql_source(url), slots, stats, **options)


def sql_source(url: str) -> SqlSource:
    """The database that a URL names. Its client is imported only here."""
    if url.partition("://")[0] in SQLITE_SCHEMES:
        from frontrow.limits.stores.sqlite import SqliteSource

        return SqliteSource(url)
    from frontrow.limits.stores.postgresql import PostgresqlSource

    return PostgresqlSource(url)
