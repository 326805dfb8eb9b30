"""One contract for the keys of wallets on SQLite and PostgreSQL, and a canary it must catch."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.contracts.ledger_contract import Bench
from tests.contracts.wallet_book import CHECKS, Check, keys_are_removed_once_and_the_removal_is_noted


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_wallet_book(check: Check, bench: Bench) -> None:
    await check(bench)


async def test_the_contract_catches_keys_that_stay(ledger_url: str) -> None:
    forgetful = broken(
        ledger_url, "remove_wallet_keys", ("DELETE FROM wallet_keys WHERE", "DELETE FROM wallet_keys WHERE 1 = 0 AND")
    )
    await must_catch(ledger_url, forgetful, keys_are_removed_once_and_the_removal_is_noted)
