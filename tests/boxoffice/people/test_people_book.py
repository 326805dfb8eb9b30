"""One contract for people in the ledger on SQLite and PostgreSQL (B13, N4), and canaries it must catch."""

import sqlite3
from pathlib import Path

import asyncpg
import pytest

from frontrow.boxoffice.adapters.ledger.engine.postgres import SETTINGS
from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render, statements
from tests.boxoffice.adapters.ledger.broken_ledgers import broken, must_catch
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench
from tests.contracts.people_book import CHECKS, Check

ROUNDS = 30
BY_NAME = {check.__name__: check for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_people_book(check: Check, bench: Bench) -> None:
    await check(bench)


# the statement, what is changed in it, and which check must fail
CANARIES = {
    "links that work twice": (
        "use_magic_link",
        ("m.used_at_us = 0", "m.used_at_us >= 0"),
        "a_magic_link_is_used_once_in_time_and_in_its_browser",
    ),
    "links for every browser": (
        "use_magic_link",
        ("m.browser_hash = r.browser_hash", "1 = 1"),
        "a_magic_link_is_used_once_in_time_and_in_its_browser",
    ),
    "links that never end": (
        "use_magic_link",
        ("m.ends_at_us > r.now_us", "m.ends_at_us > 0"),
        "a_magic_link_is_used_once_in_time_and_in_its_browser",
    ),
    "invitations that work twice": (
        "use_invitation",
        ("i.used_at_us = 0", "i.used_at_us >= 0"),
        "an_invitation_is_accepted_once",
    ),
    "codes that work twice": ("use_totp_step", ("s.totp_step < r.totp_step", "1 = 1"), "a_code_is_good_once"),
    "owners nobody counts": (
        "owners_of",
        ("role = 'owner'", "role = 'nobody'"),
        "an_organiser_never_loses_its_last_owner",
    ),
    "sessions that outlive their role": (
        "drop_sessions_of",
        ("subject IN", "subject NOT IN"),
        "a_session_shows_the_role_of_now_and_ends_with_its_member",
    ),
    "keys that outlive their maker": (
        "api_key_by_hash",
        ("s.id = k.made_by", "s.role = 'owner'"),
        "an_api_key_can_do_what_its_maker_still_can",
    ),
    "an address that brings everybody's purchases": (
        "purchases_of_address",
        (" AND c.email <> '' AND coalesce(f.email, '') = ''", ""),
        "an_address_brings_what_was_bought_with_it_and_nothing_else",
    ),
    "contacts that stay": (
        "drop_contacts",
        ("fan IN", "fan NOT IN"),
        "somebody_erased_is_forgotten_and_the_money_is_not",
    ),
}


@pytest.mark.parametrize("canary", CANARIES)
async def test_the_contract_catches(canary: str, ledger_url: str) -> None:
    name, change, check = CANARIES[canary]
    await must_catch(ledger_url, broken(ledger_url, name, change), BY_NAME[check])


BY_INDEX = (
    "names_of_address",
    "is_reached_at",
    "purchases_of_address",
    "bookings_by_name",
    "names_of_buyers",
    "events_bought",
)


@pytest.mark.parametrize("name", BY_INDEX)
def test_what_is_found_by_address_or_name_is_found_by_index_on_sqlite(name: str, sqlite_template: Path) -> None:
    connection = sqlite3.connect(sqlite_template)
    try:
        statement = statements()[name]
        values = [*(["[]"] if statement.columns else []), *[0] * len(statement.params)]
        plan = connection.execute(f"EXPLAIN QUERY PLAN {render(Dialect.SQLITE)[name]}", values).fetchall()
    finally:
        connection.close()
    scanned = [
        row[3] for row in plan if row[3].startswith("SCAN ") and row[3] != "SCAN n" and "json_each" not in row[3]
    ]
    assert scanned == [], plan


async def test_what_is_found_by_address_or_name_is_found_by_index_on_postgres(postgres_ledger_url: str) -> None:
    connection = await asyncpg.connect(postgres_ledger_url, server_settings=SETTINGS)
    try:
        for name in BY_INDEX:
            await connection.execute(f"PREPARE q AS {render(Dialect.POSTGRES)[name]}")
            kinds = {"text": "'x'", "int": "1"}
            statement = statements()[name]
            values = ",".join(["'{x}'"] * len(statement.columns) + [kinds[kind] for _, kind in statement.params])
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE q({values})")]
            await connection.execute("DEALLOCATE q")
            assert not any("Seq Scan" in line for line in plan), "\n".join(plan)
    finally:
        await connection.close()


async def test_the_contract_catches_a_team_that_is_not_locked(postgres_ledger_url: str) -> None:
    """N4: without the lock on the organiser two owners see each other and both go (SQLite has one writer anyway).

    Whether two batches overlap is the servers' luck: a few rounds are played until they do.
    """
    sql = broken(postgres_ledger_url, "lock_organiser", (" FOR UPDATE", ""))
    check = BY_NAME["an_organiser_never_loses_its_last_owner"]
    async with opened(postgres_ledger_url, sql=sql) as one, opened(postgres_ledger_url, sql=sql) as two:
        for _ in range(ROUNDS):
            try:
                await check(Bench(one, two))
            except AssertionError:
                return
    raise AssertionError(f"nobody lost the last owner in {ROUNDS} rounds without the lock")
