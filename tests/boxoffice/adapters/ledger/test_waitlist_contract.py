"""One contract for the waitlist on SQLite and on PostgreSQL (B11, B14, N4), and canaries it must catch."""

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.boxoffice.conftest import KINDS, opened
from tests.contracts import waitlist_contract, waitlist_offers
from tests.contracts.ledger_contract import Bench
from tests.contracts.waitlist_contract import CHECKS, Check
from tests.support.databases import database

BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.fixture(scope="module")
def shared_url(shared_postgres_url: str, migrated_postgres: str) -> Iterator[str]:
    """One PostgreSQL database for all checks here: each has an event of its own."""
    with database(shared_postgres_url, migrated_postgres) as url:
        yield url


@pytest.fixture(params=KINDS)
def ledger_url(request: pytest.FixtureRequest) -> str:
    """A ledger in which nobody else has an open offer or an unpublished fact."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_ledger_url"))
    url = str(request.getfixturevalue("shared_url"))
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("UPDATE offers SET offer_state = 'lapsed' WHERE offer_state = 'open'")
        admin.execute("DELETE FROM outbox")
        admin.execute("UPDATE bookings SET state = 'expired' WHERE state IN ('held', 'paying')")
    return url


@pytest.fixture
async def bench(ledger_url: str) -> AsyncIterator[Bench]:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        yield Bench(one, two)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_waitlist(check: Check, bench: Bench) -> None:
    await check(bench)


def test_the_contract_has_all_its_parts() -> None:
    assert {check.__module__ for check in CHECKS} == {waitlist_contract.__name__, waitlist_offers.__name__}
    assert len(BY_NAME) == len(CHECKS) >= 19


# A ledger with one guard taken out: the statement, the change, and the check that must fail.
CANARIES = {
    "offers to whoever is not waiting": (
        "turn_entries",
        ("AND w.entry_state = r.from_state", ""),
        "a_lapsed_offer_is_ended_once_and_its_entry_waits_on_until_the_last",
    ),
    "answers that do not stick": (
        "turn_offers",
        ("SET offer_state = r.to_state", "SET offer_state = o.offer_state"),
        "claim_and_decline_at_once_have_one_outcome",
    ),
    "a sweep that is early": (
        "due_offers",
        ("o.expires_at_us <= ", "o.expires_at_us + 1 <= "),
        "a_lapsed_offer_is_ended_once_and_its_entry_waits_on_until_the_last",
    ),
    "a line without an order": ("waiting_page", ("ORDER BY w.rank, w.number", "ORDER BY w.fan"), "LOTTERY"),
    "a line that forgets sections": (
        "waiting_page",
        ("w.sections = '' OR", "1 = 1 OR"),
        "the_line_is_asked_for_those_who_could_fit_only",
    ),
    "a seat's history without dead holds": (
        "last_bookings",
        ("s.active = 1", "s.active = 2"),
        "the_last_fan_of_a_seat_is_the_one_of_the_newest_booking",
    ),
    "a status changed blindly": (
        "swap_event",
        ("AND e.document = r.was_document", ""),
        "an_events_status_shifts_once_and_never_over_a_change",
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches_a_waitlist(canary: str, ledger_url: str) -> None:
    name, change, check = CANARIES[canary]
    if check == "LOTTERY":
        check = "a_lottery_orders_by_the_published_seed_and_its_rules_are_set_once"
    await must_catch(ledger_url, broken(ledger_url, name, change), BY_NAME[check])
