"""Ledger URLs: three slashes are relative, four are absolute, and what looks absolute without being so is an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.core.errors import ConfigError
from frontrow.settings.deployment import Deployment
from frontrow.settings.server import ServerSettings


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("url", ["sqlite:///tmp/shop/frontrow.db", "sqlite:///usr/share/frontrow.db"])
async def test_a_path_that_looks_absolute_is_an_error_that_says_what_to_write(url: str, here: Path) -> None:
    meant = url.replace("///", "////")
    for take in (sqlite_path, is_postgres):
        with pytest.raises(ConfigError) as error:
            take(url)
        assert f"Write {meant} for {meant.removeprefix('sqlite:///')}" in error.value.message
        assert url.replace("///", "///./") in error.value.message
    with pytest.raises(ConfigError):
        await open_ledger(url)
    assert os.listdir(here) == [], "nothing was made"
    assert str(sqlite_path(meant)) == meant.removeprefix("sqlite:///")


def test_a_path_in_the_home_folder_is_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    with pytest.raises(ConfigError, match="sqlite:////home/ada/frontrow.db for /home/ada/frontrow.db"):
        sqlite_path("sqlite:///~/frontrow.db")


def test_a_relative_path_stays_one(here: Path) -> None:
    for written in ("frontrow.db", "tmp", "./tmp/shop.db", "../tmp/shop.db", "frontrow-data/frontrow.db"):
        assert sqlite_path(f"sqlite:///{written}") == Path(written)
    (here / "tmp").mkdir()
    assert sqlite_path("sqlite:///tmp/shop.db") == Path("tmp/shop.db"), "there is such a folder here"


def test_a_folder_of_ours_may_have_the_name_of_one_of_the_machine() -> None:
    deployment = Deployment(server=ServerSettings(folder="tmp"))
    assert sqlite_path(deployment.ledger_url) == Path("tmp/frontrow.db")


@pytest.mark.parametrize(
    "command", ["ledger verify", "ledger migrate", "event webhooks list evt_1", "serve --demo", "work", "doctor"]
)
def test_every_command_that_takes_a_ledger_refuses_it(command: str, here: Path) -> None:
    environment = os.environ | {"FRONTROW_LEDGER_URL": "sqlite:///usr/share/frontrow.db"}
    words = [sys.executable, "-m", "frontrow.cli.main", *command.split()]
    told = subprocess.run(words, cwd=here, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert told.returncode != 0, told
    said = " ".join((told.stdout + told.stderr).split())
    assert "has three slashes" in said, said
    assert "Traceback" not in said
    assert not (here / "usr").exists()
