"""The audit log (B16, B20): append-only, hash-chained; whatever is changed, removed or cut off shows."""

import sqlite3

import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.audit_chain import entry_hash
from frontrow.boxoffice.adapters.ledger.audit_verification import Heads, verify
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres
from tests.boxoffice.adapters.ledger.raw_sql import run_sql
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench, outcomes


def without_guard(url: str) -> list[str]:
    """Statements that take the append-only guard away."""
    if is_postgres(url):
        return ["ALTER TABLE audit_log DISABLE TRIGGER ALL"]
    return ["DROP TRIGGER audit_log_no_update", "DROP TRIGGER audit_log_no_delete"]


async def filled(url: str) -> Heads:
    """Ten transactions by one writer; the heads afterwards."""
    options = {"writers": 1} if is_postgres(url) else {}
    async with opened(url, **options) as ledger:
        bench = Bench(ledger, ledger)
        for seat in range(9):
            await bench.hold(seat)
        await outcomes([ledger.place_hold(bench.wish(n)) for n in range(100, 160)])
        rows = await ledger.store.read(Query("audit_heads"))
    return {row[0]: (row[1], row[2]) for row in rows}


async def problems_of(url: str, kept: Heads | None = None) -> list[str]:
    async with opened(url) as ledger:
        wrong, read = await verify(ledger.store, kept)
    assert read >= 5
    return wrong


async def test_a_whole_ledger_has_no_problems(ledger_url: str) -> None:
    heads = await filled(ledger_url)
    assert await problems_of(ledger_url, heads) == []


@pytest.mark.parametrize("act", ["UPDATE audit_log SET at_us = 0", "DELETE FROM audit_log"])
async def test_nobody_changes_or_deletes_entries_by_mistake(act: str, ledger_url: str) -> None:
    await filled(ledger_url)
    with pytest.raises((psycopg.Error, sqlite3.Error), match="append-only"):
        run_sql(ledger_url, act)
    assert await problems_of(ledger_url) == []


LAST = "(SELECT max(seq) FROM audit_log)"
TAMPER: dict[str, tuple[tuple[str, ...], str]] = {
    "a changed body": (("UPDATE audit_log SET body = '[]' WHERE seq = 3",), "entry 3: was changed"),
    "a changed time": (("UPDATE audit_log SET at_us = at_us + 1 WHERE seq = 3",), "entry 3: was changed"),
    "a removed entry": (("DELETE FROM audit_log WHERE seq = 4",), "entry 4 is missing"),
    "a cut-off end": ((f"DELETE FROM audit_log WHERE seq = {LAST}",), "is not what its head says"),
    "a moved head": (("UPDATE audit_heads SET hash = 'x'",), "is not what its head says"),
    "a removed head": (("DELETE FROM audit_heads",), "has no head"),
    "a rehashed entry": (("UPDATE audit_log SET body = '[]', hash = 'y' WHERE seq = 3",), "entry 3: was changed"),
    "a seat freed by hand": (("UPDATE booking_seats SET active = 0 WHERE seat_index = 3",), "says 1 seats"),
    "a booking changed by hand": (("UPDATE bookings SET state = 'expired' WHERE fence = 1",), "the booking is not"),
    "a seat sold twice": (
        (
            "DROP INDEX one_active_booking_per_seat",
            "INSERT INTO booking_seats SELECT 'x', seat_index, event_id, 0, 1 FROM booking_seats WHERE seat_index = 3",
        ),
        "2 active bookings",
    ),
}


@pytest.mark.parametrize("how", TAMPER)
async def test_tampering_shows(how: str, ledger_url: str) -> None:
    await filled(ledger_url)
    statements, shown = TAMPER[how]
    run_sql(ledger_url, *without_guard(ledger_url), *statements)
    wrong = await problems_of(ledger_url)
    assert any(shown in line for line in wrong), wrong


@pytest.mark.parametrize("at", [3, 10], ids=["in the middle", "at the end"])
async def test_an_entry_rewritten_with_a_hash_that_fits_shows(at: int, ledger_url: str) -> None:
    """Whoever changes an entry can compute its hash. The entry after it, or the head, has the old one."""
    ((chain, _),) = (await filled(ledger_url)).items()
    async with opened(ledger_url) as ledger:
        (entry,) = await ledger.store.read(Query("audit_page", params=(chain, at - 1, 1)))
    _, seq, at_us, _, prev_hash, _ = entry
    forged = entry_hash(chain, seq, at_us, "[]", prev_hash)
    change = f"UPDATE audit_log SET body = '[]', hash = '{forged}' WHERE seq = {at}"
    run_sql(ledger_url, *without_guard(ledger_url), change)
    shown = f"entry {at + 1}: does not follow" if at < 10 else f"entry {at} is not what its head says"
    assert any(shown in line for line in await problems_of(ledger_url))


async def test_a_head_kept_outside_shows_even_a_perfect_forgery(ledger_url: str) -> None:
    """Somebody rewrites the end of the chain and its head consistently; only who kept the old head can tell."""
    kept = await filled(ledger_url)
    run_sql(ledger_url, *without_guard(ledger_url), "DELETE FROM audit_log WHERE seq >= 8")
    rewind = "UPDATE audit_heads SET seq = 7, hash = (SELECT hash FROM audit_log WHERE seq = 7)"
    run_sql(ledger_url, rewind)
    assert await problems_of(ledger_url) == []
    assert any("kept outside" in line for line in await problems_of(ledger_url, kept))
