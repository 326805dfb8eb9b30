"""Group commit: many callers, few transactions, each caller its own answer (B16, N3, N4)."""

import asyncio

import asyncpg
import pytest

from frontrow.boxoffice.adapters.ledger.audit_chain import GENESIS
from frontrow.boxoffice.adapters.ledger.engine.postgres import SETTINGS
from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import READER_SETTINGS
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, array_literal, render, statements
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.core.errors import Overloaded
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench, outcomes


async def test_what_arrives_during_a_commit_shares_the_next_one(ledger: SqlLedger) -> None:
    """N3: 500 callers, a handful of transactions, 500 answers."""
    bench = Bench(ledger, ledger)
    placed, refused = await outcomes([ledger.place_hold(bench.wish(n, n + 1000)) for n in range(500)])
    assert not refused
    assert [hold.seats for hold in placed] == [(n, n + 1000) for n in range(500)]
    assert len({hold.fence for hold in placed}) == 500
    assert ledger.line.calls <= 6
    entries = await ledger.store.read(Query("audit_page", params=("", 0, 1_000)))
    assert len(entries) <= 6, "one audit entry a transaction"


async def test_a_conflict_in_a_batch_costs_only_its_own_caller(ledger: SqlLedger) -> None:
    """N4: half of the wishes want taken seats; the other half is not slowed into transactions of their own."""
    bench = Bench(ledger, ledger)
    await outcomes([ledger.place_hold(bench.wish(n)) for n in range(0, 200, 2)])
    before = ledger.line.calls
    won, refused = await outcomes([ledger.place_hold(bench.wish(n)) for n in range(200)])
    assert len(won) == 100
    assert all(isinstance(error, SeatsTaken) for error in refused)
    assert ledger.line.calls - before <= 4
    assert ledger.store.batches_split == 0  # type: ignore[attr-defined]


async def test_a_broken_operation_splits_its_batch_a_few_times_only(ledger: SqlLedger) -> None:
    bench = Bench(ledger, ledger)
    calls = [ledger.place_hold(bench.wish(n)) for n in range(255)]
    await outcomes([*calls[:100], ledger.release_hold("bkg_\ud800", 1, bench.now_us), *calls[100:]])
    assert len(await bench.seats()) == 255
    assert 1 <= ledger.store.batches_split <= 8  # type: ignore[attr-defined]


async def test_a_cancelled_caller_takes_nothing_from_the_others(ledger: SqlLedger) -> None:
    bench = Bench(ledger, ledger)
    tasks = [asyncio.create_task(ledger.place_hold(bench.wish(n))) for n in range(60)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(one, asyncio.CancelledError) for one in done) == 20
    kept = [one for one in done if not isinstance(one, BaseException)]
    assert len(kept) == 40
    active = await bench.seats()
    assert all(seat in active for hold in kept for seat in hold.seats)


async def test_a_full_line_refuses_instead_of_growing(ledger_url: str) -> None:
    async with opened(ledger_url) as ledger:
        small = SqlLedger(ledger.store, max_waiting=50)
        bench = Bench(small, small)
        won, refused = await outcomes([small.place_hold(bench.wish(n)) for n in range(200)])
        assert len(won) == 50
        assert all(isinstance(error, Overloaded) and error.retry_after_s for error in refused)


async def test_reads_go_on_while_a_writer_is_in_a_transaction(ledger_url: str) -> None:
    """Reads never block writes and writes never block reads."""
    async with opened(ledger_url) as writer, opened(ledger_url) as reader:
        bench = Bench(writer, reader)
        hold = await bench.hold(1)
        storm = [asyncio.create_task(writer.place_hold(bench.wish(n))) for n in range(2, 400)]
        for _ in range(50):
            booking = await reader.booking(hold.booking_id)
            assert booking is not None
            assert booking.state is BookingState.HELD
        await asyncio.gather(*storm)
        assert len([seat async for seat in reader.active_seats(bench.event, bench.now_us)]) == 399


async def test_chains_begin_at_genesis_and_heads_follow(ledger: SqlLedger) -> None:
    bench = Bench(ledger, ledger)
    for seat in range(3):
        await bench.hold(seat)
    entries = await ledger.store.read(Query("audit_page", params=("", 0, 100)))
    heads = {row[0]: (row[1], row[2]) for row in await ledger.store.read(Query("audit_heads"))}
    for chain, (seq, last_hash) in heads.items():
        mine = [entry for entry in entries if entry[0] == chain]
        assert [entry[1] for entry in mine] == list(range(1, seq + 1))
        assert mine[0][4] == GENESIS
        assert mine[-1][5] == last_hash
    assert sum(seq for seq, _ in heads.values()) == 3


@pytest.mark.parametrize(
    "texts",
    [("a",), ("", '"', "\\", '\\"', "{}", ","), ("NULL", "null", "ü✓", "a b", "\n\t", "'; DROP TABLE bookings")],
)
async def test_array_literals_carry_any_text_unchanged(texts: tuple[str, ...], postgres_ledger_url: str) -> None:
    connection = await asyncpg.connect(postgres_ledger_url)
    try:
        assert await connection.fetchval("SELECT $1::text::text[]", array_literal(texts)) == list(texts)
        assert await connection.fetchval("SELECT $1::text::bigint[]", array_literal((1, -2, 3))) == [1, -2, 3]
    finally:
        await connection.close()


async def test_reads_by_key_keep_their_plan(postgres_ledger_url: str) -> None:
    """Planning took longer than reading. PostgreSQL keeps a plan from the sixth time on, if it looks as cheap."""
    connection = await asyncpg.connect(postgres_ledger_url, server_settings=READER_SETTINGS)
    try:
        for _ in range(8):
            await connection.fetch(render(Dialect.POSTGRES)["bookings_by_id"], '{"bkg_one"}')
        kept = "SELECT generic_plans FROM pg_prepared_statements WHERE statement LIKE 'SELECT b.id%'"
        assert await connection.fetchval(kept) == 3
    finally:
        await connection.close()


# Asked a few times per message, erasure or change of an account, or by operators, through small indexes: a plan made on
# empty tables reads one whole, until PostgreSQL has analysed them.
SELDOM = {"mails_of_messages", "forget_messages_to", "end_payment_accounts", "unblock_addresses"}


async def test_batches_meet_tables_by_index_even_if_planned_on_empty_ones(postgres_ledger_url: str) -> None:
    """A plan made on empty tables once fell to 325 holds/s at 20,000 bookings: rows first, then index conditions."""
    connection = await asyncpg.connect(postgres_ledger_url, server_settings=SETTINGS)
    try:
        for name, statement in statements().items():
            if not statement.columns or name in SELDOM:
                continue
            await connection.execute(f"PREPARE q AS {render(Dialect.POSTGRES)[name]}")
            nulls = ",".join(["NULL"] * len(statement.columns + statement.params))
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE q({nulls})")]
            await connection.execute("DEALLOCATE q")
            scans = [number for number, line in enumerate(plan) if "Scan" in line and "Function Scan" not in line]
            for number in scans:
                if "Subquery Scan" not in plan[number]:
                    assert "Index Cond" in plan[number + 1], f"{name} reads a whole table:\n" + "\n".join(plan)
    finally:
        await connection.close()
