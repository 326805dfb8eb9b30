"""One contract for the ledger on SQLite and on PostgreSQL (B3-B5, B14, B16, F4, N4), and canaries it must catch."""

import pytest

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.boxoffice.conftest import opened
from tests.contracts import ledger_holds, ledger_moves
from tests.contracts.ledger_contract import CHECKS, Bench, Check

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_ledger(check: Check, bench: Bench) -> None:
    await check(bench)


def test_the_contract_has_all_its_parts() -> None:
    modules = {check.__module__ for check in CHECKS}
    assert modules == {ledger_holds.__name__, ledger_moves.__name__}
    assert len(BY_NAME) == len(CHECKS) >= 25


# A canary is a ledger with one guard taken out: the statement changed so, and the check that must fail.
CANARIES = {
    "without the unique index and the look before": (
        "seats_in_the_way",
        ("coalesce(s.active, 0) = 1", "coalesce(s.active, 0) = 2"),
        "a_refusal_names_exactly_the_taken_seats",
    ),
    "a confirm without the fence": (
        "move_bookings",
        ("AND b.fence = r.fence", ""),
        "only_the_fence_of_the_hold_moves_it",
    ),
    "a confirm without the expiry": (
        "move_bookings",
        ("AND (r.needs_live = 0 OR b.hold_expires_at_us > r.now_us)", ""),
        "a_confirm_succeeds_until_the_hold_ends_and_not_at_that_instant",
    ),
    "a confirm from any state": (
        "move_bookings",
        ("AND b.state = r.from_state", ""),
        "every_cell_of_the_state_table_is_obeyed",
    ),
    "a cap that sees nothing": (
        "active_counts",
        ("b.fan >= r.fan", "1 = 2"),
        "a_cap_counts_sold_and_live_seats_only",
    ),
    "visits that never end": (
        "visits_with_tickets",
        ("coalesce(b.visit_id, b.session) = r.visit_id", "1 = 2"),
        "a_visit_that_has_bought_tickets_holds_no_more_seats",
    ),
    "a sweep that is early": ("due_holds", ("hold_expires_at_us <= ", "hold_expires_at_us - 1 <= "), "SWEEP"),
    "seats that stay taken": ("free_seats", ("SET active = 0", "SET active = 1"), "a_released_seat_is_free_at_once"),
    "facts without a claim": (
        "claim_facts",
        ("leased_until_us = r.until_us", "leased_until_us = 0"),
        "facts_are_claimed_to_one_worker_until_published",
    ),
}


def drop_unique_index(url: str) -> None:
    if is_postgres(url):
        import psycopg

        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("DROP INDEX one_active_booking_per_seat")
        return
    import sqlite3

    connection = sqlite3.connect(sqlite_path(url))
    connection.execute("DROP INDEX one_active_booking_per_seat")
    connection.close()


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches_a_ledger(canary: str, ledger_url: str) -> None:
    name, change, check = CANARIES[canary]
    if check == "SWEEP":
        sql = dict(broken(ledger_url, name, change)) | dict(
            broken(
                ledger_url, "end_holds", ("b.hold_expires_at_us <= r.now_us", "b.hold_expires_at_us - 1 <= r.now_us")
            )
        )
        check = "the_sweep_ends_dead_holds_only_oldest_first_in_bounded_batches"
    else:
        sql = dict(broken(ledger_url, name, change))
    if canary.startswith("without the unique index"):
        drop_unique_index(ledger_url)
    await must_catch(ledger_url, sql, BY_NAME[check])


async def test_the_unique_index_alone_stops_a_double_sale(ledger_url: str) -> None:
    """B16, N4: blind the ledger's look; one_active_booking_per_seat still lets one of 60 racers win."""
    sql = broken(ledger_url, "seats_in_the_way", ("coalesce(s.active, 0) = 1", "coalesce(s.active, 0) = 2"))
    async with opened(ledger_url, sql=sql) as one, opened(ledger_url, sql=sql) as two:
        bench = Bench(one, two)
        from tests.contracts.ledger_contract import CALLERS, outcomes

        won, refused = await outcomes([bench.either(n).place_hold(bench.wish(5)) for n in range(CALLERS)])
        assert (len(won), len(refused)) == (1, CALLERS - 1)
        assert list(await bench.seats()) == [5]
