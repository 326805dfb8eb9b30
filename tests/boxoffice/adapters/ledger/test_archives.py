"""Past events move into files and back, and nothing else changes (docs/scaling.md, "Large ledgers")."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from typer.testing import CliRunner

from frontrow.app.ledger_tools import archive_event, find_past_events, restore_event, verify_ledger
from frontrow.boxoffice.adapters.ledger import archives
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.waitlist.model.waitlist import NewEntry
from frontrow.cli.ledger import app
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.core.errors import ConfigError, FrontrowError, InvalidInput, Refused
from frontrow.testing.clock import ManualClock
from tests.boxoffice.refunds.market import Market, open_market, sell_everything
from tests.boxoffice.shop import sqlite_url

DAY_US = 86_400 * US_PER_S
PAST, PRESENT = "evt_past", "evt_present"


async def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables of the sale, by table."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            found = {table: file.execute(f"SELECT * FROM {table}").fetchall() for table in archives.KEYS}
    else:
        connection = await asyncpg.connect(url)
        found = {table: [tuple(r) for r in await connection.fetch(f"SELECT * FROM {table}")] for table in archives.KEYS}
        await connection.close()
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


class Sold:
    """A ledger with a past event and one that is still sold, both with every kind of row."""

    def __init__(self, url: str, clock: ManualClock, market: Market) -> None:
        self.url, self.clock, self.market = url, clock, market

    async def finish(self, event: Event, **changes: Any) -> None:
        """The show was two months ago."""
        over_us = self.clock() - 60 * DAY_US
        ended = replace(event, starts_at_us=over_us, sale_ends_at_us=over_us, status=EventStatus.COMPLETED, **changes)
        await self.market.ledger.catalogue.put_event(ended, self.clock())

    async def publish(self) -> None:
        await self.market.waiting.facts()


@pytest.fixture(params=["sqlite", "partitioned"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """PostgreSQL is partitioned by event here: what has to be found in many places, and keeps a directory."""
    return str(request.getfixturevalue(f"{request.param}_ledger_url"))


@pytest.fixture
async def sold(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sold]:
    monkeypatch.setattr(archives, "STEP", 2)  # several steps of each table
    clock = ManualClock()
    async with open_market(ledger_url, clock, PAST) as market, open_market(ledger_url, clock, PRESENT) as other:
        for one, event_id in ((market, PAST), (other, PRESENT)):
            await sell_everything(one, event_id)
        sold = Sold(ledger_url, clock, market)
        await sold.publish()
        await sold.finish(market.waiting.shop.event)
        yield sold


async def test_a_past_event_moves_into_a_file_and_back_and_everything_else_stays(sold: Sold, tmp_path: Path) -> None:
    url, now_us = sold.url, sold.clock()
    before = await rows_of(url)
    assert all(
        before[table]
        for table in archives.KEYS
        if table not in ("booking_uses", "ticket_transfers", "add_on_redemptions")
    )
    assert await find_past_events(url, now_us - 31 * DAY_US, now_us) == [PAST]
    archive = await archive_event(url, PAST, tmp_path, now_us)
    after = await rows_of(url)
    assert sum(archive.rows.values()) == sum(len(rows) for rows in before.values()) / 2
    assert all(set(after[table]) <= set(rows) for table, rows in before.items())
    assert PAST not in repr(after["bookings"]), "none is left"
    assert len(after["payments"]) == len(before["payments"]) / 2, "and the other event has kept its own"
    assert await find_past_events(url, now_us - 31 * DAY_US, now_us) == []
    wrong, entries = await verify_ledger(url)
    assert (wrong, entries > 0) == ([], True), "seats and bookings agree, and the audit chain is whole"
    assert await archive_event(url, PAST, tmp_path, now_us) == archive, "again: nothing is left to do"
    await restore_event(url, archive.path, now_us)
    await restore_event(url, archive.path, now_us)
    assert await rows_of(url) == before
    assert (await verify_ledger(url))[0] == []


async def test_an_archive_that_was_killed_in_the_middle_goes_on_where_it_was(
    sold: Sold, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, delete, done = await rows_of(sold.url), archives._delete, []

    async def dies(database: Any, step: Any, path: Path) -> None:
        await delete(database, step, path)
        done.append(step)
        if len(done) == 2:
            raise OSError("killed")  # this step is rolled back, the one before is done

    monkeypatch.setattr(archives, "_delete", dies)
    with pytest.raises(OSError, match="killed"):
        await archive_event(sold.url, PAST, tmp_path, sold.clock())
    assert (await verify_ledger(sold.url))[0] == [], "no booking is without its seats"
    monkeypatch.undo()
    archive = await archive_event(sold.url, PAST, tmp_path, sold.clock())
    assert PAST not in repr((await rows_of(sold.url))["bookings"])
    await restore_event(sold.url, archive.path, sold.clock())
    assert await rows_of(sold.url) == before


async def test_an_event_with_open_money_or_a_young_one_stays(sold: Sold, tmp_path: Path) -> None:
    async def why(event_id: str) -> str:
        with pytest.raises(FrontrowError) as refused:
            await archive_event(sold.url, event_id, tmp_path, sold.clock())
        assert not list(tmp_path.glob("*.jsonl*")), "not even a file"  # noqa: ASYNC240
        return refused.value.message

    assert "only completed and cancelled" in await why(PRESENT)
    assert "there is no event" in await why("evt_none")
    event = sold.market.waiting.shop.event
    await sold.finish(replace(event, status=EventStatus.ON_SALE))
    confirmed = [row for row in await rows_of_bookings(sold) if row["state"] == "confirmed"]
    await sold.market.till.refunds.override(confirmed[0]["id"])  # asked, and nobody has paid it yet
    assert "refunds that are not paid" in await why(PAST)
    await sold.market.till.refunds.work()
    assert "facts that were not published" in await why(PAST)
    await sold.publish()
    await sold.market.ledger.catalogue.put_event(
        replace(event, starts_at_us=sold.clock() - 29 * DAY_US, sale_ends_at_us=0, status=EventStatus.COMPLETED),
        sold.clock(),
    )
    assert "30 days" in await why(PAST)
    with pytest.raises(InvalidInput, match="30 days"):
        await find_past_events(sold.url, sold.clock(), sold.clock())


async def rows_of_bookings(sold: Sold) -> list[dict[str, Any]]:
    async with archives._connected(sold.url) as database:
        return await database.fetch("SELECT * FROM bookings WHERE event_id = $1", PAST)


async def test_a_file_that_was_changed_or_cut_off_is_refused_and_changed_rows_are_not_deleted(
    sold: Sold, tmp_path: Path
) -> None:
    archive = await archive_event(sold.url, PAST, tmp_path, sold.clock())
    text = archive.path.read_text()
    for broken in (text.replace("old", "new", 1), text[: len(text) // 2], "", "{}\n", text.partition("\n")[2]):
        archive.path.write_text(broken)
        with pytest.raises(ConfigError, match="checksum|no archive"):
            await restore_event(sold.url, archive.path, sold.clock())
    archive.path.write_text(text)
    await restore_event(sold.url, archive.path, sold.clock())
    booking = next(row for row in await rows_of_bookings(sold) if row["state"] == "confirmed")
    await sold.market.till.refunds.override(booking["id"])
    await sold.market.till.refunds.work()
    await sold.publish()
    with pytest.raises(Refused, match="have changed since"):
        await archive_event(sold.url, PAST, tmp_path, sold.clock())
    with pytest.raises(ConfigError, match="there is no archive"):
        await restore_event(sold.url, tmp_path / "none.jsonl", sold.clock())


async def test_rows_that_were_added_after_the_file_was_written_are_not_forgotten(sold: Sold, tmp_path: Path) -> None:
    archive = await archive_event(sold.url, PAST, tmp_path, sold.clock())
    await restore_event(sold.url, archive.path, sold.clock())
    late = NewEntry("wle_late", PAST, "fan_late", 1)
    await sold.market.ledger.waitlist.join_waitlist(late, sold.clock())
    await sold.publish()
    with pytest.raises(Refused, match="waitlist of evt_past were added"):
        await archive_event(sold.url, PAST, tmp_path, sold.clock())


async def test_a_file_goes_back_only_into_the_ledger_that_has_its_event(sold: Sold, tmp_path: Path) -> None:
    archive = await archive_event(sold.url, PAST, tmp_path, sold.clock())
    (tmp_path / "other").mkdir()
    other = sqlite_url(tmp_path / "other")
    with pytest.raises(ConfigError, match="belongs to another"):
        await restore_event(other, archive.path, sold.clock())
    assert not any((await rows_of(other)).values())


# Tables of events and bookings that no archive has, and why.
STAY = {
    "buyer_messages": "what an organiser wrote, and to how many",
    "cancellations": "one row per event",
    "changes": "the audit of the organiser",
    "disputes": "banks dispute long after a show, and the books name what was lost",
    "event_listings": "the event stays, and is found",
    "event_words": "the event stays, and is found",
    "idempotency_keys": "purged by their age",
    "invoices": "kept by law",
    "name_tails": "erased with their person",
    "outbox": "purged by their age",
    "presales": "the draw can be verified",
    "price_tiers": "the event stays",
    "queue_audit": "of rooms, append-only",
    "report_mails": "of the team",
    "sale_signups": "the draw can be verified",
    "show_dates": "the event stays",
    "tax_rate_history": "invoices need it",
    "waitlist_rules": "the lottery can be verified",
    "webhook_endpoints": "of the organiser",
}


def test_every_table_of_an_event_is_archived_or_stays_for_a_reason(sqlite_ledger_url: str) -> None:
    with contextlib.closing(sqlite3.connect(sqlite_ledger_url.removeprefix("sqlite:///"))) as file:
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: {row[1] for row in file.execute(f"PRAGMA table_info({table})")} for table in tables}
    own = {table for table, names in columns.items() if names & {"event_id", "booking_id"}}
    assert own == archives.KEYS.keys() | STAY.keys()
    assert archives.KEYS.keys().isdisjoint(STAY)


def test_the_command_archives_what_is_past_says_what_stays_and_brings_it_back(tmp_path: Path) -> None:
    url, now = sqlite_url(tmp_path), SystemClock()

    async def sell() -> None:
        async with open_market(url, ManualClock(now()), PAST) as market:
            await market.sell("ada", 0, 1)
            sold = Sold(url, ManualClock(now()), market)
            await sold.finish(market.waiting.shop.event)

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["archive", *words, "--ledger", url, "--folder", str(tmp_path)])
        return done.exit_code, done.output

    async def publish() -> None:
        async with open_market(url, ManualClock(now()), PRESENT) as market:
            await market.waiting.facts()

    asyncio.run(sell())
    assert run("--before", "yesterday") == (2, "frontrow ledger: 'yesterday' is no day; one looks like 2026-01-31\n")
    assert run()[1] == "frontrow ledger: give one of --before, --event and --restore\n"
    assert "30 days" in run("--before", "2999-01-01")[1]
    assert run("--before", "2001-01-01") == (0, "0 events archived, 0 left in the ledger\n")
    code, said = run("--event", PAST)
    assert (code, "facts that were not published" in said, "1 left" in said) == (1, True, True)
    asyncio.run(publish())
    code, said = run("--event", PAST)
    file = tmp_path / "archive" / f"{PAST}.jsonl"
    assert (code, f"rows in {file}, sha256 " in said, file.stat().st_mode & 0o777) == (0, True, 0o600)
    code, said = run("--restore", str(file))
    assert (code, said.startswith(f"{PAST}: "), "rows are back" in said) == (0, True, True)
