"""The checkout changes in place: nothing typed is lost while types, add-ons and codes change the price."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Locator, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.payments.model import payment_methods
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, TicketType
from frontrow.web.site.fans import booking_choices
from tests.browser.looks import axe, bring_axe, console_of
from tests.browser.served import Site, put_hall
from tests.browser.steps import be_let_in, fill_card_form, fill_checkout, hold_at_once, pay, said
from tests.browser.tour import instead

EVENT = "evt_in_place"
OPTIONS: dict[str, Any] = {
    "ticket_types": (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000)),
    "add_ons": (
        AddOn("parking", "Parking", 800, 100, 4),
        AddOn("poster", "Poster", 500),
        AddOn("badge", "Badge", 300, 2, 3),
    ),
    "discounts": (Discount("TEN", 1_000), Discount("GIFT", 10_000)),
}
HUMAN_MS = 45  # between two keys
CARD, NAME, EMAIL = "4242 4242 4242 4242", "Ada Lovelace", "ada@example.org"


class SlowAnswers:
    """Choices are answered only when a test lets them: what people do meanwhile is what this file is about."""

    def __init__(self, site: Site) -> None:
        self._site, self._open = site, asyncio.Event()
        self._open.set()
        self.asked: list[dict[str, int]] = []

    async def choose(self, platform: Platform, booking: Any, visit: Any, choice: Any, ip: str) -> Any:
        self.asked.append(dict(choice.add_ons))
        await self._open.wait()
        return await self._choose(platform, booking, visit, choice, ip)

    def hold_back(self) -> None:
        async def clear(platform: Platform) -> None:
            self._open.clear()

        self._site.call(clear)

    def let_go(self) -> None:
        async def go(platform: Platform) -> None:
            self._open.set()

        self._site.call(go)

    _choose = staticmethod(booking_choices.choose_for)


@pytest.fixture
def slow(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowAnswers]:
    slow = SlowAnswers(site)
    monkeypatch.setattr(booking_choices, "choose_for", slow.choose)
    yield slow
    slow.let_go()


@pytest.fixture(autouse=True)
def on_sale(site: Site) -> None:
    site.call(lambda platform: put_hall(platform, id=EVENT, name="Aurora in place", **OPTIONS))
    site.call(lambda platform: platform.box_office.openings.refresh())


def at_checkout(page: Page, site: Site) -> str:
    be_let_in(page, site.url, EVENT)
    booking_id = hold_at_once(page, site.url, EVENT)
    page.goto(f"{site.url}/checkout/{booking_id}")
    page.evaluate("window.sameDocument = true")
    return booking_id


def is_same_document(page: Page) -> bool:
    return bool(page.evaluate("window.sameDocument === true"))


def caret(page: Page) -> tuple[str, int]:
    found: list[Any] = page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]")
    return found[0], found[1]


def test_everything_typed_at_human_speed_outlives_slow_changes_of_the_price(
    fan: Page, site: Site, slow: SlowAnswers
) -> None:
    told = console_of(fan.context)
    booking_id = at_checkout(fan, site)
    fan.get_by_label(re.compile("^Name")).press_sequentially(NAME, delay=HUMAN_MS)
    slow.hold_back()
    fan.locator("#choice select").select_option("child")  # its answer comes while the address is being typed
    address = fan.get_by_label("Email for your tickets")
    address.press_sequentially(EMAIL[:6], delay=HUMAN_MS)
    slow.let_go()
    expect(fan.locator("#price tfoot")).to_contain_text("€60")
    assert caret(fan)[0] == "email"
    fan.keyboard.type(EMAIL[6:], delay=HUMAN_MS)
    expect(address).to_have_value(EMAIL)

    number = fan.locator("#card")
    number.press_sequentially(CARD[:9], delay=HUMAN_MS)
    slow.hold_back()
    fan.get_by_label("Parking").fill("1")
    fan.get_by_label("Poster").focus()  # sends the parking
    fan.get_by_label("Parking").fill("2")  # and something newer follows
    number.focus()
    number.press("End")
    fan.keyboard.type(CARD[9:14], delay=HUMAN_MS)
    slow.let_go()
    expect(fan.locator("#go")).to_have_text("Pay €76")
    assert caret(fan) == ("card", 14), "focus and caret stay"
    fan.keyboard.type(CARD[14:], delay=HUMAN_MS)
    expect(number).to_have_value(CARD)
    assert slow.asked[-1] == {"parking": 2}, "the last change wins"
    said(fan, "The new total is €76.")

    fan.locator("#expiry").press_sequentially("12 / 40", delay=HUMAN_MS)
    fan.get_by_label("Discount code").press_sequentially("nope", delay=HUMAN_MS)
    fan.locator("#cvc").press_sequentially("123", delay=HUMAN_MS)  # leaving the field sends the code
    expect(fan.get_by_text("This is not a code for this event.")).to_be_visible()
    assert caret(fan) == ("cvc", 3)
    asked = len(slow.asked)
    fan.get_by_label("Poster").fill("1")
    fan.locator("#cvc").focus()
    expect(fan.locator("#go")).to_have_text("Pay €81")  # the wrong code keeps nothing else from changing
    expect(fan.get_by_text("This is not a code for this event.")).to_be_visible()
    assert len(slow.asked) == asked + 1, "and is not tried again"
    fan.get_by_label("Discount code").fill("ten")
    fan.locator("#cvc").focus()
    expect(fan.get_by_text("The code is valid.")).to_be_visible()
    expect(fan.locator("#go")).to_have_text("Pay €75")  # half of 120 less a tenth, 16 and 5

    for selector, value in {"#name": NAME, "#email": EMAIL, "#card": CARD, "#expiry": "12 / 40", "#cvc": "123"}.items():
        expect(fan.locator(selector)).to_have_value(value)
    assert is_same_document(fan), "the page was never loaded again"
    assert told == []
    fan.get_by_role("button", name="Pay").click()
    fan.wait_for_url("**/bookings/**")
    sold = site.call(lambda platform: platform.ledger.booking(booking_id))
    assert sold.amount_minor == 75_00
    fan.go_back()
    expect(fan.get_by_role("heading", level=1)).to_be_visible()
    assert not fan.url.startswith("chrome-error"), "Back shows a page"


def test_extras_are_counted_by_buttons_up_to_what_one_booking_may_have(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    badge = fan.locator("#choice .row", has_text="Badge")
    more, fewer = badge.get_by_role("button", name="One more"), badge.get_by_role("button", name="One fewer")
    expect(more).to_have_accessible_description(re.compile("^Badge"))
    more.click()
    expect(fan.locator("#go")).to_have_text("Pay €123")
    more.click()
    expect(fan.locator("#go")).to_have_text("Pay €126")
    fewer.click()
    expect(fan.locator("#go")).to_have_text("Pay €123")
    fewer.click()
    fewer.click()
    expect(fan.locator("#go")).to_have_text("Pay €120")
    expect(fan.get_by_label("Badge")).to_have_value("0")
    assert is_same_document(fan)


def test_a_change_that_cannot_be_sent_is_said_kept_and_sent_again(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    fill_checkout(fan, CARD)
    fan.route("**/choice", lambda route: route.abort())
    fan.get_by_label("Parking").fill("2")
    fan.locator("#card").focus()
    expect(fan.get_by_text("The price could not be updated.")).to_be_visible()
    expect(fan.get_by_label("Parking")).to_have_value("2")
    fan.get_by_role("button", name="Pay").click()  # pays nothing while the price is not that of the choice
    expect(fan.get_by_text("The price could not be updated.")).to_be_visible()
    fan.unroute("**/choice")
    fan.get_by_role("button", name="Try again").click()
    expect(fan.locator("#go")).to_have_text("Pay €136")
    expect(fan.get_by_text("The price could not be updated.")).to_be_hidden()
    expect(fan.locator("#card")).to_have_value(CARD)
    assert is_same_document(fan)
    fan.get_by_role("button", name="Pay").click()
    fan.wait_for_url("**/bookings/**")


def test_a_code_that_pays_for_all_hides_the_card_and_gives_it_back_as_typed(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    fill_checkout(fan, CARD)
    code = fan.get_by_label("Discount code")
    code.fill("gift")
    code.press("Enter")
    expect(fan.get_by_role("button", name="Get tickets")).to_be_visible()
    expect(fan.locator("#card")).to_be_hidden()
    code.fill("")
    code.press("Enter")
    expect(fan.locator("#go")).to_have_text("Pay €120")
    expect(fan.locator("#card")).to_have_value(CARD)
    code.fill("gift")
    code.press("Enter")
    fan.get_by_role("button", name="Get tickets").click()
    fan.wait_for_url("**/bookings/**")
    assert is_same_document(fan) is False


def test_what_is_not_left_is_said_and_the_field_shows_what_is_paid_for(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    fan.get_by_label("Badge").fill("3")
    fan.locator("#card").focus()
    expect(fan.get_by_text("Badge: only 2 left.")).to_be_visible()
    expect(fan.get_by_label("Badge")).to_have_value("0")
    expect(fan.locator("#go")).to_have_text("Pay €120")


def test_more_time_and_coming_back_lose_nothing_typed(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    fan.evaluate("document.querySelector('#extend').classList.remove('later')")
    fill_checkout(fan, CARD)
    until = fan.locator("fr-timer").get_attribute("until")
    fan.get_by_role("button", name="I need more time").click()
    expect(fan.locator("fr-timer")).not_to_have_attribute("until", until or "")
    expect(fan.locator("#card")).to_have_value(CARD)
    assert is_same_document(fan)


def test_the_price_on_the_button_is_the_price_that_is_paid(fan: Page, site: Site) -> None:
    """Another tab chose something; this one does not pay what it never showed."""
    booking_id = at_checkout(fan, site)
    other = fan.context.new_page()
    other.goto(f"{site.url}/checkout/{booking_id}")
    other.get_by_label("Parking").fill("1")
    other.locator("#card").focus()
    expect(other.locator("#go")).to_have_text("Pay €128")
    pay(fan)
    expect(fan.get_by_text("The price has changed.")).to_be_visible()
    expect(fan.locator("#go")).to_have_text("Pay €128")
    pay(fan)
    fan.wait_for_url("**/bookings/**")


@pytest.mark.parametrize("scripts", [True, False])
def test_back_after_a_wrong_code_and_after_paying_shows_a_page(profile: Any, site: Site, scripts: bool) -> None:
    page: Page = profile(java_script_enabled=scripts).new_page()
    be_let_in(page, site.url, EVENT)
    booking_id = hold_at_once(page, site.url, EVENT)
    page.goto(f"{site.url}/checkout/{booking_id}")
    page.get_by_label("Discount code").fill("nope")
    page.get_by_role("button", name="Update the price").click()
    expect(page.get_by_text("This is not a code for this event.")).to_be_visible()
    expect(page.get_by_label("Discount code")).to_have_value("nope")
    pay(page, "4000000000000002")
    expect(page.get_by_text("Your bank declined this card.")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Checkout")).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Checkout")).to_be_visible()
    pay(page)
    page.wait_for_url("**/bookings/**")
    for _ in range(3):
        if page.go_back() is None:
            break
        assert not page.url.startswith("chrome-error")
        expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_checkout_is_clean_after_every_change(profile: Any, site: Site, width: int, scheme: str) -> None:
    """axe-core in both schemes, after an error, after a failure and after a decline."""
    context = profile(width, 844, color_scheme=scheme)
    bring_axe(context)
    page: Page = context.new_page()
    at_checkout(page, site)
    page.get_by_label("Discount code").fill("nope")
    page.get_by_label("Discount code").press("Enter")
    expect(page.get_by_text("This is not a code for this event.")).to_be_visible()
    assert axe(page, []) == []
    page.route("**/choice", lambda route: route.abort())
    page.get_by_label("Parking").fill("1")
    page.locator("#card").focus()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    assert axe(page, []) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.unroute("**/choice")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#go")).to_have_text(re.compile("Pay €128"))
    pay(page, "4000000000000002")
    expect(page.get_by_text("You can try 2 more times.")).to_be_visible()
    assert axe(page, []) == []


def test_what_may_stay_empty_is_marked(fan: Page, site: Site) -> None:
    """Before: a name was optional, and nothing said so."""
    at_checkout(fan, site)
    expect(fan.locator("label[for=name]")).to_have_text("Name (optional)")
    expect(fan.locator("label[for=email]")).to_have_text("Email for your tickets")
    fan.locator("#email").fill(EMAIL)
    fill_card_form(fan, CARD)
    fan.get_by_role("button", name="Pay").click()
    fan.wait_for_url("**/bookings/**")


def way(page: Page, method: str) -> Locator:
    return page.locator(f"#methods [value={method}]")


def test_a_few_ways_to_pay_are_shown_first_and_the_others_stay_open_once_opened(fan: Page, site: Site) -> None:
    """Before: ten of them stood between the buyer's name and the card's number."""
    fan.set_viewport_size({"width": 390, "height": 844})
    at_checkout(fan, site)
    for shown in ("card", "apple_pay", "google_pay", "link"):
        expect(way(fan, shown)).to_be_visible()
    expect(way(fan, "ideal")).to_be_hidden()
    first, number = fan.locator("#methods label").first.bounding_box(), fan.locator("#card").bounding_box()
    assert first is not None
    assert number is not None
    assert number["y"] - first["y"] < 300, "the card's number is near"
    fan.get_by_text("More ways to pay").click()
    way(fan, "ideal").check()
    expect(fan.locator("#card")).to_be_hidden()
    fan.locator("#choice").get_by_role("button", name="One more").first.click()
    expect(fan.locator("#go")).to_have_text("Pay €128")
    expect(way(fan, "ideal")).to_be_visible()
    expect(way(fan, "ideal")).to_be_checked()
    fan.reload()
    expect(way(fan, "card")).to_be_checked()


def test_the_ways_to_pay_follow_the_price(fan: Page, site: Site) -> None:
    """Before: a way that does not take the new price stayed, and was refused after the button was pressed."""
    klarna = replace(payment_methods.KLARNA, most_minor={"EUR": 125_00})
    provider, methods = site.platform.box_office.provider, (payment_methods.CARD, klarna, payment_methods.IDEAL)
    with instead(provider.inner, "methods", methods):  # type: ignore[attr-defined]
        at_checkout(fan, site)
        way(fan, "klarna").check()
        more = fan.locator("#choice .row", has_text="Parking").get_by_role("button", name="One more")
        more.click()
        expect(fan.locator("#go")).to_have_text("Pay €128")
        expect(way(fan, "klarna")).to_have_count(0)
        expect(way(fan, "card")).to_be_checked()
        expect(fan.locator("#card")).to_be_visible()
        way(fan, "ideal").check()
        fan.locator("#choice .row", has_text="Parking").get_by_role("button", name="One fewer").click()
        expect(fan.locator("#go")).to_have_text("Pay €120")
        expect(way(fan, "klarna")).to_be_visible()
        expect(way(fan, "ideal")).to_be_checked()
        code = fan.get_by_label("Discount code")
        for typed, told in (("gift", "Get tickets"), ("", "Pay €120")):  # nothing to pay, and then all of it
            code.fill(typed)
            code.press("Enter")
            expect(fan.locator("#go")).to_have_text(told)
        expect(way(fan, "ideal")).to_be_checked()
    assert is_same_document(fan)
