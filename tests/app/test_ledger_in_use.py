"""Nothing replaces a ledger that a server sells into: the seats would be sold a second time."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from frontrow.app.ledger_tools import opened_ledger
from frontrow.boxoffice.adapters.ledger import backups, ledger_users
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.cli.folder_lock import lock_folder, write_address
from frontrow.cli.ledger import app
from frontrow.core.clock import SystemClock
from frontrow.core.errors import Unavailable
from tests.support.processes import Process
from tests.web.api.script import Buyer
from tests.web.api.support import EVENT_ID, put_into


def run(*words: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, list(words))
    return told.exit_code, told.output


async def buy(url: str, seat: str) -> int:
    """The status of a hold of this seat; paid if there is one."""
    async with httpx.AsyncClient(base_url=url, timeout=20) as client:
        buyer = Buyer(client, (await client.get("/openapi.json")).json())
        await buyer.enter(EVENT_ID)
        held = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": [seat]})
        if held.status_code == 201:
            assert (await buyer.pay(held.json()["booking"]))["state"] == "confirmed"
        return held.status_code


async def test_a_restore_beside_a_running_server_is_refused_and_sells_no_seat_twice(tmp_path: Path) -> None:
    """The first hour's accident: back up, sell, restore --force without stopping, restart, sell the same seat again."""
    url, file = f"sqlite:///{tmp_path / 'frontrow.db'}", str(tmp_path / "first.backup")
    async with opened_ledger(url, auto_migrate=None) as ledger:
        await put_into(ledger, SystemClock()())
    server = Process(["serve", "--port", "0"], tmp_path)
    try:
        server.listening()
        await server.ready()
        assert (await asyncio.to_thread(run, "backup", file, "--ledger", url))[0] == 0
        assert await buy(server.url, "S-A-1") == 201
        for where in (["--folder", str(tmp_path)], ["--ledger", url]):
            code, told = await asyncio.to_thread(run, "restore", file, "--force", *where)
            assert code == 2, told
            assert f"the server at {server.url} (process {server.process.pid})" in told
        assert await buy(server.url, "S-A-2") == 201, "it sells on, into the ledger that is there"
    finally:
        server.stop()
    server.start()
    try:
        server.listening()
        await server.ready()
        assert [await buy(server.url, seat) for seat in ("S-A-1", "S-A-2")] == [409, 409]
    finally:
        server.stop()
    code, told = await asyncio.to_thread(run, "restore", file, "--force", "--ledger", url)
    assert (code, "0 problems" in told) == (0, True), told


def test_a_server_of_an_earlier_version_is_found_by_its_lock_on_the_folder(tmp_path: Path) -> None:
    """It shares no lock on the ledger, and wrote only its address."""
    url, file = f"sqlite:///{tmp_path / 'frontrow.db'}", tmp_path / "first.backup"
    assert run("migrate", "--ledger", url)[0] == 0
    backups.backup(url, file)
    handle = lock_folder(tmp_path)
    try:
        os.pwrite(handle, b"http://127.0.0.1:8000", 0)
        code, told = run("restore", str(file), "--force", "--folder", str(tmp_path))
        assert (code, "the server at http://127.0.0.1:8000 uses" in told) == (2, True), told
        assert run("restore", str(file), "--ledger", f"sqlite:///{tmp_path / 'drill.db'}")[0] == 0, "another ledger"
    finally:
        os.close(handle)
    assert run("restore", str(file), "--force", "--folder", str(tmp_path))[0] == 0


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    found: str = request.getfixturevalue("postgres_ledger_url")
    return found


