"""Settings made of rubbish: every setting of every section, wrong in every way. The start ends with one sentence that
names the setting; nothing else is ever raised, and no secret is repeated."""

import dataclasses
import string
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.app.wiring import open_platform
from frontrow.core.errors import ConfigError, Unavailable
from frontrow.settings.platform import (
    _SECTIONS,
    BusSettings,
    LedgerSettings,
    MailSettings,
    PlatformSettings,
    RedisSettings,
    SecretSettings,
    ServerSettings,
    read_settings,
)
from frontrow.settings.room import RoomSettings
from frontrow.web.server.platform_server import listen
from frontrow.web.server.room_server import read_settings as read_room_settings

SECRET = "canary-canary-canary-canary-canary-canary"
DEMO = {"FRONTROW_SERVER_DEMO": "true", "FRONTROW_SECRET_KEY": SECRET}


def every_setting() -> list[tuple[str, Any, Any]]:
    """(section, field, its plain type)."""
    found = []
    for name, kind in _SECTIONS.items():
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            hint = hints[field.name]
            if get_origin(hint) in (Union, types.UnionType):
                hint = next(arg for arg in get_args(hint) if arg is not type(None))
            found.append((name, field, get_origin(hint) or hint))
    return found


SETTINGS = every_setting()
NAMES = [f"{section}.{field.name}" for section, field, _ in SETTINGS]


def told_by(tables: str, env: dict[str, str], tmp_path_factory: Any) -> str:
    """The sentence that ends the start."""
    path = tmp_path_factory.mktemp("fuzz") / "frontrow.toml"
    path.write_text(tables)
    with pytest.raises(ConfigError) as raised:
        read_settings(path, env)
    message = raised.value.message
    assert "\n" not in message.strip()
    assert SECRET not in message
    return message


@pytest.mark.parametrize(("section", "field", "kind"), SETTINGS, ids=NAMES)
def test_a_setting_of_the_wrong_type_in_the_file_is_named(section, field, kind, tmp_path_factory):
    for wrong in ("[[1, 2]]", "{ a = 1 }", "1979-05-27", "[1]" if kind is not tuple else "7", "nan"):
        if kind is float and wrong == "nan":
            continue  # told below
        env = {name: text for name, text in DEMO.items() if name != f"FRONTROW_{section}_{field.name}".upper()}
        told = told_by(f"[{section}]\n{field.name} = {wrong}\n", env, tmp_path_factory)
        assert f"{section}.{field.name}" in told, (wrong, told)


@pytest.mark.parametrize(("section", "field", "kind"), SETTINGS, ids=NAMES)
def test_a_number_that_cannot_be_right_is_named(section, field, kind, tmp_path_factory):
    """Text where a number belongs, not a number, infinite, below the least, above the most."""
    variable = f"FRONTROW_{section}_{field.name}".upper()
    low, high = field.metadata.get("low"), field.metadata.get("high")
    wrong = ["x", "", "1e", "0x10"] if kind in (int, float) else ["perhaps"] if kind is bool else []
    wrong += ["nan", "inf", "-inf"] if kind is float else []
    wrong += [str(low - 1)] if low is not None else []
    wrong += [str(high + 1)] if high is not None else []
    wrong += ["nonsense"] if field.metadata.get("choices") else []
    for text in wrong:
        told = told_by("", {**DEMO, variable: text}, tmp_path_factory)
        assert variable in told, (text, told)


def test_unknown_names_are_named_in_the_file_and_in_the_environment(tmp_path_factory):
    for section in _SECTIONS:
        assert f"{section}.nosuch" in told_by(f"[{section}]\nnosuch = 1\n", DEMO, tmp_path_factory)
        assert section in told_by(f"{section} = 3\n", DEMO, tmp_path_factory)
    for variable in (
        "FRONTROW_SERVER_PROT",
        "FRONTROW_NONSENSE_X",
        "FRONTROW_SEVRER_PORT",
        "FRONTROW_OVERLAOD_DEADLINE_S",
    ):
        assert variable in told_by("", {**DEMO, variable: "1"}, tmp_path_factory)
    for variable, meant in (("FRONTROW_PORT", "FRONTROW_SERVER_PORT"), ("FRONTROW_SECRET", "FRONTROW_SECRET_KEY")):
        told = told_by("", {**DEMO, variable: "1"}, tmp_path_factory)
        assert f"{variable} is not a setting" in told
        assert meant in told
    read_settings(None, {**DEMO, "FRONTROW_PORT": "tcp://10.0.0.1:8000"})  # Kubernetes says so of a service frontrow


WORDS = st.text(string.ascii_letters + string.digits + "/:.,-+@%[]{}' \u00e9\u0000\n", max_size=40)


