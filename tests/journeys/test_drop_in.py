"""Issue 27: a fan pays in Adyen's form on our page, or on Adyen's page where the form cannot be shown.

The form is a stand-in written from Adyen's documentation (tests/support/adyen_js.py). In each journey the stand-in's
own book is read.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.boxoffice.payments.model.payment_rules import PaymentRules
from frontrow.boxoffice.pricing.model.sale_options import AddOn
from frontrow.settings.deployment import AdyenSettings, PaymentsSettings
from tests.boxoffice.payments.adyen_server import CLIENT_KEY, HMAC_KEY, KEY, MERCHANT, AdyenServer, Payment
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import come_to_checkout, fill_buyer
from tests.support.adyen_js import CORS, DECLINED, bring_adyen, deliver_notices, pay_in_form, running_adyen, trusting
from tests.support.eventually import eventually

EXTRAS = {"add_ons": (AddOn("parking", "Parking", 800, 10, 4),)}


@pytest.fixture(scope="module", params=["embedded"])
def form(request: pytest.FixtureRequest) -> str:
    """What the form does is the same in both."""
    return str(request.param)


@pytest.fixture(scope="module")
def adyen() -> Iterator[AdyenServer]:
    with running_adyen() as running:
        yield running


@pytest.fixture(scope="module")
def stack_options(adyen: AdyenServer) -> dict[str, Any]:
    return {
        "adyen": AdyenSettings(adyen.url, KEY, MERCHANT, HMAC_KEY, CLIENT_KEY),
        "payments": PaymentsSettings("adyen:", methods=("card", "ideal", "paypal")),
    }


@pytest.fixture(autouse=True)
def hashes() -> Iterator[None]:
    with trusting():
        yield


def come(visitor: Visitor, adyen: AdyenServer, **options: Any) -> Page:
    page = visitor(**options)
    bring_adyen(page.context, adyen)
    return page


def put_on_sale(stack: Stack, name: str, *methods: str, **changes: Any) -> None:
    """An event that offers cards and iDEAL, or these methods."""
    stack.put_on_sale(name, payments=PaymentRules(methods=methods or ("card", "ideal")), **changes)


def at_form(page: Page, stack: Stack, name: str) -> str:
    booking_id = come_to_checkout(page, stack, name)
    page.locator("#adyen-number").wait_for()
    fill_buyer(page, "Ada Lovelace", "ada@example.org")
    return booking_id


def paid_once(stack: Stack, adyen: AdyenServer, booking_id: str, cents: int = 50_00) -> None:
    """One charge for the booking, and nothing else is reserved or kept once everything has been told."""

    def book() -> list[Payment]:
        return [one for one in list(adyen.payments.values()) if one.reference.startswith(booking_id)]

    def is_settled() -> bool:
        deliver_notices(adyen, stack.url)
        kept = [one.captured - one.refunded for one in book() if one.captured > one.refunded]
        return kept == [cents] and not any(one.is_reserved for one in book())

    async def wait(platform: Any) -> None:
        assert (await platform.ledger.booking(booking_id)).state == "confirmed"

    stack.call(wait)
    stack.call(lambda platform: eventually_settled(is_settled))


async def eventually_settled(is_settled: Callable[[], bool]) -> None:
    await eventually(lambda: asyncio.to_thread(is_settled), until=bool)


def test_a_guest_pays_by_card_in_the_form_and_no_notice_comes(
    stack: Stack, visitor: Visitor, adyen: AdyenServer
) -> None:
    put_on_sale(stack, "In the form")
    ada = come(visitor, adyen)
    console: list[str] = []
    ada.on("console", lambda message: console.append(message.text) if message.type == "error" else None)
    booking_id = at_form(ada, stack, "In the form")
    ada.locator("#go").click()
    expect(ada.locator("#adyen-number")).to_have_attribute("aria-invalid", "true")
    expect(ada.locator("#go")).to_be_enabled()
    pay_in_form(ada)
    ada.wait_for_url("**/bookings/**")
    expect(ada.locator(".ticket")).to_have_count(1)
    assert console == [], "the page's policy allows what the form needs"
    paid_once(stack, adyen, booking_id)


def test_ideal_leads_to_the_bank_and_back(stack: Stack, visitor: Visitor, adyen: AdyenServer) -> None:
    put_on_sale(stack, "By iDEAL")
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "By iDEAL")
    ada.get_by_label("ideal").check()
    ada.locator("#go").click()
    ada.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id)


def test_a_declined_card_then_a_good_one(stack: Stack, visitor: Visitor, adyen: AdyenServer) -> None:
    put_on_sale(stack, "Two cards", card_tries=2)
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "Two cards")
    ada.route("**/look", lambda route: (deliver_notices(adyen, stack.url), route.continue_()))
    pay_in_form(ada, DECLINED)
    expect(ada.locator("#drop-in-err")).to_have_text(
        "The payment was not completed. Nothing was charged, and your seats are still held. "
        "You can try 1 more time. After that the seats go back on sale."
    )
    pay_in_form(ada)
    ada.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id)


def test_the_last_card_that_may_be_tried_frees_the_seat(stack: Stack, visitor: Visitor, adyen: AdyenServer) -> None:
    """B9: the seats are free, and the session, which stays open at Adyen, pays nothing any more."""
    put_on_sale(stack, "One card", card_tries=1)
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "One card")
    ada.route("**/look", lambda route: (deliver_notices(adyen, stack.url), route.continue_()))
    pay_in_form(ada, DECLINED)
    expect(ada.get_by_role("heading", name="Your card was declined")).to_be_visible()
    (session,) = [one["id"] for one in adyen.sessions.values() if one["reference"].startswith(booking_id)]
    adyen.pay_in_form(session, "visa")

    def nothing_is_reserved() -> bool:
        deliver_notices(adyen, stack.url)
        book = [one for one in list(adyen.payments.values()) if one.reference.startswith(booking_id)]
        return len(book) == 2 and not any(one.is_reserved or one.captured for one in book)

    stack.call(lambda platform: eventually_settled(nothing_is_reserved))


def test_an_add_on_opens_another_session_and_an_old_tab_pays_nothing(
    stack: Stack, visitor: Visitor, adyen: AdyenServer
) -> None:
    put_on_sale(stack, "Add-on", **EXTRAS)
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "Add-on")
    old = ada.context.new_page()
    old.goto(ada.url)
    old.locator("#adyen-number").fill("4111111111111111")
    fill_buyer(old, "Ada Lovelace", "ada@example.org")
    before = set(adyen.sessions)
    with ada.expect_response("**/setup?**"):
        ada.get_by_label("Parking").fill("1")
        ada.locator("#name").focus()
    expect(ada.locator("#go")).to_have_text("Pay €58")
    (new,) = set(adyen.sessions) - before
    assert adyen.sessions[new]["amount"]["value"] == 58_00
    old.locator("#go").click()  # it loads itself again instead, with the new price
    expect(old.locator("#go")).to_have_text("Pay €58")
    assert not [one for one in adyen.payments.values() if one.reference.startswith(booking_id)]
    pay_in_form(ada)
    ada.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id, 58_00)


def test_two_tabs_pay_once(stack: Stack, visitor: Visitor, adyen: AdyenServer) -> None:
    put_on_sale(stack, "Tabs")
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "Tabs")
    other = ada.context.new_page()
    other.goto(ada.url)
    other.locator("#adyen-number").fill("4111111111111111")
    fill_buyer(other, "Ada Lovelace", "ada@example.org")
    ada.locator("#adyen-number").fill("4111111111111111")
    ada.locator("#go").dblclick()
    ada.wait_for_url("**/bookings/**")
    other.locator("#go").dispatch_event("click")  # "your visit is over" may stand before it by now
    other.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id)


def test_whoever_comes_back_before_adyen_tells_is_not_asked_to_pay_again(
    stack: Stack, visitor: Visitor, adyen: AdyenServer
) -> None:
    """Adyen is away the moment the form is done: the page waits, and then there is a ticket."""
    put_on_sale(stack, "Away")
    ada = come(visitor, adyen)
    booking_id = at_form(ada, stack, "Away")
    adyen.away = True
    pay_in_form(ada)
    expect(ada.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
    adyen.away = False
    deliver_notices(adyen, stack.url)
    ada.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id)


@pytest.mark.parametrize(
    "why", ["scripts are off", "the file is another one", "the file is broken", "Adyen's form does not open"]
)
def test_without_the_form_the_button_leads_to_adyens_page(
    stack: Stack, visitor: Visitor, adyen: AdyenServer, why: str
) -> None:
    put_on_sale(stack, why)
    ada = come(visitor, adyen)
    booking_id = come_to_checkout(ada, stack, why)  # which a fan without scripts does by forms
    if why == "scripts are off":
        cookies = ada.context.cookies()
        ada = come(visitor, adyen, java_script_enabled=False)
        ada.context.add_cookies([{"name": one["name"], "value": one["value"], "url": stack.url} for one in cookies])
    elif why == "the file is another one":
        ada.context.route("**/adyen.js", lambda route: route.fulfill(body="window.AdyenWeb = {}", headers=CORS))
    elif why == "the file is broken":
        ada.context.add_init_script("Object.defineProperty(window, 'AdyenWeb', { value: {}, writable: false })")
    else:
        ada.context.route("**/setup?**", lambda route: route.abort())
    ada.goto(f"{stack.url}/checkout/{booking_id}")
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    expect(ada.locator("#adyen-number")).to_have_count(0)
    ada.locator("#go").click()
    link = ada.locator("a[href*='/pay/CS']")
    expect(link).to_be_visible()
    session = (link.get_attribute("href") or "").rpartition("/")[2]
    result = adyen.pay_session(session)
    ada.goto(f"{stack.url}/checkout/{booking_id}?sessionId={session}&sessionResult={result}")
    ada.wait_for_url("**/bookings/**")
    paid_once(stack, adyen, booking_id)


def test_where_paypal_is_offered_there_is_adyens_page_and_no_script_of_adyen(
    stack: Stack, visitor: Visitor, adyen: AdyenServer
) -> None:
    put_on_sale(stack, "PayPal", "card", "paypal")
    ada = come(visitor, adyen)
    asked: list[str] = []
    ada.on("request", lambda request: asked.append(request.url))
    come_to_checkout(ada, stack, "PayPal")
    expect(ada.locator("#go")).to_be_enabled()
    assert not [url for url in asked if "adyen.com" in url]
