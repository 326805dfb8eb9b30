"""Two servers on one PostgreSQL whose transactions cross at a statement of the test's choice, in every run.

The first call stops behind the statement. Then the second one starts. The first goes on as soon as the second is behind
the same statement, has ended, or waits for a lock. So a lock that works makes the second wait, and without it both have
read the same. Nothing depends on luck or on time.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg

from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from tests.contracts.ledger_contract import Bench
from tests.support.eventually import eventually

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
MEET_WITHIN_S = 4.0  # less than a transaction may be idle
Call = Callable[[], Awaitable[Any]]


class Crossing:
    """Where two transactions meet."""

    def __init__(self, watch: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._watch = watch
        self._statement = ""
        self._arrived: list[PostgresStore] = []
        self._second: asyncio.Future[Any] | None = None

    async def race(self, statement: str, first: Call, second: Call) -> list[Any]:
        """The answers or errors of both calls, which cross behind the statement."""
        self._statement, self._arrived, self._second = statement, [], None
        one = asyncio.ensure_future(first())
        await eventually(lambda: bool(self._arrived) or one.done())
        assert self._arrived, f"the first call never ran {statement}"
        self._second = asyncio.ensure_future(second())
        answers = await asyncio.gather(one, self._second, return_exceptions=True)
        self._statement = ""
        return answers

    async def passed(self, store: PostgresStore, statement: str) -> None:
        """The store has run a statement."""
        if statement != self._statement or store in self._arrived:
            return
        self._arrived.append(store)
        if len(self._arrived) == 1:
            await eventually(self._may_go_on, MEET_WITHIN_S)

    async def _may_go_on(self) -> bool:
        if len(self._arrived) > 1 or (self._second is not None and self._second.done()):
            return True
        return bool(await self._watch.fetchval(WAITING))


class CrossingStore(PostgresStore):
    """A store that stops at the crossing."""

    crossing: Crossing

    async def _query(self, connection: Any, query: Query, *, optimistic: bool) -> list[Row]:
        rows = await super()._query(connection, query, optimistic=optimistic)
        await self.crossing.passed(self, query.name)
        return rows


class RaceBench(Bench):
    """Two servers, and where they cross."""

    def __init__(self, one: SqlLedger, two: SqlLedger, crossing: Crossing) -> None:
        super().__init__(one, two)
        self.race = crossing.race

    async def won_and_refused(self, statement: str, first: Call, second: Call) -> tuple[list[Any], list[Any]]:
        """The answers and the errors of a race."""
        answers = await self.race(statement, first, second)
        return (
            [one for one in answers if not isinstance(one, BaseException)],
            [one for one in answers if isinstance(one, BaseException)],
        )


@contextlib.asynccontextmanager
async def racing(url: str) -> AsyncIterator[RaceBench]:
    """Two servers with one writer each."""
    async with contextlib.AsyncExitStack() as stack:
        watch = await asyncpg.connect(url)
        stack.push_async_callback(watch.close)
        crossing = Crossing(watch)
        ledgers = []
        for _ in range(2):
            store = CrossingStore(url, writers=1)
            store.crossing = crossing
            ledger = SqlLedger(store)
            stack.push_async_callback(ledger.aclose)
            ledgers.append(ledger)
        yield RaceBench(ledgers[0], ledgers[1], crossing)
