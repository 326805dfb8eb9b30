"""What a site brings itself: colours that stay readable, a payment provider named by a setting."""

import re
import sys
import types
from pathlib import Path

import pytest

import frontrow.web
from frontrow.boxoffice.adapters.payments.from_url import open_provider
from frontrow.core.errors import ConfigError
from frontrow.settings.colours import COLOURS, theme_css
from frontrow.settings.platform import read_settings
from frontrow.testing.clock import ManualClock

TOKENS = Path(frontrow.web.__file__).parent / "static" / "css" / "tokens.css"
DEMO = {"FRONTROW_SERVER_DEMO": "1"}
STRIPE = {
    "FRONTROW_STRIPE_KEY": "sk_test_1",
    "FRONTROW_STRIPE_WEBHOOK_SECRET": "whsec_1",
    "FRONTROW_STRIPE_PUBLISHABLE_KEY": "pk_test_1",
}


def test_the_colours_that_a_theme_changes_are_those_of_the_style_sheet() -> None:
    written = dict(re.findall(r"--([a-z0-9-]+): light-dark\((#\w+, #\w+)\)", TOKENS.read_text()))
    assert {name: ", ".join(pair) for name, pair in COLOURS.items()} == {name: written[name] for name in COLOURS}


def test_a_theme_is_a_style_after_ours() -> None:
    assert theme_css(()) == ""
    assert theme_css(("brand:#a3123f/#ff8fa9",)) == ":root{--brand:light-dark(#a3123f,#ff8fa9)}"
    assert "--soft:light-dark(#eee,#222)" in theme_css(("surface-2:#eee/#222",))


@pytest.mark.parametrize(
    ("colour", "told"),
    [
        ("brand:#ffe0e0/#ff8fa9", "in light, on-brand #fff on brand #ffe0e0 has a contrast of 1.2; people need 4.5"),
        ("ink:#000/#333", "in dark, ink #333 on bg #120d15 has a contrast of"),
        ("brand:red/#ff8fa9", "'brand:red/#ff8fa9' must be name:light/dark, like brand:#a3123f/#ff8fa9"),
        ("brand:#a3123f", "must be name:light/dark"),
        ("brand:#a3123f/#fff;}</style>", "must be name:light/dark"),
        ("accent:#fff/#000", "'accent' is not a colour; there are brand, brand-hover"),
    ],
)
def test_a_colour_that_cannot_be_used_stops_the_start(colour: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)) as raised:
        read_settings(env=DEMO | {"FRONTROW_ROOM_COLOURS": colour})
    assert raised.value.param == "room.colours"


def test_a_colour_is_named_once() -> None:
    with pytest.raises(ConfigError, match="named twice"):
        theme_css(("line:#ddd/#333", "line:#ccc/#333"))


@pytest.mark.parametrize(
    ("env", "told"),
    [
        (DEMO | {"FRONTROW_PAYMENTS_URL": "paypal:"}, "payments.url must be python:MODULE:FUNCTION"),
        (STRIPE | {"FRONTROW_PAYMENTS_URL": "python:ours:open"}, "only one can take the money"),
        ({"FRONTROW_PAYMENTS_URL": "stripe:"}, "payments.url is stripe:, and stripe.key is not set"),
        ({"FRONTROW_PAYMENTS_URL": "simulated:x"}, "only server.demo takes made-up money"),
        ({}, "stripe.key is not set; only server.demo takes made-up money"),
    ],
)
def test_one_provider_takes_the_money(env: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        read_settings(env=env | {"FRONTROW_SECRET_KEY": "x" * 40})


def test_an_own_provider_needs_neither_stripe_nor_the_demo() -> None:
    env = {"FRONTROW_PAYMENTS_URL": "python:ours:open", "FRONTROW_SECRET_KEY": "x" * 40}
    assert read_settings(env=env).deployment.payments_url == "python:ours:open"


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("ours", "python:ours must be python:MODULE:FUNCTION"),
        ("no_such_module:open", "python:no_such_module:open cannot be imported: No module named 'no_such_module'"),
        ("our_payments:close", "python:our_payments:close: our_payments has no close"),
        ("our_payments:open_half", "returns a provider without methods, create, authorise"),
        ("our_payments:open_stripe", "the name 'stripe' is taken"),
    ],
)
def test_a_provider_that_cannot_be_opened_is_told_in_one_sentence(
    place: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, half = types.ModuleType("our_payments"), types.SimpleNamespace(name="half")
    names = ("methods", "create", "authorise", "capture", "void", "refund", "read", "page", "notice", "aclose")
    whole = types.SimpleNamespace(name="stripe", **dict.fromkeys(names))
    vars(ours).update(open_half=lambda clock, public_url: half, open_stripe=lambda clock, public_url: whole)
    monkeypatch.setitem(sys.modules, "our_payments", ours)
    with pytest.raises(ConfigError, match=re.escape(told)):
        open_provider(f"python:{place}", ManualClock())
