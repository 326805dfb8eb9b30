"""One idea of where things are: every command finds the server's ledger and folder, and none makes another (D2)."""

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import httpx
import pytest
import typer
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.cli.main import COMMANDS, GROUPS
from frontrow.core.clock import SystemClock
from frontrow.shared.derived_keys import Secrets
from frontrow.shared.vault import Vault
from frontrow.web.platform.sealed_keys import TICKETS, SealedKeys
from tests.support.processes import SECRET, until_healthy
from tests.web.api.support import EVENT_ID, put_into, room_keys

TOML = """
[server]
demo = true
folder = "hall"
port = 0
public_url = "https://tickets.example.org"
per_ip = "1000/second"

[people]
argon2_memory_kib = 8
argon2_time_cost = 1
argon2_lanes = 1

[room]
capacity = 7
"""
WHERE = ("config", "folder", "ledger")
OWN_FOLDER = {"demo", "room"}  # the demo removes its folder; the room's keys are in the folder of [room]
NEEDS_LEDGER = [
    ("ledger", "status"),
    ("ledger", "verify"),
    ("ledger", "backup", "copy.backup"),
    ("ledger", "dead-letters", "list"),
    ("ledger", "reconcile"),
    ("event", "webhooks", "list", EVENT_ID),
    ("door", "bundle", EVENT_ID),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FRONTROW_") and "TEST" not in name]:
        monkeypatch.delenv(name)
    return tmp_path


def frontrow(*words: str) -> tuple[int, str]:
    """A command as a person types it: its exit code and what it says."""
    if words[0] in GROUPS:
        app = importlib.import_module(GROUPS[words[0]][0]).app
    else:
        app = typer.Typer()
        app.command()(getattr(importlib.import_module(COMMANDS[words[0]][0]), words[0]))
    done = CliRunner().invoke(app, words[1:])
    return done.exit_code, done.output


async def put_on_sale(url: str, ring: TicketKeys | None = None) -> None:
    """An event into the ledger, and the keys that servers would put there."""
    ledger = await open_ledger(url)
    try:
        await put_into(ledger, SystemClock()())
        if ring is not None:
            vault = Vault([Secrets(SECRET.encode()).key("keys")])
            await SealedKeys(ledger.keys, vault, 1).opened(TICKETS, lambda: ring, TicketKeys.unpacked)
    finally:
        await ledger.aclose()


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)).partition("/")[0] for path in folder.iterdir()}


def test_every_command_works_on_the_ledger_of_the_server(here: Path) -> None:
    (here / "frontrow.toml").write_text(TOML)
    assert frontrow("ledger", "migrate")[1].startswith("schema none -> ")
    (here / "hall" / "room").mkdir()
    room_keys().save(here / "hall" / "room")  # an RSA key takes a second
    command = [sys.executable, "-m", "frontrow.cli.main", "serve"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"FRONTROW_LOG": "error"})
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        until_healthy(url, server)
        asyncio.run(put_on_sale("sqlite:///hall/frontrow.db"))

        code, said = frontrow("organiser", "create", "Hall", "--email", "ada@example.org", "--invite", "--json")
        assert code == 0, said
        assert json.loads(said)["link"].startswith("https://tickets.example.org/invitation#"), "as the server says"
        assert json.loads(said)["organiser"] in frontrow("organiser", "list")[1]
        assert frontrow("event", "webhooks", "list", EVENT_ID) == (0, "")
        code, said = frontrow("door", "bundle", EVENT_ID)
        assert (code, "-> gate.json" in said) == (0, True), said
        (here / "gate.jsonl").touch()
        assert frontrow("door", "sync", "gate.jsonl")[1].startswith("handed in to the ledger")
        assert "schema" in frontrow("ledger", "status")[1]
        assert frontrow("ledger", "verify")[1].startswith("whole")
        assert frontrow("ledger", "dead-letters", "list") == (0, "dead letters: 0\n")
        assert frontrow("ledger", "backup", "copy.backup")[0] == 0
        code, said = frontrow("ledger", "reconcile")
        assert (code, "difference 0" in said) == (0, True), said
        code, said = frontrow("work")
        assert (code, "has its jobs inside" in said) == (2, True)
        found = json.loads(frontrow("doctor", "--json")[1])["findings"]
        assert next(one["says"] for one in found if one["check"] == "disk").endswith("at hall")
        events = httpx.get(f"{url}/v1/events").json()
        assert EVENT_ID in json.dumps(events), "the server sells what the commands see"
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        server.stdout.close()
    assert files(here) == {"frontrow.toml", "hall", "gate.json", "gate.jsonl", "copy.backup"}
    assert frontrow("ledger", "restore", "copy.backup", "--force")[0] == 0
    assert files(here) == {"frontrow.toml", "hall", "gate.json", "gate.jsonl", "copy.backup"}


