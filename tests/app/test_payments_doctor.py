"""`frontrow doctor --payments`: the provider's promises with a test key, its webhooks and Apple Pay's domain.

Stripe's client talks to localstripe (a server of others' own), and what localstripe lacks (endpoints, domains) to a
stand-in written from Stripe's documentation. Differences are planted into each.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import msgspec
import pytest
import typer
from aiohttp import web
from typer.testing import CliRunner

from frontrow.app.ledger_tools import opened_ledger
from frontrow.app.payments_doctor import LIVE_KEY, examine, examine_payments
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.adyen import AdyenProvider
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.examinations import (
    STRIPE_EVENTS,
    AdyenExamination,
    SimulatedExamination,
    StripeExamination,
)
from frontrow.boxoffice.adapters.payments.simulated import SIGNATURE, SimulatedProvider
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, NewIntent, ProviderRefund
from frontrow.boxoffice.payments.provider_checks import CHECKS
from frontrow.cli.doctor import doctor
from frontrow.core.errors import FrontrowError
from frontrow.settings.deployment import AdyenSettings, StripeSettings
from frontrow.settings.platform import PlatformSettings
from frontrow.shared.webhook_signature import check_signature
from frontrow.testing.clock import ManualClock
from tests.app.fit_settings import settings
from tests.boxoffice.adapters.channels.stand_ins import Answer, StandIn
from tests.boxoffice.checkout.till import open_till
from tests.boxoffice.messages.receivers import HttpReceiver, http_receiver
from tests.boxoffice.payments import adyen_server as adyen_module
from tests.boxoffice.payments.adyen_server import HMAC_KEY, MERCHANT, AdyenServer, adyen_server, provider_of
from tests.boxoffice.payments.adyen_server import KEY as ADYEN_KEY
from tests.boxoffice.payments.stripe_cases import KEY, localstripe, stripe_case
from tests.boxoffice.shop import NOW
from tests.contracts.payment_provider import ProviderCase

__all__ = ["localstripe", "stripe_case"]  # fixtures
SECRET = "whsec_simulated"


def said(found: list[Any], check: str, state: str) -> list[str]:
    return [one.says for one in found if (one.check, one.state) == (check, state)]


@contextlib.asynccontextmanager
async def our_server(clock: ManualClock, secret: str = SECRET) -> AsyncIterator[HttpReceiver]:
    """The webhook's address of a server that checks signatures with this secret."""
    async with http_receiver() as receiver:

        def answer(headers: dict[str, str], body: bytes) -> str:
            try:
                check_signature(body, headers[SIGNATURE], secret, clock())
            except FrontrowError:
                return "401 No"
            return "200 OK"

        receiver.answer = answer
        yield receiver


async def test_the_simulated_provider_keeps_every_promise_and_nothing_is_left() -> None:
    clock = ManualClock(NOW)
    provider = SimulatedProvider(clock)
    async with our_server(clock) as server:
        url = f"http://127.0.0.1:{server.port}"
        found = await examine(provider, SimulatedExamination(SECRET), url, clock)
        assert {line.split(" ")[1] for line, _, _ in server.calls} == {"/v1/webhooks/simulated"}
    assert not said(found, "payments", "fail")
    assert not said(found, "webhooks", "fail")
    assert len(said(found, "payments", "ok")) == len(CHECKS)
    for one in provider.objects.values():
        back = sum(refund["amount"] for refund in provider.state.refunds_of(one["id"]))
        assert one["status"] == "canceled" or one["amount_received"] == back, one


async def test_stripes_own_client_keeps_every_promise(stripe_case: ProviderCase) -> None:
    cards = stripe_case.cards | {"action": stripe_case.cards["3ds"]}
    clock = ManualClock(NOW)
    about = StripeExamination(KEY, "whsec_test", "http://127.0.0.1:1", cards=cards)
    found = await examine(stripe_case.provider, about, "http://127.0.0.1:1", clock)
    assert said(found, "payments", "fail") == []
    assert len(said(found, "payments", "ok")) == len(CHECKS)
    intents = await stripe_case.provider.page(0, limit=100)
    ours = [one for one in intents if one.booking_id.startswith("bkg_doctor_")]
    assert ours
    for one in ours:
        assert one.state is IntentState.VOID or one.captured_minor == one.refunded_minor, one
    assert "does not answer" in said(found, "webhooks", "fail")[0]


