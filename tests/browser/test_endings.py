"""How a checkout can end (B6-B9), what comes after it (B10-B12), and who one is: each with its page, for people."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.events.model.events import USUAL_CARD_TRIES
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, TicketType
from tests.browser.mails import sign_in
from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID, SHORT_ID, be_let_in, hold_at_once, pay


def at_checkout(page: Page, site: Site, event_id: str = EVENT_ID) -> str:
    """A fan with one held seat; the booking's id."""
    be_let_in(page, site.url, event_id)
    booking_id = hold_at_once(page, site.url, event_id)
    page.goto(f"{site.url}/checkout/{booking_id}")
    return booking_id


def test_b9_the_last_declined_card_says_so_and_frees_the_seats(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    for _ in range(USUAL_CARD_TRIES):
        pay(fan, "4000000000000002")
        expect(fan.get_by_text("Nothing was charged")).to_be_visible()
    expect(fan.get_by_role("heading", name="Your card was declined")).to_be_visible()
    fan.get_by_role("link", name="Choose other seats").click()
    fan.wait_for_url("**/seats")


def test_b6_a_bank_that_asks_first_is_answered_and_the_tickets_are_there(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    pay(fan, "4000002760003184")
    expect(fan.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    fan.get_by_role("button", name="Demo bank: yes, it is me").click()
    fan.wait_for_url("**/bookings/**")
    expect(fan.locator(".ticket")).to_have_count(1)


def test_b9_a_hold_that_ran_out_is_gone_410_and_the_page_says_so_by_itself(fan: Page, site: Site) -> None:
    at_checkout(fan, site, SHORT_ID)
    expect(fan.get_by_role("heading", name="Your time ran out")).to_be_visible()
    expect(fan.get_by_text("Nothing was charged")).to_be_visible()
    answer = fan.reload()
    assert answer is not None
    assert answer.status == 410


def test_b8_a_provider_that_is_away_keeps_the_seats_and_the_page_goes_on_by_itself(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    inner: Any = site.platform.box_office.provider.inner  # type: ignore[attr-defined]
    before, inner.script = inner.script, lambda operation, key, number: Fault.LOST_REQUEST
    try:
        pay(fan)
        expect(fan.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
        expect(fan.get_by_role("timer")).to_be_visible()
    finally:
        inner.script = before
    fan.wait_for_url("**/bookings/**", timeout=60_000)


def test_what_is_wrong_in_the_form_is_said_beside_it_and_keeps_what_was_typed(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    fan.get_by_label("Email for your tickets").fill("ada@lovelace")
    fan.get_by_label("Card number").fill("1234")
    fan.get_by_role("button", name="Pay").click()
    expect(fan.get_by_text("This does not look like an email address.")).to_be_visible()
    expect(fan.get_by_text("This is not a card number.")).to_be_visible()
    expect(fan.get_by_label("Email for your tickets")).to_have_value("ada@lovelace")
    expect(fan.get_by_label("Email for your tickets")).to_be_focused()


NOT_A_NUMBER, NOT_A_CODE = "This is not a card number.", "This is not a security code. It has 3 digits"
NOT_A_DATE, EXPIRED = "This is not an expiry date. Enter the month and the year", "This card has expired."


@pytest.mark.parametrize("scripts", [True, False])
def test_a_mistyped_card_is_told_beside_each_field_and_nothing_is_paid(profile: Any, site: Site, scripts: bool) -> None:
    """With scripts nothing is sent; without them the server says the same and gives back what was typed."""
    page: Page = profile(java_script_enabled=scripts).new_page()
    booking_id = at_checkout(page, site)
    sent: list[str] = []
    # what the visit says meanwhile, on a slow machine, is not the form
    page.on("request", lambda one: sent.append(one.url) if one.method == "POST" and "/checkout/" in one.url else None)
    page.get_by_label("Email for your tickets").fill("ada@example.org")
    fields = [page.get_by_label(name) for name in ("Card number", "Expiry date", "Security code")]
    for typed, errors in (
        (("4242 4242 4242 4241", "13 / 30", "12"), (NOT_A_NUMBER, NOT_A_DATE, NOT_A_CODE)),
        (("4242 4242 4242 4242", "12 / 20", "123"), (None, EXPIRED, None)),
        (("4242 4242 4242 4242", "12 / 40", "12a"), (None, None, NOT_A_CODE)),
    ):
        for field, text in zip(fields, typed, strict=True):
            field.fill(text)
        page.get_by_role("button", name="Pay").click()
        for field, text, error in zip(fields, typed, errors, strict=True):
            expect(field).to_have_value(text)
            if error is None:
                expect(field).not_to_have_attribute("aria-invalid", "true")
                expect(page.locator(f"#{field.get_attribute('id')}-err")).to_have_count(0)
            else:
                expect(field).to_have_attribute("aria-invalid", "true")
                expect(field).to_have_accessible_description(re.compile(re.escape(error)))
        if scripts:
            first = next(field for field, error in zip(fields, errors, strict=True) if error)
            expect(first).to_be_focused()
    assert len(sent) == (0 if scripts else 3)
    payments = site.call(lambda platform: platform.ledger.payments.payments_of(booking_id))
    assert not payments
    pay(page)
    page.wait_for_url("**/bookings/**")


def test_what_was_filled_in_while_waiting_is_there_at_checkout(fan: Page, site: Site) -> None:
    fan.goto(f"{site.url}/ready?back=/tickets")
    fan.get_by_label("Name").fill("Grace Hopper")
    fan.get_by_label("Email for your tickets").fill("grace@example.org")
    fan.get_by_role("button", name="Save and return to the queue").click()
    fan.wait_for_url("**/tickets")
    at_checkout(fan, site)
    expect(fan.get_by_label("Name")).to_have_value("Grace Hopper")
    expect(fan.get_by_label("Email for your tickets")).to_have_value("grace@example.org")


def test_b12_tickets_are_given_back_for_money(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    fan.get_by_text("Return tickets", exact=True).click()
    fan.get_by_role("button", name="See the refund").click()
    expect(fan.get_by_role("alert")).to_contain_text("Select what you want to return")
    fan.get_by_text("Return tickets", exact=True).first.click()
    fan.locator("input[name=seat]").first.check()
    fan.get_by_role("button", name="See the refund").click()
    fan.wait_for_url("**/return?**")
    amount = fan.locator("tfoot strong").inner_text()
    fan.get_by_role("button", name="Request a refund").click()
    expect(fan.locator(".returned")).to_contain_text(amount)
    expect(fan.get_by_text("This booking has no valid tickets.")).to_be_visible()
    expect(fan.locator(".qr img")).to_have_count(0)


def test_a_fan_signs_in_by_link_finds_the_tickets_changes_preferences_and_signs_out(fan: Page, site: Site) -> None:
    at_checkout(fan, site)
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    sign_in(fan, site)
    assert "#" not in fan.url, "the link's secret does not stay in the address"
    expect(fan.get_by_role("heading", name="Aurora World Tour").first).to_be_visible()
    fan.get_by_role("link", name="Account").click()
    fan.get_by_label("Phone for text messages").fill("+43 664 123 4567")
    fan.get_by_role("button", name="Save").click()
    expect(fan.get_by_label("Phone for text messages")).to_have_value("+436641234567")
    fan.get_by_role("button", name="Sign out").click()
    expect(fan.get_by_role("link", name="Sign in")).to_be_visible()
    fan.goto(f"{site.url}/account")
    fan.wait_for_url("**/sign-in?back=/account")


def test_another_browser_cannot_see_the_booking(fan: Page, profile: Any, site: Site) -> None:
    at_checkout(fan, site)
    other = profile().new_page()
    for path in (fan.url, fan.url.replace("checkout", "bookings")):
        answer = other.goto(path)
        assert answer is not None
        assert answer.status == 404


def test_a_type_an_extra_and_a_code_change_the_price_and_the_ticket_and_lose_nothing_typed(
    fan: Page, site: Site
) -> None:
    options = {
        "ticket_types": (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000, note="Proof at the gate")),
        "add_ons": (AddOn("parking", "Parking", 800, 10, 2),),
        "discounts": (Discount("TEN", 1_000),),
    }
    site.call(lambda platform: put_hall(platform, id="evt_types", name="Aurora for all", **options))
    site.call(lambda platform: platform.box_office.openings.refresh())
    at_checkout(fan, site, "evt_types")
    fan.get_by_label("Email for your tickets").fill("ada@example.org")
    fan.locator("#choice select").select_option("child")  # a choice is sent at once
    expect(fan.locator("#go")).to_have_text("Pay €60")
    fan.get_by_label("Parking").fill("1")
    fan.get_by_label("Discount code").click()
    expect(fan.locator("#go")).to_have_text("Pay €68")
    fan.get_by_label("Discount code").fill("ten")
    fan.get_by_role("button", name="Update the price").click()
    expect(fan.get_by_text("The code is valid.")).to_be_visible()
    expect(fan.get_by_label("Email for your tickets")).to_have_value("ada@example.org")
    expect(fan.locator("#go")).to_have_text("Pay €62")  # half of 120, less a tenth, and 8
    fan.set_viewport_size({"width": 390, "height": 844})
    choice, button = fan.locator("#choice").bounding_box(), fan.locator("#go").bounding_box()
    assert choice is not None
    assert button is not None
    assert choice["y"] < button["y"], "on a phone too, what is paid for comes before paying"
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    expect(fan.locator(".ticket").get_by_text("Child")).to_be_visible()
