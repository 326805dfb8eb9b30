"""One contract for ticket transfers on SQLite and PostgreSQL, and canaries it must catch."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch, statement_of
from tests.contracts.ledger_contract import Bench
from tests.contracts.transfer_book import (
    CHECKS,
    Check,
    one_of_many_who_accept_makes_the_new_ticket_and_the_old_one_is_dead,
    only_a_valid_unused_ticket_of_the_sender_can_be_sent,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_transfer_book(check: Check, bench: Bench) -> None:
    await check(bench)


CANARIES = {
    "an old code that lives on": (
        "add_dead_tickets",
        "WHERE true",
        "WHERE 1 = 0",
        one_of_many_who_accept_makes_the_new_ticket_and_the_old_one_is_dead,
    ),
    "a used ticket that is handed over": (
        "hand_over_tickets",
        "scanned_at_us IS NULL",
        "true",
        only_a_valid_unused_ticket_of_the_sender_can_be_sent,
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches(canary: str, ledger_url: str) -> None:
    name, was, now, check = CANARIES[canary]
    text = statement_of(ledger_url, name)
    was = f"t.{was}" if f"t.{was}" in text else was
    await must_catch(ledger_url, broken(ledger_url, name, (was, now)), check)