@given(st.sampled_from(SETTINGS), WORDS)
def test_any_text_for_any_setting_is_taken_or_refused_by_name(which, text):
    """What passes the settings may still be refused when it is opened; it never breaks."""
    section, field, _ = which
    variable = f"FRONTROW_{section}_{field.name}".upper()
    refused, settings = None, None
    try:
        settings = read_settings(None, {**DEMO, variable: text})
    except ConfigError as error:
        refused = error
    if refused is None:
        assert SECRET not in repr(settings)
    else:
        assert refused.param is not None, refused.message
        assert refused.param in refused.message
        assert "\n" not in refused.message.strip()


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"FRONTROW_SERVER_PER_IP": "many"}, "server.per_ip"),
        ({"FRONTROW_SERVER_PER_PERSON": "0/second"}, "server.per_person"),
        ({"FRONTROW_PEOPLE_IP_TRIES": "5/minute,x"}, "people.ip_tries"),
        ({"FRONTROW_SERVER_TRUSTED_PROXIES": "10.0.0.0/99"}, "server.trusted_proxies"),
        ({"FRONTROW_LEDGER_URL": f"mysql://u:{SECRET}@x"}, "ledger.url"),
        ({"FRONTROW_REDIS_URL": f"redsi://:{SECRET}@x", "FRONTROW_LEDGER_URL": "postgresql://x/y"}, "redis.url"),
        ({"FRONTROW_ROOM_LANES": "fans:x"}, "room.lanes"),
        ({"FRONTROW_SERVER_WORKERS": "2"}, "server.workers"),
    ],
)
def test_what_has_the_wrong_form_is_named(tmp_path_factory, env, named):
    assert named in told_by("", {**DEMO, **env}, tmp_path_factory)


async def test_what_only_opening_can_find_is_named_too(tmp_path):
    for section in ({"mail": MailSettings(f"http://u:{SECRET}@x")}, {"bus": BusSettings(f"nats://u:{SECRET}@x")}):
        (name,) = section
        settings = PlatformSettings(server=ServerSettings(demo=True, folder=str(tmp_path)), **section)
        with pytest.raises(ConfigError, match=rf"{name}\.url") as raised:
            async with open_platform(settings):
                pass
        assert SECRET not in raised.value.message
    with pytest.raises(ConfigError, match=r"server\.port"):
        listen(ServerSettings(host="no such host", port=0))


async def test_a_folder_that_is_none_and_a_ledger_that_is_away_are_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"server\.folder"):
        async with open_platform(PlatformSettings(server=ServerSettings(demo=True, folder=str(tmp_path / "file")))):
            pass
    away = PlatformSettings(
        server=ServerSettings(demo=True, folder=str(tmp_path)),
        secret=SecretSettings("x" * 40),
        ledger=LedgerSettings(f"postgresql://u:{SECRET}@127.0.0.1:1/x"),
        redis=RedisSettings("redis://127.0.0.1:1"),
    )
    with pytest.raises(Unavailable, match=r"ledger\.url does not answer") as raised:
        async with open_platform(away):
            pass
    assert "\n" not in raised.value.message
    assert SECRET not in raised.value.message


def test_addresses_with_passwords_do_not_show():
    sections = {"redis": RedisSettings(f"redis://:{SECRET}@r/0"), "mail": MailSettings(f"smtp://u:{SECRET}@m")}
    ledger = LedgerSettings(f"postgresql://u:{SECRET}@d/f")
    settings = PlatformSettings(
        server=ServerSettings(demo=True), secret=SecretSettings("x" * 40), ledger=ledger, **sections
    )
    assert SECRET not in repr(settings)


def told_by_kubernetes(service: str) -> dict[str, str]:
    """What every container of a namespace is told about one of its services."""
    about = {
        "SERVICE_HOST": "10.0.0.9",
        "SERVICE_PORT": "6379",
        "SERVICE_PORT_TCP_REDIS": "6379",
        "PORT": "tcp://10.0.0.9:6379",
        "PORT_6379_TCP": "tcp://10.0.0.9:6379",
        "PORT_6379_TCP_PROTO": "tcp",
        "PORT_6379_TCP_PORT": "6379",
        "PORT_6379_TCP_ADDR": "10.0.0.9",
    }
    return {f"{service.upper().replace('-', '_')}_{name}": value for name, value in about.items()}


@pytest.mark.parametrize(
    "service",
    [
        "frontrow",
        "frontrow-web",
        "frontrow-server",
        "frontrow-room",
        "frontrow-limits",
        "frontrow-redis",
        "frontrow-redis-master",
        "frontrow-ledger-rw",
        "frontrow-bus-kafka-0",
    ],
)
def test_kubernetes_own_variables_are_no_mistakes(service, monkeypatch):
    told = told_by_kubernetes(service)
    assert read_settings(None, {**DEMO, **told}) == read_settings(None, DEMO)
    for variable, value in told.items():
        monkeypatch.setenv(variable, value)
    assert read_room_settings(None) == RoomSettings()
