"""A setting that is accepted is used. Every field of every section is read by the platform or refused with a sentence
that says what would be right; a section that the platform does not use is refused as well."""

import asyncio
import base64
import contextlib
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from frontrow.app.room_wiring import human_check
from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.cli import work
from frontrow.cli.deployment_options import find_direct_ledger
from frontrow.core.errors import ConfigError
from frontrow.settings.deployment import MailSettings
from frontrow.settings.platform import (
    _SECTIONS,
    ROOM_SERVE_ONLY,
    PlatformSettings,
    StripeSettings,
    read_settings,
)
from frontrow.settings.room import RoomSettings
from frontrow.settings.server import ServerSettings
from frontrow.settings.traces import TraceSettings
from frontrow.web.server.platform_server import listen_for_metrics, make_server
from frontrow.web.site.fans import checkout
from tests.boxoffice.adapters.channels.service_account import service_account
from tests.web.api.support import a_server, room_keys, settings_for

FIELDS = [(name, field) for name, kind in _SECTIONS.items() for field in dataclasses.fields(kind)]
NAMES = [f"{section}.{field.name}" for section, field in FIELDS]
DEMO = {"FRONTROW_SERVER_DEMO": "true"}
VAPID_KEY = base64.urlsafe_b64encode(bytes(range(1, 33))).decode()
CHECKS_ONLY = ("__post_init__", "_check_forms", "_check_room")


def _demo_takes_made_up_money() -> bool:
    with pytest.raises(ConfigError, match=r"stripe\.key is not set; only server\.demo takes made-up money"):
        read_settings(None, {"FRONTROW_SECRET_KEY": "x" * 40})
    return True


def _the_checkout_page_names_the_publishable_key() -> bool:
    return "platform.settings.stripe.publishable_key" in inspect.getsource(checkout)


def _the_worker_answers_at_its_health_address() -> bool:
    return "settings.work.health" in inspect.getsource(work)


def _the_ledgers_commands_use_the_direct_address() -> bool:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("FRONTROW_LEDGER_URL", "postgresql://pooler/a")
        patched.setenv("FRONTROW_LEDGER_DIRECT_URL", "postgresql://db/a")
        return find_direct_ledger(None, None, None) == "postgresql://db/a"


def _the_metrics_have_the_port_of_their_setting() -> bool:
    sock = listen_for_metrics(ServerSettings(metrics="127.0.0.1:0"))
    assert sock is not None
    with sock:
        return sock.getsockname()[1] > 0 and listen_for_metrics(ServerSettings()) is None


# settings that are read in the settings' own checks, by `frontrow work` or only while somebody pays -> what shows it
OBSERVED: dict[str, Callable[[], bool]] = {
    "server.demo": _demo_takes_made_up_money,
    "server.metrics": _the_metrics_have_the_port_of_their_setting,
    "ledger.direct_url": _the_ledgers_commands_use_the_direct_address,
    "work.health": _the_worker_answers_at_its_health_address,
    "stripe.publishable_key": _the_checkout_page_names_the_publishable_key,
}


@contextlib.contextmanager
def recording() -> Iterator[set[str]]:
    """The fields that somebody reads, besides the settings' own checks and `dataclasses.replace`."""
    seen: set[str] = set()
    names = {kind: name for name, kind in _SECTIONS.items()}
    fields = {kind: {field.name for field in dataclasses.fields(kind)} for kind in names}

    def read(self: Any, name: str) -> Any:
        kind = type(self)
        if name in fields[kind]:
            frame = sys._getframe(1)
            stack = []
            while frame is not None and len(stack) < 12:
                stack.append((frame.f_globals.get("__name__"), frame.f_code.co_name))
                frame = frame.f_back  # type: ignore[assignment]
            if stack[0][0] != "dataclasses" and not any(called in CHECKS_ONLY for _, called in stack):
                seen.add(f"{names[kind]}.{name}")
        return object.__getattribute__(self, name)

    with pytest.MonkeyPatch.context() as patch:
        for kind in names:
            patch.setattr(kind, "__getattribute__", read, raising=False)
        yield seen


async def _use_other_channels(folder: Path) -> None:
    """Open the channels of Twilio, FCM and SES, each at a server of our own."""
    account, nobody = folder / "fcm.json", "http://127.0.0.1:1"
    account.write_bytes(msgspec.json.encode(service_account(nobody)))
    messages = MessageSettings(
        sms_url="twilio:AC1?from=+15005550006",
        sms_key="token",
        sms_api=nobody,
        fcm_file=str(account),
        fcm_api=nobody,
        aws_key_id="AKIA",
        aws_secret="secret",
        ses_api=nobody,
    )
    mail = MailSettings("ses:eu-west-1?from=tickets@example.org")
    async with open_platform(dataclasses.replace(settings_for(folder), mail=mail, messages=messages)):
        pass


