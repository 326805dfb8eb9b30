"""Migrations: by command and by themselves when embedded; an old file upgrades and goes on working (B16, B20)."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.schema_versions import MIGRATIONS, newest_version, schema_version
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.cli.ledger import app
from frontrow.core.errors import ConfigError
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench

TABLES = {
    "events",
    "venues",
    "plans",
    "seats",
    "price_tiers",
    "bookings",
    "booking_seats",
    "payments",
    "refunds",
    "waitlist",
    "offers",
    "tickets",
    "outbox",
    "inbox",
    "idempotency_keys",
    "queue_audit",
    "audit_log",
    "audit_heads",
    "event_listings",
    "event_words",
    "catalogue_version",
}
OLD_FILE = Path(__file__).parent / "fixtures" / "schema_0001.sql"


def old_file(folder: Path) -> str:
    """A SQLite ledger of schema 1 with one sold booking and one hold, as the first version left it."""
    connection = sqlite3.connect(folder / "old.db")
    connection.executescript(OLD_FILE.read_text())
    connection.close()
    return f"sqlite:///{folder / 'old.db'}"


def columns(url: str) -> dict[str, set[str]]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: {row[1] for row in connection.execute(f"PRAGMA table_xinfo({name})")} for name in names}
        connection.close()
    else:
        with psycopg.connect(url) as admin:
            query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
            found = {}
            for table, column in admin.execute(query):
                found.setdefault(table, set()).add(column)
    return {name: found[name] for name in TABLES & found.keys()}


def test_both_dialects_get_the_same_tables_and_columns(sqlite_ledger_url: str, postgres_ledger_url: str) -> None:
    """B20: one schema."""
    ours = columns(sqlite_ledger_url)
    assert ours.keys() == TABLES
    assert ours == columns(postgres_ledger_url)
    assert {"amount_minor", "currency", "fence", "session", "created_at_us"} <= ours["bookings"]


async def test_an_old_file_upgrades_by_itself_and_goes_on(tmp_path: Path) -> None:
    """Embedded mode: schema 1 with a sold and a held booking, opened by this version."""
    url = old_file(tmp_path)
    assert await asyncio.to_thread(schema_version, url) == "0001"
    ledger = await open_ledger(url)
    try:
        sold, held = [await ledger.booking(f"bkg_{n:026d}") for n in (1, 2)]
        assert sold is not None and held is not None  # noqa: PT018
        assert (sold.state, sold.seats, sold.amount_minor) == (BookingState.CONFIRMED, (1, 2), 9000)
        bench = Bench(ledger, ledger)
        bench.event = "evt_old"
        with pytest.raises(SeatsTaken) as taken:
            await bench.hold(2, 3, 4)
        assert taken.value.seats == (2, 3)
        new = await bench.hold(4)
        assert new.fence > held.fence
        assert len(await ledger.claim_facts(bench.now_us, 1, 100)) == 5, "facts of the old version wait in the outbox"
        assert not await ledger.messages.seen_before("old", "message_1", bench.now_us), (
            "the tables of later versions are there"
        )
        wrong, read = await verify(ledger.store)
        assert (wrong, read) == ([], 5)
    finally:
        await ledger.aclose()
    assert await asyncio.to_thread(schema_version, url) == newest_version()


async def test_postgres_is_migrated_on_purpose_only(postgres_url: str) -> None:
    with pytest.raises(ConfigError, match="frontrow ledger migrate"):
        await open_ledger(postgres_url)
    await asyncio.to_thread(migrate, postgres_url, "0001")
    with pytest.raises(ConfigError, match="schema 0001"):
        await open_ledger(postgres_url)
    await asyncio.to_thread(migrate, postgres_url)
    async with opened(postgres_url) as ledger:
        await Bench(ledger, ledger).hold(1)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_servers_that_start_at_once_migrate_once(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    command = [
        sys.executable,
        "-c",
        f"from frontrow.boxoffice.adapters.ledger.migrate import migrate; print(migrate({url!r}))",
    ]
    servers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [server.communicate(timeout=60)[0] for server in servers]
    assert all(f"{newest_version()}\n" in line for line in told), told
    assert columns(url).keys() == TABLES


def test_the_newest_version_is_alembics_head() -> None:
    """Servers read it from the text of the files, because Alembic takes half a second to import."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [newest_version()]


def test_a_server_whose_ledger_is_up_to_date_starts_without_alembic_and_the_printing_of_tickets(
    sqlite_ledger_url: str,
) -> None:
    code = (
        "import asyncio, sys\n"
        "import frontrow.app.wiring, frontrow.web.server.platform_server\n"
        "from frontrow.boxoffice.adapters.ledger.from_url import open_ledger\n"
        "async def main():\n"
        f"    await (await open_ledger({sqlite_ledger_url!r})).aclose()\n"
        "asyncio.run(main())\n"
        "print(sorted({'alembic', 'sqlalchemy', 'fpdf'} & set(sys.modules)))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert told.stdout == "[]\n", told.stderr


async def test_a_ledger_that_is_none_is_a_clear_error() -> None:
    for url in ("mysql://x", "", "sqlite://", "frontrow.db"):
        with pytest.raises(ConfigError, match="it must be like sqlite:///"):
            await open_ledger(url)


def test_the_command_migrates_verifies_and_tells(tmp_path: Path) -> None:
    url, run = old_file(tmp_path), CliRunner().invoke
    refused = run(app, ["verify", "--ledger", url])
    assert refused.exit_code == 2
    assert "frontrow ledger migrate" in refused.output
    assert run(app, ["migrate", "--ledger", url]).output == f"schema 0001 -> {newest_version()}\n"
    assert run(app, ["migrate", "--ledger", url]).output == f"schema {newest_version()}\n"
    whole = run(app, ["verify", "--ledger", url])
    assert (whole.exit_code, whole.output.splitlines()[0]) == (0, "whole; 4 audit entries read")
    told = json.loads(run(app, ["status", "--json"], env={"FRONTROW_LEDGER_URL": url}).output)
    assert told["counts"]["bookings confirmed"] == told["counts"]["bookings held"] == 1
    assert "seats active: 3" in run(app, ["status", "--ledger", url]).output
    kept = ["--head", told["heads"][0]]
    assert run(app, ["verify", "--ledger", url, *kept]).exit_code == 0
    connection = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    connection.execute("DROP TRIGGER audit_log_no_update")
    connection.execute("UPDATE audit_log SET body = '[]' WHERE seq = 2")
    connection.close()
    broken = run(app, ["verify", "--ledger", url, "--json"])
    assert broken.exit_code == 1
    assert "entry 2: was changed" in json.loads(broken.output)["problems"][0]
    assert run(app, ["verify", "--ledger", url, "--head", "nonsense"]).exit_code == 2
    assert run(app, ["migrate", "--ledger", "postgresql://nobody@127.0.0.1:1/x"]).exit_code == 2