class Generous(SimulatedProvider):
    """Gives back more than it took."""

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> ProviderRefund:
        if key.endswith(":refund:2"):
            return ProviderRefund("re_x", amount_minor, refund_id)
        return await super().refund(ref, amount_minor, refund_id, key)


class Forgetful(SimulatedProvider):
    """Makes another object for a repeated key."""

    async def create(self, new: NewIntent) -> Intent:
        return await super().create(msgspec.structs.replace(new, key=f"{new.key}:{len(self.objects)}"))


class Eager(SimulatedProvider):
    """Takes the money with the authorisation."""

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        held = await super().authorise(ref, method, key)
        return await super().capture(ref, f"{key}:eager") if held.state is IntentState.AUTHORISED else held


class Silent(SimulatedProvider):
    """Does not say that a card was declined."""

    async def authorise(self, ref: str, method: str, key: str, return_url: str = "") -> Intent:
        return msgspec.structs.replace(await super().authorise(ref, method, key), error="")


class Hiding(SimulatedProvider):
    """Its list is empty."""

    async def page(self, since_us: int, after: str = "", limit: int = 100) -> list[Intent]:
        return []


class Polite(SimulatedProvider):
    """Finds what does not exist."""

    async def read(self, ref: str) -> Intent:
        return Intent(ref, IntentState.VOID, 1, "EUR") if ref == "pi_nobody" else await super().read(ref)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Generous, "refunds never exceed what was taken: a refund of more than is left was not refused"),
        (Forgetful, "a repeated key is the same call: the object of a repeated key is"),
        (Eager, "money is reserved and then taken once: an authorised payment is"),
        (Silent, "a declined card says why: a payment with a declined card is"),
        (Hiding, "the list has every payment once: what the list lacks is"),
        (Polite, "what is not there is a definite no: reading a payment that does not exist was not refused"),
    ],
)
async def test_each_planted_difference_is_named_and_what_was_made_is_ended(
    kind: type[SimulatedProvider], named: str
) -> None:
    clock = ManualClock(NOW)
    provider = kind(clock)
    found = await examine(provider, SimulatedExamination(SECRET), "http://127.0.0.1:1", clock)
    differences = said(found, "payments", "fail")
    assert any(one.startswith(f"simulated: {named}") for one in differences), differences
    for one in provider.objects.values():
        back = sum(refund["amount"] for refund in provider.state.refunds_of(one["id"]))
        assert one["status"] == "canceled" or one["amount_received"] == back, one


async def test_a_payment_that_cannot_be_ended_is_named() -> None:
    clock = ManualClock(NOW)

    class Stuck(SimulatedProvider):
        async def void(self, ref: str, key: str) -> Intent:
            if key.endswith(":end"):
                from frontrow.boxoffice.payments.model.provider_intents import ProviderUnknown

                raise ProviderUnknown("no answer")
            return await super().void(ref, key)

    found = await examine(Stuck(clock), SimulatedExamination(SECRET), "http://127.0.0.1:1", clock)
    assert "could not be ended: pi_" in said(found, "payments", "warn")[0]


async def test_another_secret_a_forged_webhook_and_a_server_that_is_away_are_told_apart() -> None:
    clock = ManualClock(NOW)
    about, provider = SimulatedExamination(SECRET), SimulatedProvider(clock)
    async with our_server(clock, "whsec_other") as server:
        found = await examine(provider, about, f"http://127.0.0.1:{server.port}", clock)
        assert "another webhook secret" in said(found, "webhooks", "fail")[0]
        server.answer = lambda headers, body: "200 OK"
        found = await examine(provider, about, f"http://127.0.0.1:{server.port}", clock)
        assert "took a forged webhook" in said(found, "webhooks", "fail")[0]
        server.answer = lambda headers, body: "404 Not Found"
        found = await examine(provider, about, f"http://127.0.0.1:{server.port}", clock)
        assert "answered 404" in said(found, "webhooks", "fail")[0]


