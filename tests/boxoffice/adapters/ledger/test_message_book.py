"""One contract for messages in the ledger on SQLite and PostgreSQL (B15), and canaries it must catch."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.contracts.ledger_contract import Bench
from tests.contracts.message_book import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_message_book(check: Check, bench: Bench) -> None:
    await check(bench)


# the statement, what is changed in it, and which check must fail
CANARIES = {
    "queues that are claimed twice": ("due_deliveries", ("busy.leased_until_us >", "0 >"), 1),
    "a queue that takes everything": ("due_deliveries", ("ranked.place <= ", "0 * ranked.place <= "), 1),
    "retries without their pause": ("due_deliveries", ("next_at_us <= ", "0 * next_at_us <= "), 2),
    "sent and sent again": ("save_delivery_results", ("= 'waiting'", "<> ''"), 2),
    "codes that can be guessed": ("try_phone_codes", ("AND c.tries < r.max_tries", ""), -2),
    "codes that never end": ("try_phone_codes", ("AND c.ends_at_us > r.now_us", ""), -2),
    "START that opens everything": ("unblock_addresses", (" AND r.reason IN ('', blocked_addresses.reason)", ""), -3),
    "an inbox that forgets": (
        "add_inbox",
        ("DO NOTHING", "(source, message_id) DO UPDATE SET received_at_us = 0"),
        0,
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches(canary: str, ledger_url: str) -> None:
    name, change, at = CANARIES[canary]
    await must_catch(ledger_url, broken(ledger_url, name, change), CHECKS[at])
