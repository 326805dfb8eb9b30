"""Clocks, errors and settings."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from frontrow.core.clock import SteadyClock, SystemClock, WallClock, steady
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.core.settings_loader import load, read_toml, setting
from frontrow.testing.clock import ManualClock


def test_the_system_clock_agrees_with_the_wall_and_never_goes_back() -> None:
    clock = SystemClock()
    assert abs(clock() - WallClock()()) < 5_000_000
    times = [clock() for _ in range(1000)]
    assert times == sorted(times)


def test_a_steady_clock_goes_on_at_the_same_pace_after_being_set_back() -> None:
    """L15: neither grants nor burns."""
    manual = ManualClock(1_000_000)
    clock = steady(manual)
    assert isinstance(clock, SteadyClock)
    assert steady(clock) is clock
    manual.advance(5)
    assert clock() == 6_000_000
    manual.advance(-3600)
    assert clock() == 6_000_000
    manual.advance(2)
    assert clock() == 8_000_000
    manual.advance(-1)
    manual.advance(1)
    assert clock() == 8_000_000


@dataclass(frozen=True)
class Shop:
    name: str = setting(example="FRONTROW_SHOP_NAME=Arena")
    seats: int = setting(100, low=1, high=1000)
    rate: float = setting(1.5, low=0)
    mode: str = setting("demo", choices=("demo", "live"))
    key: str | None = setting(None, secret=True)
    proxies: tuple[str, ...] = setting(())
    folder: Path = setting(Path("out"))
    quiet: bool = setting(False)


def test_settings_come_from_the_file_and_the_environment_wins(tmp_path: Path) -> None:
    """L16: configuration from a file and the environment."""
    file = tmp_path / "frontrow.toml"
    file.write_text('[shop]\nname = "Arena"\nseats = 50\nproxies = ["10.0.0.1"]\nfolder = "x"\nrate = 2\n')
    shop = load(Shop, "shop", tables=read_toml(file), env={"FRONTROW_SHOP_SEATS": "60", "FRONTROW_SHOP_QUIET": "yes"})
    assert shop == Shop("Arena", 60, 2.0, "demo", None, ("10.0.0.1",), Path("x"), True)
    listed = load(Shop, "shop", env={"FRONTROW_SHOP_NAME": "A", "FRONTROW_SHOP_PROXIES": "10.0.0.1, 10.0.0.2"})
    assert listed.proxies == ("10.0.0.1", "10.0.0.2")


@pytest.mark.parametrize(
    ("table", "env", "message"),
    [
        ({}, {}, "shop.name is not set; set it in the file or as FRONTROW_SHOP_NAME, for example"),
        ({"name": "A", "seats": 0}, {}, "shop.seats must be from 1 to 1000, not 0"),
        ({"name": "A", "seats": "many"}, {}, "shop.seats must be a whole number, not 'many'"),
        ({"name": "A", "seats": True}, {}, "shop.seats must be a whole number, not True"),
        ({"name": "A", "key": 12345678}, {}, "shop.key must be a text in quotes, not a whole number"),
        ({"name": "A", "seat": 1}, {}, "shop.seat is not a setting; did you mean shop.seats?"),
        ({"name": "A", "colour": 1}, {}, "shop.colour is not a setting; [shop] has name, seats"),
        ({"name": "A"}, {"FRONTROW_SHOP_SEATS": "many"}, "FRONTROW_SHOP_SEATS must be a whole number, not 'many'"),
        ({"name": "A"}, {"FRONTROW_SHOP_MODE": "test"}, "FRONTROW_SHOP_MODE must be one of demo, live, not 'test'"),
        ({"name": "A"}, {"FRONTROW_SHOP_QUIET": "maybe"}, "FRONTROW_SHOP_QUIET must be true or false"),
        (
            {"name": "A"},
            {"FRONTROW_SHOP_SAETS": "5"},
            "FRONTROW_SHOP_SAETS is not a setting; did you mean FRONTROW_SHOP_SEATS?",
        ),
        ({"name": "A", "rate": -1.0}, {}, "shop.rate must be at least 0, not -1.0"),
    ],
)
def test_a_bad_setting_is_one_sentence_naming_it(table: dict[str, object], env: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(Shop, "shop", tables={"shop": table}, env=env)
    assert caught.value.message.startswith(message)


def test_a_misspelt_setting_is_told_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"did you mean FRONTROW_SHOP_SEATS\?$"):
        load(Shop, "shop", tables={"shop": {"name": "A"}}, env={"FRONTROW_SHOP_SAETS": "5"})
    with pytest.raises(ConfigError, match=r"did you mean shop\.seats\?$"):
        load(Shop, "shop", tables={"shop": {"name": "A", "saets": 5}}, env={})
    beside = {"FRONTROW_SHOPS_SAETS": "5", "FRONTROW_SHOP_SERVICE_HOST": "10.0.0.1", "FRONTROW_SHOP_PORT": "tcp://x"}
    load(Shop, "shop", tables={"shop": {"name": "A"}}, env=beside)  # another section, and what Kubernetes says


def test_a_secret_shows_nowhere() -> None:
    shop = load(Shop, "shop", tables={"shop": {"name": "A", "key": "hunter2"}}, env={})
    assert shop.key == "hunter2"
    assert "hunter2" not in repr(shop)
    with pytest.raises(ConfigError) as caught:
        load(Shop, "shop", tables={"shop": {"name": "A", "key": ["hunter2"]}}, env={})
    assert "hunter2" not in caught.value.message


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such settings file"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[shop\n")
    with pytest.raises(ConfigError, match="bad.toml: not valid TOML"):
        read_toml(tmp_path / "bad.toml")


def test_an_error_is_a_problem_document() -> None:
    problem = InvalidInput("seats must be positive", param="seats", seats=[3]).problem()
    assert problem == {
        "type": "urn:frontrow:invalid_input",
        "title": "Invalid input",
        "status": 422,
        "code": "invalid_input",
        "detail": "seats must be positive",
        "param": "seats",
        "seats": [3],
    }
