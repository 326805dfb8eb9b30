"""Versions 18 and 19 of the ledger carry what is there: lines of cancelled events, sellers of earlier sales."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.checkout.model.receipts import Seller
from tests.boxoffice.adapters.ledger.raw_sql import insert_rows, read_pairs
from tests.boxoffice.conftest import opened

FAR_US = 4_000_000_000_000_000  # in 2096


def event(name: str, state: str, starts_at_us: int) -> tuple[str, tuple[Any, ...]]:
    columns = (
        "id, name, venue_id, plan_hash, currency, event_state, document, starts_at_us, sale_starts_at_us,"
        " sale_ends_at_us, max_per_person, created_at_us, changed_at_us"
    )
    values = (name, "Aurora", "ven_1", "0", "EUR", state, "{}", starts_at_us, 0, starts_at_us, 4, 5, 5)
    return f"INSERT INTO events ({columns}) VALUES (%s{', %s' * 12})", values


def entry(name: str, event_id: str) -> tuple[str, tuple[Any, ...]]:
    insert = (
        "INSERT INTO waitlist (id, event_id, fan, seat_count, entry_state, created_at_us, changed_at_us)"
        " VALUES (%s, %s, %s, 2, 'waiting', 5, 5)"
    )
    return insert, (name, event_id, f"fan_{name}")


def cancellation(event_id: str) -> tuple[str, tuple[Any, ...]]:
    insert = (
        "INSERT INTO cancellations (event_id, job_state, refunded, released, stopped, failed, next_at_us,"
        " started_at_us, changed_at_us) VALUES (%s, 'done', 0, 0, 0, 0, 5, 5, 5)"
    )
    return insert, (event_id,)


OLD_ROWS = [
    event("evt_gone", "cancelled", 10),
    event("evt_next", "cancelled", FAR_US),
    event("evt_none", "cancelled", FAR_US),
    event("evt_sale", "on_sale", FAR_US),
    *(cancellation(name) for name in ("evt_gone", "evt_next", "evt_none")),
    *(entry(f"wle_{name}", f"evt_{name}") for name in ("gone", "next", "sale")),
    ("INSERT INTO sellers VALUES (%s, 'Hall', 'Street 1', 'T1', 1300, 50)", ("org_1",)),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_lines_of_cancelled_events_end_and_sellers_stand_for_earlier_sales(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}" if kind == "sqlite" else str(request.getfixturevalue("postgres_url"))
    await asyncio.to_thread(migrate, url, "0015")
    await asyncio.to_thread(insert_rows, url, OLD_ROWS)
    await asyncio.to_thread(migrate, url)
    states = read_pairs(url, "SELECT id, entry_state FROM waitlist")
    assert states == {"wle_gone": "ended", "wle_next": "waiting", "wle_sale": "waiting"}
    jobs = read_pairs(url, "SELECT event_id, job_state FROM cancellations")
    assert jobs == {"evt_gone": "done", "evt_next": "running", "evt_none": "done"}, "whose fans are to be told"
    async with opened(url) as ledger:
        assert await ledger.organiser.seller_at("org_1", 1) == Seller("org_1", "Hall", "Street 1", "T1", 1300)
