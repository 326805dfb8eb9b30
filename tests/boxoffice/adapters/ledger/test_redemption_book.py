"""One contract for redemptions of add-ons on SQLite and PostgreSQL, and canaries it must catch."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.contracts.ledger_contract import Bench
from tests.contracts.redemption_book import (
    CHECKS,
    Check,
    an_undone_redemption_may_be_made_again_under_a_new_id,
    of_many_gates_as_many_hand_out_as_were_bought,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_redemption_book(check: Check, bench: Bench) -> None:
    await check(bench)


CANARIES = {
    "redemptions that are not counted": (
        "redemptions_of_bookings",
        ("WHERE x.booking_id = r.booking_id", "WHERE x.booking_id = r.booking_id AND x.quantity > 1"),
        of_many_gates_as_many_hand_out_as_were_bought,
    ),
    "an undone redemption that is undone again": (
        "undo_redemptions",
        ("AND x.undone_at_us IS NULL", ""),
        an_undone_redemption_may_be_made_again_under_a_new_id,
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches(canary: str, ledger_url: str) -> None:
    name, change, check = CANARIES[canary]
    await must_catch(ledger_url, broken(ledger_url, name, change), check)
