"""Choosing how to pay on the pages, without scripts, over the demo's provider; and the same by the API."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from frontrow.app.wiring import Platform, open_platform
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.payments.model.payment_rules import METHOD_IDS, PaymentRules
from frontrow.web.server.app import run_platform
from frontrow.web.site.organiser.events.event_forms import read_sale, sale
from frontrow.web.site.organiser.form_fields import Reading
from frontrow.web.site.routes import Form
from tests.boxoffice.organiser.http import an_organiser_api
from tests.boxoffice.shop import shop_event, shop_plan
from tests.support.browser_headers import BROWSER
from tests.support.form_answers import submit
from tests.web.api.script import a_buyer
from tests.web.api.support import DAY_US, EVENT_ID, a_client, put_event, settings_for

ADA = {"name": "Ada", "email": "ada@example.com"}
SLOW = PaymentRules(pay_days=5)
PLAN = shop_plan()


class Shopper:
    """A browser with held seats."""

    def __init__(self, platform: Platform, client: httpx.AsyncClient, booking_id: str, cookies: str) -> None:
        self.platform, self.client, self.booking_id = platform, client, booking_id
        self.page, self._headers = f"/checkout/{booking_id}", {"cookie": cookies}

    async def look(self) -> httpx.Response:
        return await self.client.get(self.page, headers=BROWSER | self._headers)

    async def send(self, what: str, **fields: Any) -> httpx.Response:
        return await submit(self.client, f"{self.page}/{what}", fields, self._headers)

    async def state(self) -> str:
        found = await self.platform.ledger.booking(self.booking_id)
        assert found is not None
        return found.state.value


@contextlib.asynccontextmanager
async def shopping(folder: Path, rules: PaymentRules, *, days: int = 60) -> AsyncIterator[Shopper]:
    async with open_platform(settings_for(folder)) as platform:
        await put_event(platform, payments=rules, starts_at_us=platform.clock() + days * DAY_US)
        async with run_platform(platform), a_client(platform) as client:
            buyer = await a_buyer(client)
            visit = await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
            cookies = f"frontrow_pass={visit}; frontrow_bookings={held['booking_token']}"
            yield Shopper(platform, client, held["booking"], cookies)


def offered(page: str) -> list[str]:
    return re.findall(r'type="radio" name="method" value="(\w+)"', page)


async def test_a_fan_pays_with_ideal_without_scripts(tmp_path: Path) -> None:
    async with shopping(tmp_path, PaymentRules()) as fan:
        form = (await fan.look()).text
        assert {"card", "ideal", "bancontact", "klarna"} <= set(offered(form))
        assert not {"twint", "swish"} & set(offered(form)), "no other currency's"
        assert not {"sepa_debit", "bank_transfer"} & set(offered(form)), "the organiser gave no days"
        assert (await fan.send("pay", method="ideal", **ADA)).headers["location"] == fan.page
        bank = (await fan.look()).text
        assert "You pay with iDEAL | Wero" in bank
        assert "3-D Secure" not in bank
        await fan.send("bank", answer="no")
        back = (await fan.look()).text
        assert "The payment was not completed. Nothing was charged" in back
        assert "You can try 2 more times" in back
        await fan.send("pay", method="bancontact", **ADA)
        await fan.send("bank", answer="yes")
        assert (await fan.look()).headers["location"] == f"/bookings/{fan.booking_id}"
        assert await fan.state() == "confirmed"


async def test_a_fan_gets_the_details_of_a_transfer_and_the_tickets_when_it_arrives(tmp_path: Path) -> None:
    async with shopping(tmp_path, SLOW) as fan:
        assert "bank_transfer" in offered((await fan.look()).text)
        await fan.send("pay", method="bank_transfer", **ADA)
        page = (await fan.look()).text
        assert "We are waiting for your money" in page
        assert "DE89 3704 0044 0532 0130 00" in page, "as banks print it"
        booking = await fan.platform.ledger.booking(fan.booking_id)
        assert booking is not None
        assert booking.is_ordered
        assert not re.search(r"7[12]\d\d:", page), "the visit does not last for days"
        german = await fan.client.get(fan.page, headers=BROWSER | fan._headers | {"accept-language": "de"})
        assert "Verwendungszweck" in german.text
        await fan.send("other-card")
        assert "bank_transfer" in offered((await fan.look()).text), "another way, or the same once more"
        await fan.send("pay", method="bank_transfer", **ADA)
        await fan.send("bank", answer="arrived")
        await fan.look()
        assert await fan.state() == "confirmed"


async def test_a_card_is_paid_as_before_and_its_errors_are_those_of_cards_alone(tmp_path: Path) -> None:
    async with shopping(tmp_path, PaymentRules(methods=("card", "ideal"))) as fan:
        assert offered((await fan.look()).text) == ["card", "ideal"]
        wrong = await fan.send("pay", method="card", card="4242", **ADA)
        assert wrong.status_code == 422
        assert "This is not a card number" in wrong.text
        paid = await fan.send("pay", card="4242 4242 4242 4242", expiry="12/33", cvc="123", **ADA)
        assert paid.headers["location"] == f"/bookings/{fan.booking_id}"


async def test_an_event_without_cards_shows_no_card_form(tmp_path: Path) -> None:
    async with shopping(tmp_path, PaymentRules(methods=("ideal",))) as fan:
        page = (await fan.look()).text
        assert 'name="card"' not in page
        assert 'name="method" value="ideal"' in page
        refused = await fan.send("pay", method="klarna", **ADA)
        assert refused.status_code == 422
        assert "This way to pay is not offered any more" in refused.text
        assert await fan.state() == "held"


async def test_slow_ways_are_not_offered_shortly_before_the_show(tmp_path: Path) -> None:
    async with shopping(tmp_path, SLOW, days=10) as fan:
        assert not {"sepa_debit", "bank_transfer"} & set(offered((await fan.look()).text))


async def test_the_api_pays_at_once_and_says_where_a_transfer_goes(tmp_path: Path) -> None:
    async with open_platform(settings_for(tmp_path)) as platform:
        await put_event(platform, payments=SLOW, starts_at_us=platform.clock() + 60 * DAY_US)
        async with run_platform(platform), a_client(platform) as client:
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
            opened = (await buyer.call("pay", booking_id=held["booking"], json={})).json()["checkout"]
            assert {"card", "ideal", "sepa_debit"} <= set(opened["methods"])
            refused = await buyer.call("pay", booking_id=held["booking"], json={"method": "swish"})
            assert (refused.status_code, refused.json()["param"]) == (422, "method")
            assert "Swish cannot be used for this booking; choose one of card, " in refused.json()["detail"]
            asked = await buyer.pay(held["booking"], "ideal")
            assert asked["checkout"]["state"] == "action"
            assert asked["checkout"]["action_url"].startswith("https://")
            await platform.box_office.checkout.step_back(held["booking"], held["fence"])
            awaited = await buyer.pay(held["booking"], "bank_transfer")
            assert awaited["checkout"]["state"] == "awaited"
            assert awaited["checkout"]["transfer"]["iban"] == "DE89370400440532013000"
            assert awaited["hold_expires_at"] > held["expires_at"]


# The organiser's rules.


async def test_the_rules_are_set_and_read_over_http(tmp_path: Path) -> None:
    async with an_organiser_api(tmp_path) as api:
        path = f"/v1/organiser/events/{api.event}"
        rules = {"methods": ["card", "ideal"], "pay_days": 5, "days_before_show": 14, "slow_with_queue": True}
        changed = await api.ask("PATCH", path, json={"payments": rules})
        assert changed.status_code == 200, changed.text
        assert (await api.ask("GET", path)).json()["payments"] == rules
        refused = await api.ask("PATCH", path, json={"payments": rules | {"days_before_show": 4}})
        assert (refused.status_code, refused.json()["param"]) == (422, "payments.days_before_show")
        refused = await api.ask("PATCH", path, json={"payments": {"methods": ["gold"]}})
        assert "there is no payment method 'gold'" in refused.json()["detail"]


def read_rules(event: Event, **typed: str) -> tuple[PaymentRules | None, dict[str, str]]:
    """What the wizard's step "Sale" makes of this, with everything else as it is shown."""
    fields = {key: value for key, value in (sale(event, PLAN, "UTC") | typed).items() if value}
    reading = Reading(Form(list(fields.items())), "UTC", "EUR")
    return read_sale(reading, event, PLAN).payments, reading.errors


