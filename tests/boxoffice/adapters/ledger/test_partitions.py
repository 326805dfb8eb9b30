"""A ledger partitioned by event (ADR 0169): made by one command in one transaction, used by the same statements."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
from typer.testing import CliRunner

from frontrow.app.doctor import FAIL, schema
from frontrow.app.ledger_tools import verify_ledger
from frontrow.boxoffice.adapters.ledger.engine.postgres import SETTINGS
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render, statements
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.partitions import TABLES, partition_ledger
from frontrow.boxoffice.adapters.ledger.schema_versions import MIGRATIONS, PARTITIONS_SINCE, newest_version
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.cli.ledger import app
from frontrow.core.errors import Refused
from tests.boxoffice.adapters.ledger.sale_statements import ACROSS, ANYWHERE, is_of_sale
from tests.boxoffice.conftest import opened
from tests.contracts import ledger_holds, ledger_moves, payment_book
from tests.contracts.ledger_contract import CALLERS, Bench, outcomes

PART = re.compile(rf"({'|'.join(TABLES)})_\d{{3}}")
# The contract runs whole over partitions in `make soak`. These are the checks that a wrong key would fail first.
CHOSEN = (
    ledger_holds.of_many_racing_for_one_seat_exactly_one_wins,
    ledger_holds.the_same_booking_again_is_answered_as_before,
    ledger_moves.racing_confirms_confirm_once,
    payment_book.a_booking_has_one_payment_that_is_not_over,
    payment_book.a_full_refund_ends_the_booking_its_tickets_and_frees_its_seats,
)


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step of a plan."""
    yield plan
    for one in plan.get("Plans", ()):
        yield from nodes_of(one)


async def test_the_contract_holds_over_partitions(partitioned_ledger_url: str) -> None:
    async with opened(partitioned_ledger_url) as one, opened(partitioned_ledger_url) as two:
        for check in CHOSEN:
            await check(Bench(one, two))


def test_every_statement_of_one_event_is_planned_to_look_into_one_partition(partitioned_ledger_url: str) -> None:
    """Each step that reads a partition has the event among its conditions, so the other partitions are left out."""
    across = {name for names in ACROSS.values() for name in names} | ANYWHERE
    sql = render(Dialect.POSTGRES, partitioned=True)
    seen = set()
    with psycopg.connect(partitioned_ledger_url) as connection:
        for setting, value in SETTINGS.items():
            connection.execute(f"SET {setting} = '{value}'")  # type: ignore[call-overload]
        for name, statement in statements().items():
            if not is_of_sale(statement) or name in across:
                continue
            explain = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql[name]}"
            ((plans,),) = connection.execute(explain)  # type: ignore[call-overload]
            for node in nodes_of(plans[0]["Plan"]):
                if PART.fullmatch(node.get("Relation Name", "")) and node["Node Type"] != "ModifyTable":
                    conditions = node.get("Index Cond", "") + node.get("Filter", "")
                    assert re.search(r"\bevent_id = |= event_id\b", conditions), (name, node)
                    seen.add(name)
    assert {"move_bookings", "lock_payments", "tickets_of_bookings", "admit_tickets", "bookings_page"} <= seen


async def test_a_booking_id_belongs_to_one_event_in_any_race(partitioned_ledger_url: str) -> None:
    """A partition knows only its own ids. The directory's key decides between events, and the losers keep no seat."""
    async with opened(partitioned_ledger_url) as one, opened(partitioned_ledger_url) as two:
        sides = [Bench(one, two) for _ in range(CALLERS)]
        wishes = [side.wish(1, booking="bkg_TWICE", fan="ada") for side in sides]
        won, refused = await outcomes([side.either(n).place_hold(wishes[n]) for n, side in enumerate(sides)])
        assert (len(won), len(refused)) == (1, CALLERS - 1)
        held = [side.event for side in sides if await side.seats()]
        assert held == [won[0].event_id]
        booking = await two.booking("bkg_TWICE")
    assert booking is not None
    assert booking.event_id == won[0].event_id
    assert (await verify_ledger(partitioned_ledger_url))[0] == []