async def _use_platform(folder: Path) -> None:
    """Serve as `frontrow serve` does, with every optional part set up."""
    settings = settings_for(folder)
    stripe = StripeSettings("sk_test_x", "whsec_x", "pk_test_x", "http://127.0.0.1:1")
    messages = MessageSettings(VAPID_KEY, "mailto:ops@example.org", "https://sms.example.org", "key")
    traces = TraceSettings("http://127.0.0.1:1/v1/traces", 0.0)
    async with open_platform(
        dataclasses.replace(settings, stripe=stripe, messages=messages, traces=traces)
    ) as platform:
        make_server(platform)
    async with a_server(folder) as (platform, url), httpx.AsyncClient(base_url=url) as client:
        await client.get("/docs")
        await client.post("/v1/webhooks/stripe")  # money: it has a deadline of its own
        await client.get("/")
        platform.server.telemetry.gate.close_interval()
    await _use_other_channels(folder)
    keyed = RoomSettings(human="hcaptcha", human_site_key="site", human_secret="secret", human_hostnames=("a.example",))
    for chosen in ("altcha", "hcaptcha"):
        human_check(keyed, room_keys(), "evt", chosen)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with recording() as found:
        asyncio.run(_use_platform(tmp_path_factory.mktemp("used")))
    return set(found)


@pytest.mark.parametrize(("section", "field"), FIELDS, ids=NAMES)
def test_every_setting_is_used_or_refused(section: str, field: Any, seen: set[str], tmp_path: Path) -> None:
    name = f"{section}.{field.name}"
    if section != "room" or field.name not in ROOM_SERVE_ONLY:
        assert name in seen or OBSERVED[name](), f"{name} is accepted, and nobody reads it"
        return
    path = tmp_path / "frontrow.toml"
    value = field.default if not isinstance(field.default, tuple) else list(field.default)
    path.write_text(f"[room]\n{field.name} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n")
    for where, told in ((f"room.{field.name}", (path, DEMO)), (f"FRONTROW_ROOM_{field.name.upper()}", (None, DEMO))):
        env = told[1] | ({where: "1"} if told[0] is None else {})
        with pytest.raises(ConfigError) as raised:
            read_settings(told[0], env)
        assert raised.value.param == where
        assert ROOM_SERVE_ONLY[field.name] in raised.value.message


def test_settings_made_in_python_are_held_to_the_same() -> None:
    with pytest.raises(ConfigError, match=r"room\.port is only for `frontrow room serve`; here set server\.port"):
        dataclasses.replace(settings_of_demo(), room=RoomSettings(port=1))


def settings_of_demo() -> PlatformSettings:
    return read_settings(None, DEMO)


RULE = '[[limits.rules]]\nname = "lists"\nquota = "5/minute"\n'


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[limits]\n", r"limits\.rules is missing; add \[\[limits\.rules\]\]"),
        (
            '[limits]\nstore = "memory://"\n' + RULE,
            r"limits\.store is only for apps.*; here .* counts in redis",
        ),
        (
            '[limits]\nidentify = {user = "header:x"}\n' + RULE,
            r"limits\.identify .*knows ip, user, api_key",
        ),
        ("[limits]\ncolour = 5\n" + RULE, r"limits\.colour is not a setting"),
        (RULE.replace("5/minute", "many"), r"limits\.rules\[0\]\.quota: 'many' is no quota"),
    ],
)
def test_what_is_wrong_about_the_rules_of_the_api_is_said_at_the_start(
    table: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "frontrow.toml"
    path.write_text(table)
    with pytest.raises(ConfigError, match=message):
        read_settings(path, DEMO)


def test_variables_change_the_rules_of_the_api(tmp_path: Path) -> None:
    path = tmp_path / "frontrow.toml"
    path.write_text(RULE)
    found = read_settings(path, DEMO | {"FRONTROW_LIMITS_RULE_LISTS_QUOTA": "7/minute"}).limits
    assert found is not None
    assert found.rules[0].quota.limit == 7
    with pytest.raises(ConfigError, match=r"FRONTROW_LIMITS_DEADLINE_MS needs rules"):
        read_settings(None, DEMO | {"FRONTROW_LIMITS_DEADLINE_MS": "25"})
    with pytest.raises(ConfigError, match=r"FRONTROW_LIMITS_STORE is only for apps"):
        read_settings(path, DEMO | {"FRONTROW_LIMITS_STORE": "memory://"})


def test_more_lanes_than_an_event_can_have_are_refused_at_the_start() -> None:
    """Three lanes do not fit the now-serving document of an event: no room would open."""
    with pytest.raises(ConfigError, match=r"room\.lanes: an event has at most 2 lanes"):
        read_settings(None, DEMO | {"FRONTROW_ROOM_LANES": "a:1,b:1,c:1"})


def test_a_human_check_without_its_keys_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"room\.human is turnstile, which needs room\.human_site_key"):
        read_settings(None, DEMO | {"FRONTROW_ROOM_HUMAN": "turnstile"})