async def test_a_ledger_that_somebody_has_open_is_not_replaced(
    tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`frontrow work` on a ledger alone, or another server on the same PostgreSQL."""
    monkeypatch.setattr(ledger_users, "CLOSED_WITHIN_S", 0.2)
    file = str(tmp_path / "first.backup")
    await asyncio.to_thread(run, "migrate", "--ledger", ledger_url)
    assert (await asyncio.to_thread(run, "backup", file, "--ledger", ledger_url))[0] == 0
    ledger = await open_ledger(ledger_url)
    try:
        await put_into(ledger, SystemClock()())
        code, told = await asyncio.to_thread(run, "restore", file, "--force", "--ledger", ledger_url)
        assert (code, "stop every server and worker first" in told) == (2, True), told
        assert await ledger.catalogue.event(EVENT_ID) is not None
    finally:
        await ledger.aclose()
    code, told = await asyncio.to_thread(run, "restore", file, "--force", "--ledger", ledger_url)
    assert code == 0, told


async def test_a_ledger_that_is_open_by_another_name_is_not_replaced(tmp_path: Path) -> None:
    real, alias, file = tmp_path / "disk" / "real.db", tmp_path / "frontrow.db", tmp_path / "first.backup"
    real.parent.mkdir()
    alias.symlink_to(real)
    urls = [f"sqlite:///{real}", f"sqlite:///{alias}"]
    async with opened_ledger(urls[0], auto_migrate=None):
        pass
    await asyncio.to_thread(backups.backup, urls[0], file)
    for opened, restored in (urls, urls[::-1]):
        async with opened_ledger(opened):
            with pytest.raises(ledger_users.LedgerInUse):
                await asyncio.to_thread(backups.restore, file, restored, force=True)
    before = real.stat().st_ino
    await asyncio.to_thread(backups.restore, file, urls[1], force=True)
    assert alias.is_symlink()
    assert real.stat().st_ino != before, "the ledger is replaced, not its other name"


@pytest.mark.parametrize("lock", ["frontrow.db.lock", "server.lock"])
def test_a_lock_that_cannot_be_had_is_named(tmp_path: Path, lock: str) -> None:
    """As in a folder of another user, or on a disk that can only be read."""
    url, file = f"sqlite:///{tmp_path / 'frontrow.db'}", tmp_path / "first.backup"
    assert run("migrate", "--ledger", url)[0] == 0
    backups.backup(url, file)
    (tmp_path / lock).unlink(missing_ok=True)
    (tmp_path / lock).mkdir()
    code, told = run("restore", str(file), "--force", "--ledger", url)
    assert code == 2, told
    assert str(tmp_path / lock) in told.replace("\n", "")


async def test_nobody_opens_a_ledger_while_it_is_restored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'frontrow.db'}"
    await asyncio.to_thread(run, "migrate", "--ledger", url)
    with ledger_users.use_alone(url):
        with pytest.raises(Unavailable, match="is being restored"):
            await open_ledger(url)
        code, told = await asyncio.to_thread(run, "migrate", "--ledger", url)
        assert (code, "is being restored" in told) == (2, True), told
    await (await open_ledger(url)).aclose()


async def test_a_ledger_file_that_was_replaced_by_hand_is_not_written_to(tmp_path: Path) -> None:
    """Without the command: somebody copies a backup over the file of a running server."""
    path = tmp_path / "frontrow.db"
    ledger = await open_ledger(f"sqlite:///{path}")
    try:
        await put_into(ledger, SystemClock()())
        with closing(sqlite3.connect(tmp_path / "copy.db")) as copy, closing(sqlite3.connect(path)) as source:
            source.backup(copy)
        os.replace(tmp_path / "copy.db", path)
        with pytest.raises(Unavailable, match="moved or replaced"):
            await put_into(ledger, SystemClock()(), id="evt_late")
    finally:
        await ledger.aclose()


def test_verify_says_what_it_proved_and_what_it_cannot(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'frontrow.db'}"

    async def fill() -> None:
        async with opened_ledger(url, auto_migrate=None) as ledger:
            await put_into(ledger, SystemClock()())

    asyncio.run(fill())
    code, told = run("verify", "--ledger", url)
    assert code == 0
    assert "proved: no seat has two active bookings" in told
    assert "not proved: that nothing is missing, as after the restore of a backup" in told
    assert "not proved: that the payment provider has the same payments" in told
    head = next(line for line in run("status", "--ledger", url)[1].splitlines() if line.startswith("head "))
    told = run("verify", "--ledger", url, "--head", head.removeprefix("head "))[1]
    assert "proved: the kept heads stand in it: 1" in told
    assert "that nothing is missing" not in told


def test_the_lock_names_the_address_in_its_first_line(tmp_path: Path) -> None:
    from frontrow.cli.folder_lock import find_address, name_server

    assert (find_address(tmp_path), name_server(tmp_path)) == ("", "")
    handle = lock_folder(tmp_path)
    try:
        write_address(handle, "http://127.0.0.1:8000")
        assert find_address(tmp_path) == "http://127.0.0.1:8000"
        assert name_server(tmp_path) == f"the server at http://127.0.0.1:8000 (process {os.getpid()})"
    finally:
        os.close(handle)
    assert find_address(tmp_path) == ""
