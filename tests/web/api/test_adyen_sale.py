"""Adyen behind the whole server: settings, the API, its webhooks at /v1/webhooks/adyen."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from frontrow.app.wiring import Platform, open_platform
from frontrow.core.errors import ConfigError
from frontrow.settings.deployment import AdyenSettings, PaymentsSettings
from frontrow.settings.platform import read_settings
from tests.boxoffice.payments.adyen_server import HMAC_KEY, KEY, MERCHANT, AdyenServer, adyen_server, notice_body
from tests.support.browser_headers import BROWSER
from tests.support.eventually import eventually
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, put_event, run_platform, settings_for


@contextlib.asynccontextmanager
async def a_server_with(adyen: AdyenServer, folder: Path) -> AsyncIterator[tuple[Platform, httpx.AsyncClient]]:
    settings = replace(
        settings_for(folder),
        adyen=AdyenSettings(adyen.url, KEY, MERCHANT, HMAC_KEY),
        payments=PaymentsSettings("adyen:", methods=("card", "ideal")),
    )
    async with open_platform(settings) as platform:
        await put_event(platform)
        async with run_platform(platform), a_client(platform) as client:
            yield platform, client


async def test_a_fan_pays_with_ideal_and_the_webhook_sells_the_seats(tmp_path: Path) -> None:
    async with adyen_server() as adyen, a_server_with(adyen, tmp_path) as (_, client):
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        booking = (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["booking"]
        asked = await buyer.call("pay", booking_id=booking, json={"method": "ideal"})
        assert asked.status_code in (200, 202), asked.text
        (result,) = adyen.redirects
        assert f"/redirect/{result}" in asked.text
        adyen.answer_redirect(result)
        (notice,) = adyen.notices
        forged = notice.replace(b'"value": 5000', b'"value": 1')
        json_body = {"content-type": "application/json"}
        assert (await client.post("/v1/webhooks/adyen", content=forged, headers=json_body)).status_code == 401
        for done in (True, False):
            answer = await client.post("/v1/webhooks/adyen", content=notice, headers=json_body)
            assert (answer.status_code, answer.json()) == (200, {"done": done})
        read = (await buyer.call("get_booking", booking_id=booking)).json()
        assert read["state"] == "confirmed"
        foreign = notice_body("AUTHORISATION", "PSPX", MERCHANT, "another-shop", {"value": 1, "currency": "EUR"})
        assert (await client.post("/v1/webhooks/adyen", content=foreign, headers=json_body)).status_code == 200


async def test_a_fan_who_gave_up_and_paid_at_the_bank_all_the_same_has_the_money_again(tmp_path: Path) -> None:
    """No notice comes: the page that the bank sends the fan back to brings the news."""
    async with adyen_server() as adyen, a_server_with(adyen, tmp_path) as (_, client):
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        booking = (await buyer.hold(EVENT_ID, seats=["S-A-1"]))["booking"]
        await buyer.call("pay", booking_id=booking, json={"method": "ideal"})
        gone = await client.delete(f"/v1/bookings/{booking}/hold", headers=buyer.headers)
        assert gone.status_code == 200, gone.text
        (url,) = adyen.redirects
        result = adyen.answer_redirect(url)
        cookies = {"cookie": f"frontrow_bookings={buyer.headers['Frontrow-Booking']}"}
        page = await client.get(f"/checkout/{booking}?redirectResult={result}", headers=BROWSER | cookies)
        assert page.status_code == 200
        (payment,) = adyen.payments.values()
        await eventually(lambda: (payment.captured, payment.refunded), until=lambda sums: sums == (5000, 5000))


GOOD = {
    "FRONTROW_SECRET_KEY": "x" * 40,
    "FRONTROW_ADYEN_API": "https://checkout-test.adyen.com/v71",
    "FRONTROW_ADYEN_KEY": "AQE",
    "FRONTROW_ADYEN_MERCHANT_ACCOUNT": MERCHANT,
    "FRONTROW_ADYEN_HMAC_KEY": HMAC_KEY,
}


def test_adyens_settings_are_all_there_or_none() -> None:
    assert read_settings(env=GOOD).deployment.payments_url == "adyen:"
    assert read_settings(env=GOOD | {"FRONTROW_ADYEN_CLIENT_KEY": "test_ABC"}).adyen.access.client_key == "test_ABC"
    for name in ("API", "KEY", "MERCHANT_ACCOUNT", "HMAC_KEY"):
        with pytest.raises(ConfigError, match=f"adyen.{name.lower()} is not set"):
            read_settings(env={key: value for key, value in GOOD.items() if key != f"FRONTROW_ADYEN_{name}"})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"FRONTROW_ADYEN_API": "http://adyen.example/v71"}, "adyen.api must begin with https://"),
        ({"FRONTROW_ADYEN_API": "checkout-test"}, "adyen.api must be an address like"),
        ({"FRONTROW_ADYEN_HMAC_KEY": "abc"}, "adyen.hmac_key must be the 64 hexadecimal digits"),
        ({"FRONTROW_ADYEN_CLIENT_KEY": "live_ABC"}, "adyen.client_key must be a client key .* begins with test_"),
        ({"FRONTROW_ADYEN_CLIENT_KEY": 'test_"><script>'}, "adyen.client_key must be a client key"),
        (
            {"FRONTROW_ADYEN_API": "https://x-checkout-live.adyenpayments.com/v71", "FRONTROW_ADYEN_CLIENT_KEY": "AQE"},
            "adyen.client_key must be a client key .* begins with live_",
        ),
        ({"FRONTROW_ADYEN_KEY": "two words"}, "adyen.key must be an API key without spaces"),
        ({"FRONTROW_PAYMENTS_URL": "stripe:"}, "payments.url is stripe:, and stripe.key is not set"),
    ],
)
def test_a_wrong_setting_of_adyen_stops_the_start_in_one_sentence(changed: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_settings(env=GOOD | changed)


def test_no_secret_of_adyen_shows() -> None:
    shown = repr(read_settings(env=GOOD).adyen)
    assert HMAC_KEY not in shown
    assert "AQE" not in shown