def test_the_wizard_shows_and_reads_the_rules() -> None:
    plain = shop_event(sale_starts_at_us=1_700_000_000_000_000)
    shown = {"methods_shown": "card,ideal,sepa_debit"}
    assert read_rules(plain, **shown) == (PaymentRules(), {}), "all that are shown: also those that come later"
    narrowed, _ = read_rules(plain, **shown, method_sepa_debit="")
    assert narrowed == PaymentRules(methods=("card", "ideal"))
    kept = shop_event(payments=PaymentRules(methods=("ideal",)), sale_starts_at_us=1_700_000_000_000_000)
    assert read_rules(kept)[0] == kept.payments, "a server with one method shows none, and changes nothing"
    slow, errors = read_rules(plain, **shown, pay_days="5", days_before_show="7", slow_with_queue="yes")
    assert (slow, errors) == (PaymentRules((), 5, 7, slow_with_queue=True), {})
    assert read_rules(plain, **shown, pay_days="5", days_before_show="4")[1].keys() == {"days_before_show"}
    assert read_rules(plain, **shown, pay_days="15")[1].keys() == {"pay_days"}
    none = dict.fromkeys((f"method_{one}" for one in METHOD_IDS), "")
    assert read_rules(plain, **shown, **none)[1].keys() == {"methods"}