async def test_one_command_partitions_a_ledger_or_changes_nothing(postgres_ledger_url: str) -> None:
    url = postgres_ledger_url
    async with opened(url) as ledger:
        bench = Bench(ledger, ledger)
        hold, payment = await payment_book.sold(bench, 1, 2)
        with pytest.raises(Refused, match=r"servers or workers use this ledger .1 connection from .*stop every server"):
            await partition_ledger(url, 4, print)
    async with connected(url) as connection:
        await connection.execute("UPDATE payments SET event_id = ''")  # as the version before wrote it
    with pytest.raises(KeyboardInterrupt):
        await partition_ledger(url, 4, _interrupt_at_tickets)
    assert (await asyncio.to_thread(_run, "--check", "--ledger", url)).splitlines()[-1] == "not partitioned"
    told = await asyncio.to_thread(_run, "--partitions", "4", "--ledger", url)
    assert "payments: 1 rows in 4 partitions" in told
    assert "Nobody can buy until this has ended" in told
    shown = await asyncio.to_thread(_run, "--check", "--ledger", url)
    assert re.search(r"bookings +4 partitions .* about 1 rows", shown)
    assert "the ledger is partitioned already" in await asyncio.to_thread(_run, "--ledger", url, code=2)
    assert (await asyncio.to_thread(schema, url)).state != FAIL
    await _migrates_on(url)
    async with opened(url) as ledger:
        later = Bench(ledger, ledger)
        later.event = bench.event
        assert (await later.hold(3)).fence == hold.fence + 1, "numbers go on"
        assert (await ledger.payments.payments_of(hold.booking_id))[0].id == payment.id, "it was given its event"
        refund = payment_book.owed(later, payment, 1, 1, 2)
        await ledger.payments.ask_refund(refund, fence=hold.fence, now_us=later.now_us)
        booking = await ledger.booking(hold.booking_id)
    assert booking is not None
    assert booking.state is BookingState.REFUNDED
    wrong, entries = await verify_ledger(url)
    assert (wrong, entries > 0) == ([], True)
    async with connected(url) as connection:
        await connection.execute("DELETE FROM booking_events WHERE booking_id = $1", hold.booking_id)
    (told,) = (await verify_ledger(url))[0]
    assert told == f"booking {hold.booking_id}: the directory of bookings does not say that its event is {bench.event}"


def _interrupt_at_tickets(line: str) -> None:
    if line.startswith("tickets"):
        raise KeyboardInterrupt


def _run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["partition", *words])
    assert done.exit_code == code, done.output
    return done.output


async def _migrates_on(url: str) -> None:
    """What migrations do: columns and indexes for all partitions. Programs from before partitions stay unserved."""
    async with connected(url) as connection:
        await connection.execute("ALTER TABLE tickets ADD COLUMN of_the_future text NOT NULL DEFAULT ''")
        await connection.execute("CREATE INDEX of_the_future ON tickets (of_the_future) WHERE ticket_state = 'valid'")
        assert await asyncio.to_thread(migrate, url) == newest_version()
        served = {row[0] for row in await connection.fetch("SELECT version FROM served_versions")}
        assert "0037" not in served
        assert newest_version() in served


def test_a_later_migration_makes_no_key_that_partitions_cannot_have() -> None:
    """PostgreSQL refuses a unique index on a partitioned table unless it contains the event."""
    later = [path.read_text() for path in (MIGRATIONS / "versions").glob("v*.py") if path.name[1:5] > PARTITIONS_SINCE]
    unique = re.compile(rf"CREATE UNIQUE INDEX \w+\s+ON ({'|'.join(TABLES)}) \(([^)]*)\)")
    assert unique.search("CREATE UNIQUE INDEX a ON bookings (id)"), "it would be found"
    assert [found[0] for text in later for found in unique.finditer(text) if "event_id" not in found[2]] == []


def test_sqlite_has_no_partitions(sqlite_ledger_url: str) -> None:
    assert "SQLite ledger is one file and has no partitions" in _run("--ledger", sqlite_ledger_url, code=2)
