"""Backup and restore of both ledgers: taken while people buy, restored elsewhere, proved whole by `ledger verify`."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.ledger import backups
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.schema_versions import newest_version
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.cli.ledger import app
from frontrow.core.errors import ConfigError, Refused, Unavailable

NOW_US = 1_800_000_000_000_000
BOOKINGS = 300


def hold(number: int) -> NewHold:
    return NewHold(f"bkg_{number:026d}", "evt_a", f"fan_{number}", (number,), NOW_US, NOW_US + 10**9, 5000)


async def fill(url: str, first: int, count: int) -> None:
    ledger = await open_ledger(url)
    try:
        await asyncio.gather(*(ledger.place_hold(hold(number)) for number in range(first, first + count)))
    finally:
        await ledger.aclose()


async def seats_of(url: str) -> set[int]:
    ledger = await open_ledger(url)
    try:
        return {one.seat_index async for one in ledger.active_seats("evt_a", NOW_US)}
    finally:
        await ledger.aclose()


@pytest.fixture(params=["sqlite", "postgres"])
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """(a ledger with bookings, an empty place for another of the same kind)."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
        return
    import psycopg

    url = request.getfixturevalue("partitioned_ledger_url")  # tables, partitions, triggers: all there is to copy
    other = url + "_other"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{other.rpartition("/")[2]}"')  # type: ignore[arg-type]
    yield url, other
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{other.rpartition("/")[2]}" WITH (FORCE)')  # type: ignore[arg-type]


def run(*words: str) -> str:
    told = CliRunner().invoke(app, list(words))
    assert told.exit_code == 0, told.output
    return told.output


async def test_a_backup_taken_while_people_buy_is_whole_when_restored(ledgers, tmp_path):
    """F5: whatever was committed before the backup began is in it; nothing is half in it."""
    url, other = ledgers
    await asyncio.to_thread(migrate, url)
    await fill(url, 0, BOOKINGS)
    file = tmp_path / "ledger.backup"
    buying = asyncio.create_task(fill(url, BOOKINGS, BOOKINGS))
    told = await asyncio.to_thread(run, "backup", str(file), "--ledger", url)
    await buying
    assert "bytes" in told
    assert file.stat().st_mode & 0o077 == 0
    told = await asyncio.to_thread(run, "restore", str(file), "--ledger", other)
    assert f"schema {newest_version()}; 0 problems" in told
    assert "whole" in await asyncio.to_thread(run, "verify", "--ledger", other)
    restored = await seats_of(other)
    assert set(range(BOOKINGS)) <= restored <= set(range(2 * BOOKINGS))
    with pytest.raises(Refused, match="--force"):
        await asyncio.to_thread(backups.restore, file, other)
    await asyncio.to_thread(run, "restore", str(file), "--ledger", other, "--force")
    assert await seats_of(other) == restored
    await fill(other, 10_000, 1)  # and it can be sold from
    half = tmp_path / "half.backup"
    half.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises((ConfigError, Unavailable)):
        await asyncio.to_thread(backups.restore, half, other, force=True)
    assert await seats_of(other) == restored | {10_000}, "nothing was replaced"


def test_a_backup_never_overwrites_a_file_and_leaves_no_half_one(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    migrate(url)
    file = tmp_path / "there"
    file.write_text("precious")
    with pytest.raises(Refused, match="already"):
        backups.backup(url, file)
    assert file.read_text() == "precious"
    with pytest.raises(ConfigError, match="no ledger"):
        backups.backup(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "x")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.db", "there"]


@pytest.mark.parametrize("version", ["0001", "0016", "0017"])
def test_a_backup_of_any_version_before_this_can_be_restored(tmp_path, version):
    """The numbers of versions are no order: 0013 was made after 0017."""
    migrate(f"sqlite:///{tmp_path / 'old.db'}", version)
    backups.backup(f"sqlite:///{tmp_path / 'old.db'}", tmp_path / "file")
    assert backups.restore(tmp_path / "file", f"sqlite:///{tmp_path / 'new.db'}") == version


def test_a_backup_of_a_newer_program_is_refused(tmp_path):
    migrate(f"sqlite:///{tmp_path / 'newer.db'}")
    with contextlib.closing(sqlite3.connect(tmp_path / "newer.db", isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
    backups.backup(f"sqlite:///{tmp_path / 'newer.db'}", tmp_path / "file")
    with pytest.raises(ConfigError, match="schema 0099"):
        backups.restore(tmp_path / "file", f"sqlite:///{tmp_path / 'new.db'}")


def test_a_copy_that_is_damaged_is_no_backup(tmp_path):
    """The copy is checked, not only written: a ledger that breaks its own rules is found out on the first day."""
    migrate(f"sqlite:///{tmp_path / 'a.db'}")
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("INSERT INTO catalogue_version VALUES (2, 1)")
    with pytest.raises(Unavailable, match="damaged"):
        backups.backup(f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "file")
    assert not list(tmp_path.glob("file*"))


def test_a_damaged_or_wrong_backup_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    migrate(url)
    before = (tmp_path / "a.db").read_bytes()
    broken = tmp_path / "broken"
    broken.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(ConfigError, match="is no backup of a ledger"):
        backups.restore(broken, url, force=True)
    dump = tmp_path / "dump"
    dump.write_bytes(b"PGDMP...")
    with pytest.raises(ConfigError, match="PostgreSQL"):
        backups.restore(dump, url, force=True)
    assert (tmp_path / "a.db").read_bytes() == before
