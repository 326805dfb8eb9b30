"""One contract for tickets in the ledger on SQLite and PostgreSQL (B10, B12), and canaries it must catch."""

import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch, statement_of
from tests.contracts.ledger_contract import Bench
from tests.contracts.ticket_book import CHECKS, Check

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_ticket_book(check: Check, bench: Bench) -> None:
    await check(bench)


CANARIES = {
    "tickets that survive their booking": (
        "revoke_tickets_of_bookings",
        ("ticket_state = 'revoked'", "ticket_state = 'valid'"),
        "a_booking_that_ends_revokes_its_tickets_and_the_seat_gets_a_new_one",
    ),
    "a ticket that survives a partial refund": (
        "revoke_tickets",
        ("ticket_state = 'revoked'", "ticket_state = 'valid'"),
        "a_partial_refund_revokes_the_tickets_of_its_seats_in_its_transaction",
    ),
    "a ticket that lives until it is resold": (
        "revoke_tickets",
        ("ticket_state = 'revoked'", "ticket_state = 'valid'"),
        "a_returned_ticket_is_dead_from_the_moment_it_is_given_back",
    ),
    "a revocation list that forgets": (
        "revoked_tickets",
        ("AND id > ", "AND 1 = 0 AND id > "),
        "the_revocation_list_is_read_in_pages",
    ),
    "the last scan wins": (
        "stamp_scanned",
        ("t.scanned_at_us > r.at_us", "t.scanned_at_us < r.at_us"),
        "scans_of_many_gates_are_taken_in_once_and_duplicates_flagged",
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches(canary: str, ledger_url: str) -> None:
    name, change, check = CANARIES[canary]
    change = change if change[0] in statement_of(ledger_url, name) else _bare(change)
    await must_catch(ledger_url, broken(ledger_url, name, change), BY_NAME[check])


def _bare(change: tuple[str, str]) -> tuple[str, str]:
    """SQLite's statements name the table's columns without its letter."""
    return change[0].replace("t.", ""), change[1].replace("t.", "")