class StripeAccount(StandIn):
    """What an account at Stripe has registered: endpoints of webhooks, and domains of payment methods."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoints: list[dict[str, Any]] = []
        self.domains: list[dict[str, Any]] = []

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        assert method == "GET", "an examination registers nothing"
        parts = urlsplit(target)
        if parts.path == "/v1/webhook_endpoints":
            return 200, {"object": "list", "data": self.endpoints}
        if parts.path == "/v1/payment_method_domains":
            name = dict(parse_qsl(parts.query))["domain_name"]
            return 200, {"object": "list", "data": [one for one in self.domains if one["domain_name"] == name]}
        return 404, {"error": {"type": "invalid_request_error"}}


async def test_what_is_registered_at_stripe_is_compared_with_what_the_checkout_needs() -> None:
    account = StripeAccount()
    ours = "https://tickets.example.org/v1/webhooks/stripe"
    async with account.served():
        about = StripeExamination("sk_test_x", "whsec_x", account.url)
        assert "sends no webhooks" in (await about.find_webhook_faults(ours))[0]
        account.endpoints = [{"url": ours, "status": "disabled", "enabled_events": ["*"]}]
        assert "is disabled" in (await about.find_webhook_faults(ours))[0]
        account.endpoints = [{"url": ours, "status": "enabled", "enabled_events": list(STRIPE_EVENTS[:-1])}]
        (missing,) = await about.find_webhook_faults(ours)
        assert missing.endswith("does not send charge.dispute.closed")
        account.endpoints[0]["enabled_events"] = ["*"]
        assert await about.find_webhook_faults(ours) == []
        assert "not registered" in await about.find_apple_pay_fault("tickets.example.org")
        inactive = {"status": "inactive", "status_details": {"error_message": "the file is missing"}}
        account.domains = [{"domain_name": "tickets.example.org", "apple_pay": inactive}]
        assert "the file is missing" in await about.find_apple_pay_fault("tickets.example.org")
        account.domains[0]["apple_pay"] = {"status": "active"}
        assert await about.find_apple_pay_fault("tickets.example.org") == ""
        account.busy = True
        found = await examine(SimulatedProvider(ManualClock(NOW)), about, "http://127.0.0.1:1", ManualClock(NOW))
        assert "429" in said(found, "webhooks", "warn")[0]


@pytest.mark.parametrize("key", ["sk_live_0123456789", "rk_live_0123456789"])
async def test_a_live_key_is_refused_before_any_call(tmp_path: Path, key: str) -> None:
    account = StripeAccount()
    async with account.served():
        given = replace(settings(tmp_path), stripe=StripeSettings(key, "whsec_x", "pk_live_x", api=account.url))
        (found,) = await examine_payments(given)
        assert (found.state, LIVE_KEY in found.says) == ("fail", True)
        assert account.calls == 0
        assert key not in repr(found)


def test_the_command_examines_the_demos_provider_and_exits_by_what_it_found(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(doctor)
    run = CliRunner().invoke(app, ["--payments", "--json", "--demo", "--folder", str(tmp_path)])
    found = json.loads(run.output)
    names = [one["says"] for one in found["findings"] if one["check"] == "payments"]
    assert len(names) == len(CHECKS)
    assert run.exit_code == 1, "no server runs here, so the webhook's address does not answer"
    assert [one["check"] for one in found["findings"] if one["state"] == "fail"] == ["webhooks"]


# Adyen.


@contextlib.asynccontextmanager
async def adyens_server(
    adyen: AdyenServer, ledger: SqlLedger, clock: ManualClock, hmac_key: str = HMAC_KEY
) -> AsyncIterator[str]:
    """A server of ours that hears Adyen's webhooks, over HTTP, and keeps them in this ledger. Returns its address."""
    provider = AdyenProvider(AdyenAccess(adyen.url, ADYEN_KEY, MERCHANT, hmac_key), ledger.provider_notes, clock)
    hears = Checkout(ledger, provider, clock)

    async def hear(request: web.Request) -> web.Response:
        assert request.path == "/v1/webhooks/adyen"
        try:
            await hears.handle_webhook(await request.read(), dict(request.headers), "adyen")
        except FrontrowError as error:
            return web.Response(status=error.http_status)
        return web.Response()

    app = web.Application()
    app.router.add_post("/{rest:.*}", hear)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def send() -> None:
        """Adyen sends its notices there, each in its turn."""
        async with httpx.AsyncClient() as client:
            while True:  # until cancelled
                while adyen.notices:
                    await client.post(f"{url}/v1/webhooks/adyen", content=adyen.notices.pop(0))
                await asyncio.sleep(0.01)

    sending = asyncio.create_task(send())
    try:
        yield url
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await runner.cleanup()
        await provider.aclose()


def adyen_settings(tmp_path: Path, api: str, public_url: str = "http://127.0.0.1:1") -> PlatformSettings:
    given = settings(tmp_path)
    return replace(
        given,
        stripe=StripeSettings(),
        adyen=AdyenSettings(api, ADYEN_KEY, MERCHANT, HMAC_KEY),
        server=replace(given.server, public_url=public_url, demo=False),
    )


