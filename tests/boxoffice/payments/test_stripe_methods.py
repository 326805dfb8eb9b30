"""Stripe's methods other than cards: the official client over the wire against a stand-in from its public reference."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from aiohttp import web
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.payments.from_url import open_provider
from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
from frontrow.boxoffice.adapters.payments.stripe_methods import METHODS, options_of, types_of
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, MethodFamily
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    ProviderNotCalled,
    ProviderRefused,
)
from frontrow.cli.payments import app
from frontrow.core.errors import ConfigError
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import open_till
from tests.boxoffice.payments.stripe_methods_server import StripeMethods
from tests.contracts.payment_provider import METHOD_CHECKS, Check, ProviderCase

OFFERED = tuple(one.id for one in METHODS)


@pytest.fixture
async def stripe() -> AsyncIterator[tuple[StripeMethods, str]]:
    api = StripeMethods(ManualClock())
    runner = web.AppRunner(api.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = site._server
    assert server is not None
    port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    yield api, f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def provider(stripe: tuple[StripeMethods, str]) -> AsyncIterator[StripeProvider]:
    one = StripeProvider("sk_test_1", "whsec_test", api_base=stripe[1])
    yield one
    await one.aclose()


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
async def test_stripe_keeps_the_contract_of_all_methods(
    check: Check, stripe: tuple[StripeMethods, str], provider: StripeProvider
) -> None:
    async with httpx.AsyncClient(base_url=stripe[1]) as bank:

        async def answer(intent: Intent, success: bool) -> None:
            await bank.post(f"/_bank/{intent.ref}?agreed={int(success)}")

        async def arrive(intent: Intent, comes: bool) -> None:
            await bank.post(f"/_money/{intent.ref}?comes={int(comes)}")

        await check(ProviderCase(provider, {"visa": "pm_card_visa"}, answer, arrive))


def new_intent(*methods: str, amount_minor: int = 5000, currency: str = "EUR") -> NewIntent:
    return NewIntent("bkg_1", 1, amount_minor, currency, "evt_1", 7, (1,), f"k:{methods}", methods=methods)


async def test_the_capture_is_set_per_method_and_cards_alone_are_asked_as_before(
    stripe: tuple[StripeMethods, str], provider: StripeProvider
) -> None:
    api, _ = stripe
    await provider.create(
        new_intent("card", "apple_pay", "klarna", "paypal", "link", "ideal", "sepa_debit", "bank_transfer")
    )
    customers, made = api.asked
    assert customers[0] == "/v1/customers"
    assert made[1]["customer"] == "cus_1"
    assert made[1]["payment_method_types"] == [
        "card",
        "klarna",
        "paypal",
        "link",
        "ideal",
        "sepa_debit",
        "customer_balance",
    ]
    assert "capture_method" not in made[1]
    options = made[1]["payment_method_options"]
    assert {kind for kind, one in options.items() if one.get("capture_method") == "manual"} == {
        "card",
        "klarna",
        "paypal",
        "link",
    }
    await provider.create(new_intent())
    plain = api.asked[-1][1]
    assert (plain["capture_method"], plain["payment_method_types"]) == ("manual", ["card"])
    assert "payment_method_options" not in plain


def test_every_method_is_reserved_first_exactly_if_its_family_says_so() -> None:
    assert {one.id for one in METHODS} == {one.id for one in ALL_METHODS}
    for method in METHODS:
        (kind,) = types_of((method.id,))
        manual = options_of([kind]).get(kind, {}).get("capture_method") == "manual"
        assert manual == (method.family is MethodFamily.RESERVE), method.id


@pytest.mark.parametrize(
    ("method", "amount_minor", "currency"),
    [
        ("twint", 500_001, "CHF"),
        ("twint", 5000, "EUR"),
        ("ideal", 5000, "CHF"),
        ("card", 49, "EUR"),
        ("swish", 299, "SEK"),
    ],
)
async def test_a_price_that_a_method_cannot_take_is_refused_before_stripe_is_asked(
    stripe: tuple[StripeMethods, str], provider: StripeProvider, method: str, amount_minor: int, currency: str
) -> None:
    with pytest.raises(ProviderRefused, match=f"cannot take {amount_minor} {currency} at Stripe") as refused:
        await provider.create(new_intent(method, amount_minor=amount_minor, currency=currency))
    assert refused.value.reason == "amount_not_supported"
    assert stripe[0].asked == []


async def test_what_the_fan_chose_in_the_form_is_read(
    stripe: tuple[StripeMethods, str], provider: StripeProvider
) -> None:
    for chosen in ("apple_pay", "ideal", "bank_transfer", "klarna"):
        made = await provider.create(new_intent(*OFFERED[:7], "bank_transfer") if chosen != "x" else new_intent())
        stripe[0].answers.clear()
        stripe[0].bank.confirm_in_browser(made.ref, chosen)
        assert (await provider.read(made.ref)).method == chosen


async def test_the_domain_for_apple_pay_is_registered_and_its_state_told(
    stripe: tuple[StripeMethods, str], provider: StripeProvider
) -> None:
    good = await provider.add_domain("tickets.example")
    assert good == dict.fromkeys(("apple_pay", "google_pay", "link", "paypal"), "active")
    bad = await provider.add_domain("bad.example")
    assert bad["apple_pay"] == "inactive: The file is missing."
    assert stripe[0].asked[-1][0].endswith("/validate"), "Stripe looks at the domain again"


async def test_transfer_details_name_the_account_and_the_reference(
    stripe: tuple[StripeMethods, str], provider: StripeProvider
) -> None:
    made = await provider.create(new_intent("bank_transfer"))
    shown = await provider.authorise(made.ref, "bank_transfer", "k1", "https://shop.example")
    assert shown.state is IntentState.PROCESSING
    assert shown.transfer is not None
    assert shown.transfer.iban.startswith("DE")
    assert shown.transfer.reference


async def test_the_command_registers_the_domain_and_says_which_wallet_is_missing(
    stripe: tuple[StripeMethods, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    async def run(*words: str) -> tuple[int, str]:
        given = ["domain", *words, "--stripe-api", stripe[1]]
        done = await asyncio.to_thread(CliRunner().invoke, app, given)
        return done.exit_code, done.output

    key = ("--stripe-key", "sk_test_1")
    assert (await run("tickets.example", *key))[0] == 0
    code, said = await run("bad.example", *key)
    assert code == 1
    assert "bad.example: apple_pay is inactive: The file is missing." in said
    assert await run("tickets.example") == (2, "frontrow payments: stripe.key is not set; wallets need Stripe\n")
    assert (await run(*key))[1].startswith("frontrow payments: ")
    assert (await run("http://x/y", *key))[0] == 2
    _, said = await run("tickets.example", "--stripe-key", "sk_test_bad")
    assert said.startswith(
        "frontrow payments: tickets.example was not registered. Stripe refuses the secret key; check "
    )


async def test_a_key_that_stripe_refuses_costs_no_fan_the_seats(
    stripe: tuple[StripeMethods, str], tmp_path: Path
) -> None:
    """Issue 27: a revoked key was a definite no, so the payment ended and the seats were free again."""
    bad = StripeProvider("sk_test_bad", "whsec_test", api_base=stripe[1])
    async with open_till(tmp_path) as till:
        hold = await till.hold()
        checkout = Checkout(till.ledger, bad, till.clock)
        answer = await checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
        assert answer.state is CheckoutState.RETRYING
        assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    with pytest.raises(ProviderNotCalled, match="Stripe refuses the secret key; check stripe.key"):
        await bad.read("pi_1")
    await bad.aclose()


@pytest.mark.parametrize(
    ("methods", "says"),
    [
        (["card", "gold"], "the payment provider 'simulated' has no method 'gold'; it has card, apple_pay"),
        (["card", "card"], "payments.methods names a method twice"),
    ],
)
def test_methods_that_the_provider_does_not_have_are_refused_at_the_start(
    methods: list[str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=says):
        open_provider(f"simulated:{tmp_path}/p.jsonl", ManualClock(), methods=methods)
    assert not (tmp_path / "p.jsonl").exists(), "no file is left open"


async def test_the_settings_choose_the_methods_and_their_order(tmp_path: Path) -> None:
    chosen = open_provider(f"simulated:{tmp_path}/p.jsonl", ManualClock(), methods=["ideal", "card"])
    assert chosen is not None
    assert [one.id for one in chosen.methods] == ["ideal", "card"]
    await chosen.aclose()
    stripe_usually = open_provider("stripe:", ManualClock(), stripe_key="sk_test_1")
    assert stripe_usually is not None
    assert [one.id for one in stripe_usually.methods] == ["card", "apple_pay", "google_pay"]
    await stripe_usually.aclose()