@pytest.mark.parametrize("words", NEEDS_LEDGER, ids=" ".join)
def test_without_a_ledger_a_command_says_where_it_looked_and_makes_nothing(here: Path, words: tuple[str, ...]) -> None:
    code, said = frontrow(*words)
    assert (code, "Traceback" in said) == (2, False)
    assert "there is no ledger at frontrow-data/frontrow.db" in said or words == ("ledger", "reconcile")
    assert files(here) == set()


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "frontrow.toml").write_text('[server]\nfolder = "by-file"\n')
    (here / "other.toml").write_text('[ledger]\nurl = "sqlite:///by-other-file.db"\n')
    assert frontrow("ledger", "migrate", "--config", "other.toml")[0] == 0
    assert frontrow("ledger", "migrate", "--ledger", "sqlite:///named.db")[0] == 0
    assert frontrow("ledger", "migrate", "--folder", "by-option")[0] == 0
    monkeypatch.setenv("FRONTROW_SERVER_FOLDER", "by-variable")
    assert frontrow("ledger", "migrate")[0] == 0
    monkeypatch.delenv("FRONTROW_SERVER_FOLDER")
    assert frontrow("ledger", "migrate")[0] == 0
    made = {"by-file", "by-other-file.db", "named.db", "by-option", "by-variable"}
    assert {name for name in files(here) if not name.endswith(("-wal", "-shm", ".lock"))} == made | {
        "frontrow.toml",
        "other.toml",
    }


def test_the_rooms_commands_read_the_same_file(here: Path) -> None:
    (here / "frontrow.toml").write_text('[room]\nport = 1\nfolder = "keys"\norganiser_key = "of-the-file"\n')
    done = CliRunner().invoke(importlib.import_module(GROUPS["room"][0]).app, ["status"])
    assert "http://127.0.0.1:1/room" in str(done.exception)
    (here / "keys").mkdir()
    room_keys().save(here / "keys")
    assert len(frontrow("room", "codes", "make", "aurora", "2")[1].splitlines()) == 2
    assert files(here) == {"frontrow.toml", "keys"}


def test_the_gate_gets_the_keys_that_servers_share_in_their_ledger(here: Path, postgres_ledger_url: str) -> None:
    """Servers on shared stores keep no ring in a folder; with another secret key it cannot be opened."""
    ring = TicketKeys.fresh()
    asyncio.run(put_on_sale(postgres_ledger_url))
    stores = f'[ledger]\nurl = "{postgres_ledger_url}"\n[redis]\nurl = "redis://127.0.0.1:1/0"\n'
    (here / "frontrow.toml").write_text(f'{stores}[secret]\nkey = "{SECRET}"\n')
    (here / "wrong.toml").write_text(f'{stores}[secret]\nkey = "{SECRET[::-1]}"\n')
    (here / "none.toml").write_text(stores)
    assert "holds no ticket keys" in frontrow("door", "bundle", EVENT_ID)[1]
    asyncio.run(put_on_sale(postgres_ledger_url, ring))
    code, said = frontrow("door", "bundle", EVENT_ID)
    assert code == 0, said
    assert json.loads((here / "gate.json").read_text())["keys"] == [ring.public.hex()]
    assert "secret.key is not the one" in frontrow("door", "bundle", EVENT_ID, "-c", "wrong.toml")[1]
    assert "secret.key is not set" in frontrow("door", "bundle", EVENT_ID, "-c", "none.toml")[1]


def _commands(command: click.Command, name: str) -> dict[str, click.Command]:
    inside: dict[str, click.Command] | None = getattr(command, "commands", None)
    if inside is None:
        return {name: command}
    below = [_commands(one, f"{name} {word}") for word, one in inside.items()]
    return {word: one for found in below for word, one in found.items()}


def test_every_command_has_the_same_options_for_where_things_are() -> None:
    found: dict[str, click.Command] = {}
    for name, (module, _, _) in GROUPS.items():
        found |= _commands(typer.main.get_command(importlib.import_module(module).app), name)
    for name, (module, _, _) in COMMANDS.items():
        app = typer.Typer()
        app.command()(getattr(importlib.import_module(module), name.replace("-", "_")))
        found[name] = typer.main.get_command(app)
    of_ledgers = 0
    for name, command in found.items():
        options = {one.name: one for one in command.params}
        if "ledger" in options:
            assert set(WHERE) <= set(options), name
            assert all(options[one].default is None for one in WHERE), f"{name} has an idea of its own"
            of_ledgers += 1
        if "config" in options:
            assert options["config"].envvar == "FRONTROW_CONFIG", name
        if "folder" in options and name.partition(" ")[0] not in OWN_FOLDER:
            assert options["folder"].envvar == "FRONTROW_SERVER_FOLDER", name
    assert of_ledgers >= 14
