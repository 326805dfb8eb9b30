"""Adyen's form on the checkout page: what the page loads and what its policy allows, there and in no other case."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.settings.deployment import AdyenSettings, PaymentsSettings
from frontrow.web.site.fans.drop_in import SCRIPT_HASH, STYLE_HASH
from frontrow.web.site.security_headers import PLAIN
from tests.boxoffice.payments.adyen_server import CLIENT_KEY, HMAC_KEY, KEY, MERCHANT
from tests.support.browser_headers import BROWSER
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, put_event, run_platform, settings_for

TEST, LIVE = "https://checkout-test.adyen.com/v71", "https://prefix-checkout-live.adyenpayments.com/checkout/v71"
CARDS = PaymentRules(methods=("card", "ideal"))


async def pages(folder: Path, api: str, client_key: str, rules: PaymentRules = CARDS) -> list[tuple[str, str]]:
    """The policy and the text of the checkout page, and of the event's page beside it. Adyen is not called for them."""
    settings = replace(
        settings_for(folder),
        adyen=AdyenSettings(api, KEY, MERCHANT, HMAC_KEY, client_key),
        payments=PaymentsSettings("adyen:", methods=("card", "ideal", "paypal")),
    )
    async with open_platform(settings) as platform:
        await put_event(platform, payments=rules)
        async with run_platform(platform), a_client(platform) as client:
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            booking = (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["booking"]
            own = {"cookie": f"frontrow_bookings={buyer.headers['Frontrow-Booking']}"}
            found = []
            for path in (f"/checkout/{booking}", f"/events/{EVENT_ID}"):
                answer = await client.get(path, headers=BROWSER | own)
                assert answer.status_code == 200, answer.text
                found.append((answer.headers["content-security-policy"], answer.text))
            return found


def added(policy: str) -> dict[str, str]:
    """What a policy allows beyond that of every other page."""
    plain = dict(rule.split(" ", 1) for rule in PLAIN.csp().split("; "))
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    return {
        name: what.removeprefix(plain.get(name, "")).strip() for name, what in rules.items() if plain.get(name) != what
    }


@pytest.mark.parametrize(("api", "key", "name"), [(TEST, CLIENT_KEY, "test"), (LIVE, "live_CLIENTKEY", "live")])
async def test_with_a_client_key_the_page_loads_the_form_of_that_environment(
    tmp_path: Path, api: str, key: str, name: str
) -> None:
    (policy, text), (other_policy, other_text) = await pages(tmp_path, api, key)
    host, files = f"https://checkoutshopper-{name}.adyen.com", f"https://checkoutshopper-{name}.cdn.adyen.com"
    assert added(policy) == {
        "script-src": files,
        "style-src": files,
        "img-src": f"{host} {files}",
        "connect-src": f"{host} {files} https://checkoutanalytics-{name}.adyen.com",
        "frame-src": host,
        "form-action": host,
    }
    base = f"{files}/checkoutshopper/sdk/6.6.0"
    assert f'src="{base}/adyen.js" integrity="{SCRIPT_HASH}" crossorigin="anonymous"' in text
    assert f'href="{base}/adyen.css" integrity="{STYLE_HASH}" crossorigin="anonymous"' in text
    assert f'data-adyen="{key}" data-environment="{name}" data-country="AT"' in text
    assert (other_policy, "adyen" in other_text) == (PLAIN.csp(), False)
    assert KEY not in text


@pytest.mark.parametrize(
    ("client_key", "rules"),
    [("", CARDS), (CLIENT_KEY, PaymentRules(methods=("card", "paypal")))],
    ids=["no key", "paypal"],
)
async def test_in_any_other_case_nothing_of_adyen_is_on_the_page(
    tmp_path: Path, client_key: str, rules: PaymentRules
) -> None:
    (policy, text), _ = await pages(tmp_path, TEST, client_key, rules)
    assert (policy, "adyen" in text) == (PLAIN.csp(), False)
    assert 'id="go"' in text
