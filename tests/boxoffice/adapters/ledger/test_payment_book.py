"""One contract for payments and refunds on SQLite and PostgreSQL, and canaries it must catch (B6, B7, B12, N4)."""

import sqlite3

import pytest

from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path
from frontrow.core.errors import FrontrowError
from tests.boxoffice.adapters.ledger.broken_ledgers import broken
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench
from tests.contracts.payment_book import CHECKS, Check

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_payments_on_sqlite(check: Check, sqlite_ledger_url: str) -> None:
    async with opened(sqlite_ledger_url) as one:
        await check(Bench(one, one))


async def test_payments_on_postgres(postgres_ledger_url: str) -> None:
    """Every check with an event of its own in one database, by two servers: copying a database costs more than all."""
    async with opened(postgres_ledger_url) as one, opened(postgres_ledger_url) as two:
        for check in CHECKS:
            try:
                await check(Bench(one, two))
            except BaseException as error:
                error.add_note(check.__name__)
                raise


# A ledger with one guard taken out, and the check that must fail.
CANARIES = {
    "does not see the versions under the lock": (
        ("lock_payments", ("WHERE (p.id) IN", "WHERE (p.id || 'x') IN")),
        "of_many_writers_of_one_version_one_wins",
    ),
    "never remembers a claim": (
        ("claim_payments", ("retry_at_us = r.until_us", "retry_at_us = p.retry_at_us")),
        "due_payments_are_claimed_to_one_worker",
    ),
    "takes a woken payment that is claimed for put off": (
        ("wake_payments", ("tries = 1,", "tries = p.tries,")),
        "payments_that_an_outage_put_off_are_woken_once_and_claimed_ones_are_not",
    ),
    "keeps the seats of a partial refund": (
        ("free_some_seats", ("SET active = 0", "SET active = 1")),
        "a_partial_refund_shrinks_the_booking",
    ),
    "sells what was cancelled": (
        ("move_bookings", ("<> 'cancelled'", "<> 'never'")),
        "nothing_of_a_cancelled_event_is_held_or_sold",
    ),
    "refunds who is inside": (
        ("lock_tickets", ("t.scanned_at_us, t.transfer_id FROM", "NULL, t.transfer_id FROM")),
        "a_ticket_that_was_let_in_is_not_refunded",
    ),
    "changes a refund that is done": (
        ("set_refunds", ("f.version = r.version - 1", "f.version <> 0")),
        "refunds_are_claimed_and_change_by_version",
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches_a_ledger_that(canary: str, sqlite_ledger_url: str) -> None:
    (name, change), check = CANARIES[canary]
    sql = broken(sqlite_ledger_url, name, change)
    async with opened(sqlite_ledger_url, sql=sql) as one, opened(sqlite_ledger_url, sql=sql) as two:
        with pytest.raises((AssertionError, FrontrowError)):
            await BY_NAME[check](Bench(one, two))


async def test_without_the_unique_index_the_contract_fails(sqlite_ledger_url: str) -> None:
    connection = sqlite3.connect(sqlite_path(sqlite_ledger_url))
    connection.execute("DROP INDEX one_live_payment_per_booking")
    connection.close()
    async with opened(sqlite_ledger_url) as one:
        with pytest.raises((AssertionError, FrontrowError)):
            await BY_NAME["a_booking_has_one_payment_that_is_not_over"](Bench(one, one))
