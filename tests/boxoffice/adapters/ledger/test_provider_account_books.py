"""One contract for what providers said and for organisers' accounts, on SQLite and PostgreSQL, and a canary."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.contracts.ledger_contract import Bench
from tests.contracts.provider_account_books import (
    CHECKS,
    Check,
    nobody_takes_over_the_account_of_another_organiser,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_provider_account_books(check: Check, bench: Bench) -> None:
    await check(bench)


async def test_the_contract_catches_an_account_that_changes_hands(ledger_url: str) -> None:
    same = "WHERE payment_accounts.organiser_id = excluded.organiser_id"
    careless = broken(ledger_url, "put_payment_accounts", (same, "WHERE 1 = 1"))
    await must_catch(ledger_url, careless, nobody_takes_over_the_account_of_another_organiser)