def all_is_ended(adyen: AdyenServer) -> bool:
    """Nothing stays reserved, and all that was taken went back."""
    return bool(adyen.payments) and all(
        not one.is_reserved and one.captured == one.refunded for one in adyen.payments.values()
    )


async def test_adyen_keeps_every_promise_by_its_webhooks_and_nothing_is_left(tmp_path: Path) -> None:
    async with adyen_server() as adyen, open_till(tmp_path) as till:
        async with adyens_server(adyen, till.ledger, till.clock) as url:
            provider = provider_of(adyen, till.ledger, till.clock)
            about = AdyenExamination(AdyenAccess(adyen.url, ADYEN_KEY, MERCHANT, HMAC_KEY))
            found = await examine(provider, about, url, till.clock)
            await provider.aclose()
        assert said(found, "payments", "fail") == []
        assert said(found, "payments", "warn") == []
        assert len(said(found, "payments", "ok")) == len(CHECKS)
        assert said(found, "webhooks", "fail") == []
        assert len(said(found, "webhooks", "ok")) == 1
        assert all_is_ended(adyen)


async def test_adyens_wrongly_signed_webhooks_are_told(tmp_path: Path) -> None:
    async with adyen_server() as adyen, open_till(tmp_path) as till:
        about = AdyenExamination(AdyenAccess(adyen.url, ADYEN_KEY, MERCHANT, HMAC_KEY))
        async with adyens_server(adyen, till.ledger, till.clock, "AB" * 32) as url:
            provider = provider_of(adyen, till.ledger, till.clock)
            found = await examine(provider, about, url, till.clock, notice_s=0.5)
            await provider.aclose()
        assert "another webhook secret" in said(found, "webhooks", "fail")[0]
        assert any("no notice said" in one for one in said(found, "payments", "fail"))
        assert said(found, "payments", "warn"), "what may be left is named"


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("AUTHORISATION", "a declined card says why: a payment with a declined card is"),
        ("sessions", "an unexpected refusal"),
    ],
)
async def test_a_difference_of_adyen_is_named_and_what_was_made_is_ended(
    tmp_path: Path, fault: str, named: str
) -> None:
    async with adyen_server() as adyen, open_till(tmp_path) as till:
        if fault == "sessions":
            adyen.merchants = {"SomebodyElse"}
        else:
            adyen_module.REFUSED.pop("declined")
        try:
            async with adyens_server(adyen, till.ledger, till.clock) as url:
                provider = provider_of(adyen, till.ledger, till.clock)
                about = AdyenExamination(AdyenAccess(adyen.url, ADYEN_KEY, MERCHANT, HMAC_KEY))
                found = await examine(provider, about, url, till.clock)
                await provider.aclose()
        finally:
            adyen_module.REFUSED["declined"] = "Refused"
        assert any(named in one for one in said(found, "payments", "fail")), found
        assert all_is_ended(adyen) or fault == "sessions"


@pytest.mark.parametrize(
    "api",
    [
        "https://1797a841fbb37ca7-AdyenDemo-checkout-live.adyenpayments.com/checkout/v71",
        "https://checkout-live.adyen.com/v71",
        "https://checkout-test.adyen.com.evil.example/v71",
    ],
)
async def test_an_address_of_adyen_that_is_not_its_test_address_is_refused_before_any_call(
    tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_call(*args: object, **kwargs: object) -> object:
        raise AssertionError("something was called")

    monkeypatch.setattr(httpx.AsyncClient, "request", no_call)
    monkeypatch.setattr(httpx.AsyncClient, "post", no_call)
    (found,) = await examine_payments(adyen_settings(tmp_path, api))
    assert (found.state, LIVE_KEY in found.says) == ("fail", True)
    assert ADYEN_KEY not in repr(found)


async def test_the_settings_of_adyen_are_examined_with_the_servers_own_ledger(tmp_path: Path) -> None:
    async with adyen_server() as adyen:
        given = adyen_settings(tmp_path, adyen.url)
        migrate(given.deployment.ledger_url)
        async with (
            opened_ledger(given.deployment.ledger_url) as ledger,
            adyens_server(adyen, ledger, ManualClock(NOW)) as url,
        ):
            found = await examine_payments(adyen_settings(tmp_path, adyen.url, url))
        assert said(found, "payments", "fail") == []
        assert len(said(found, "payments", "ok")) == len(CHECKS)
        assert all_is_ended(adyen)
