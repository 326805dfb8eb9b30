"""Statements of the sale stay inside one event (docs/scaling.md, "Large ledgers").

Each statement over a table of the sale names the event, or ids that belong to one event. The exceptions are listed here
with their reason. The second test sells, resells, refunds and scans two events at once on PostgreSQL, partitioned by
event, and looks at what was really sent, and which partitions PostgreSQL then read.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import asyncpg
import pytest

from frontrow.boxoffice.adapters.ledger.engine.postgres import SETTINGS, PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.statements import (
    Dialect,
    Statement,
    postgres_arguments,
    render,
    statements,
)
from frontrow.testing.clock import ManualClock
from tests.boxoffice.adapters.ledger.sale_statements import ACROSS, ANYWHERE, is_of_sale
from tests.boxoffice.refunds.market import open_market, sell_everything

IDS: Final = {"id", "booking_id", "payment_id", "entry_id", "ticket_id", "refund_id", "sold_as"}


def is_inside_one_event(statement: Statement) -> bool:
    given = {name for name, _ in (*statement.columns, *statement.params)}
    return "event_id" in given or bool(given & IDS)


def test_every_statement_of_the_sale_names_an_event_or_ids_of_one_and_the_exceptions_are_listed() -> None:
    outside = sorted(name for name, one in statements().items() if is_of_sale(one) and not is_inside_one_event(one))
    assert outside == sorted(name for names in ACROSS.values() for name in names)


class Recorder:
    """What was sent to PostgreSQL."""

    def __init__(self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Query] = []
        query, read = store._query, store.read

        async def noted_query(connection: Any, one: Query, **more: Any) -> Any:
            self.sent.append(one)
            return await query(connection, one, **more)

        async def noted_read(one: Query) -> Any:
            self.sent.append(one)
            return await read(one)

        monkeypatch.setattr(store, "_query", noted_query)
        monkeypatch.setattr(store, "read", noted_read)


async def test_a_whole_sale_on_postgresql_sends_no_statement_about_two_events(
    partitioned_ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two events are sold, resold, refunded and scanned; the ids in each statement are all of the same event, and each
    statement reads at most one partition of a table."""
    clock, events, url = ManualClock(), ("evt_one", "evt_two"), partitioned_ledger_url
    async with contextlib.AsyncExitStack() as stack:
        markets = [await stack.enter_async_context(open_market(url, clock, one)) for one in events]
        recorders = [Recorder(market.ledger.store, monkeypatch) for market in markets]  # type: ignore[arg-type]
        for market, event_id in zip(markets, events, strict=True):
            await sell_everything(market, event_id)
        event_of = await events_by_id(url)
    sent = [query for recorder in recorders for query in recorder.sent]
    across = {name for names in ACROSS.values() for name in names}
    of_sale = [one for one in sent if is_of_sale(statements()[one.name]) and one.name not in across]
    used = {one.name for one in of_sale}
    assert {"take_free_seats", "set_payments", "add_refunds", "join_waitlist", "add_returns", "add_scans"} <= used
    for query in of_sale:
        given = [value for row in (*query.rows, query.params) for value in row]
        about = {event_of[value] for value in given if value in event_of}
        assert len(about) == 1, (query.name, about, given)
    await split_by_event(of_sale, event_of, url)
    hot = await partitions_read({one.name: one for one in of_sale if one.name not in ANYWHERE}.values(), url)
    assert {"move_bookings", "set_payments", "tickets_of_bookings", "bookings_by_id", "stamp_scanned"} <= hot


async def split_by_event(queries: Iterable[Query], event_of: dict[Any, str], url: str) -> None:
    """A batch of rows of two events answers what the rows of each event answer alone: no row needs one of another
    event. So a statement of the group commit could be split between servers."""
    by_name: dict[str, dict[str, Query]] = {}
    for query in queries:
        about = {event_of[value] for row in query.rows for value in row if value in event_of}
        if not query.params and len(about) == 1:
            by_name.setdefault(query.name, {})[about.pop()] = query
    pairs = {name: tuple(found.values()) for name, found in by_name.items() if len(found) == 2}
    answered = set()
    connection = await asyncpg.connect(url, server_settings=SETTINGS)
    try:
        for name, (one, two) in pairs.items():
            alone = [await run_and_undo(connection, query) for query in (one, two)]
            both = await run_and_undo(connection, Query(name, [*one.rows, *two.rows]))
            assert sorted(both, key=repr) == sorted(alone[0] + alone[1], key=repr), name
            answered |= {name} if alone[0] and alone[1] else set()
    finally:
        await connection.close()
    assert {"lock_bookings", "active_counts", "payments_of_bookings", "bookings_by_id"} <= answered
    assert {"move_bookings", "set_payments", "take_free_seats", "add_tickets", "free_seats"} <= pairs.keys()


async def run_and_undo(connection: Any, query: Query) -> list[tuple[Any, ...]]:
    transaction = connection.transaction()
    await transaction.start()
    try:
        sql = render(Dialect.POSTGRES, partitioned=True)[query.name]
        return [tuple(row) for row in await connection.fetch(sql, *postgres_arguments(query))]
    except asyncpg.UniqueViolationError:  # seats that are taken by now
        return []
    finally:
        await transaction.rollback()


async def partitions_read(queries: Iterable[Query], url: str) -> set[str]:
    """Run each query again and roll it back. Fails if it reads two partitions of one table; which read any."""
    sql, hot = render(Dialect.POSTGRES, partitioned=True), set()
    connection = await asyncpg.connect(url, server_settings=SETTINGS)
    try:
        for query in queries:
            explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {sql[query.name]}"
            transaction = connection.transaction()
            await transaction.start()
            try:
                with contextlib.suppress(asyncpg.UniqueViolationError):  # a seat that is taken now, in its partition
                    plan = json.loads(await connection.fetchval(explain, *postgres_arguments(query)))
                    read = {one for one in scans_run(plan[0]["Plan"]) if re.search(r"_\d{3}$", one)}
                    assert len({one[:-4] for one in read}) == len(read), (query.name, read)
                    hot |= {query.name} if read else set()
            finally:
                await transaction.rollback()
    finally:
        await connection.close()
    return hot


def scans_run(plan: dict[str, Any]) -> Iterator[str]:
    """The tables that were really read."""
    if "Scan" in plan["Node Type"] and plan["Actual Loops"]:
        yield plan.get("Relation Name", "")
    for one in plan.get("Plans", ()):
        yield from scans_run(one)


async def events_by_id(url: str) -> dict[Any, str]:
    """The event of each id that the sale made."""
    found: dict[Any, str] = {}
    connection = await asyncpg.connect(url)
    try:
        for table in ("bookings", "tickets", "waitlist", "offers", "returns", "scans"):
            found |= {row[0]: row[1] for row in await connection.fetch(f"SELECT id, event_id FROM {table}")}
        for table in ("payments", "refunds"):
            rows = await connection.fetch(f"SELECT id, booking_id FROM {table}")
            found |= {row[0]: found[row[1]] for row in rows}
    finally:
        await connection.close()
    return found | {event_id: event_id for event_id in found.values()}
