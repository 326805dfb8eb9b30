"""How statements reach the databases: few round trips on PostgreSQL, bound values in pieces on SQLite (N2, N3)."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from asyncpg.connection import LoggedQuery

from frontrow.boxoffice.adapters.ledger.engine.postgres import WARM, PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.engine.sqlite import PIECES, _pieces
from frontrow.boxoffice.adapters.ledger.engine.statements import sqlite_piece, statements
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.holds.model.bookings import MOVES, Move, sources
from frontrow.shared.sqlite_wal import use_wal
from tests.contracts.ledger_contract import Bench

ROW_BY_ROW = sorted(name for name, statement in statements().items() if statement.row_by_row)


async def test_a_batch_of_holds_is_six_round_trips_and_a_warm_ledger_has_them_planned(postgres_ledger_url: str) -> None:
    ledger = await open_ledger(postgres_ledger_url, warm=True)
    try:
        store = ledger.store
        assert isinstance(store, PostgresStore)
        assert not await store.read(Query("audit_heads")), "warming writes nothing"
        told: list[LoggedQuery] = []
        for writer in store._idle:
            assert writer.connection is not None
            prepared = await writer.connection.fetch("SELECT statement FROM pg_prepared_statements")
            assert {store._sql[name] for name in WARM} <= {row[0] for row in prepared}
            writer.connection.add_query_logger(told.append)
        bench = Bench(ledger, ledger)
        await ledger.place_hold(bench.wish(1, 2, cap=4))
        first_words = [query.query.split()[0].strip(";") for query in told]
        assert first_words == ["BEGIN", "SELECT", "INSERT", "INSERT", "WITH", "COMMIT"]
    finally:
        await ledger.aclose()


def test_rows_are_cut_into_pieces_of_few_sizes_and_none_is_lost() -> None:
    for count in (0, 1, 3, 4, 5, 63, 64, 65, 512, 1_023):
        rows = [(n,) for n in range(count)]
        cut = list(_pieces(rows))
        assert [row for piece in cut for row in piece] == rows
        assert {len(piece) for piece in cut} <= set(PIECES)


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_a_piece_meets_its_tables_by_index(name: str, sqlite_template: Path) -> None:
    connection = sqlite3.connect(sqlite_template)
    try:
        for count in PIECES:
            values = [0] * (count * len(statements()[name].columns))
            plan = connection.execute("EXPLAIN QUERY PLAN " + sqlite_piece(name, count), values).fetchall()
            scanned = [row[3] for row in plan if row[3].startswith("SCAN ")]
            assert all(what in ("SCAN r", "SCAN a") or "CONSTANT ROW" in what for what in scanned), plan
    finally:
        connection.close()


def test_statements_in_pieces_decide_each_row_by_itself() -> None:
    """A move whose target is another source of the same move could be made twice, once in each of two pieces."""
    for name in ROW_BY_ROW:
        assert statements()[name].text.count(":rows") == 1
        assert not statements()[name].params
    for move in Move:
        for state in sources(move):
            assert MOVES[state, move].to not in set(sources(move)) - {state}


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """SQLite refuses one of two who switch a file to its WAL at the same moment, and does not wait."""
    for round_number in range(40):
        path, together, refused = tmp_path / f"{round_number}.sqlite", threading.Barrier(8), list[Exception]()
        first = sqlite3.connect(path)
        first.execute("CREATE TABLE one (number)")
        first.close()

        def open_it(path: Path = path, together: threading.Barrier = together, refused: Any = refused) -> None:
            connection = sqlite3.connect(path, isolation_level=None)
            together.wait()
            try:
                use_wal(connection)
                connection.execute("INSERT INTO one VALUES (1)")
            except sqlite3.OperationalError as error:
                refused.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=open_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == []
