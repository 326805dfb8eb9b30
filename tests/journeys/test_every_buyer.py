"""J12: the same purchase by keyboard only, without scripts, on a phone, and at 320 pixels."""

import re

from playwright.sync_api import Page, expect

from tests.browser.steps import GOOD_CODE, GOOD_EXPIRY, get_tickets, until
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import GOOD_CARD, enter_shop, fill_buyer, hold_seats, pay_by_card


def assert_bought(page: Page, stack: Stack, email: str, seats: int = 1) -> None:
    """The page, the mail and the provider's book agree that this person bought, once."""
    page.wait_for_url("**/bookings/**")
    expect(page.locator(".qr img")).to_have_count(seats)
    booking_id = re.sub(r".*/bookings/(\w+).*", r"\1", page.url)
    assert stack.paid(booking_id) == seats * 50_00
    assert stack.authorised(booking_id) == 0
    assert stack.mailbox.wait_for(email).attachments()
    assert len(stack.mailbox.mails(email)) == 1


def tab_to(page: Page, selector: str, most: int = 80) -> None:
    """Press Tab until the focus is there, as somebody without a mouse does."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(s) => document.activeElement?.matches(s)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab on {page.url}")


def type_into(page: Page, selector: str, text: str) -> None:
    tab_to(page, selector)
    page.keyboard.type(text)


def press(page: Page, selector: str, key: str = "Enter") -> None:
    tab_to(page, selector)
    page.keyboard.press(key)


def test_by_keyboard_only(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Keyboard Concerto")
    page = visitor()
    page.goto(stack.url)
    press(page, f"a[href='/events/{event.id}']")
    page.wait_for_url(f"**/events/{event.id}")
    press(page, "#enter button")
    page.wait_for_url("**/seats")
    until(page, "window.frontrow")
    press(page, "#list button")
    press(page, "#grid button")
    until(page, "window.frontrow.model.mine.size === 1")
    press(page, "#go")
    page.wait_for_url("**/checkout/**")
    type_into(page, "#name", "Kay Board")
    type_into(page, "#email", "kay@example.org")
    type_into(page, "#card", GOOD_CARD)
    type_into(page, "#expiry", GOOD_EXPIRY)
    type_into(page, "#cvc", GOOD_CODE)
    press(page, "#go")
    assert_bought(page, stack, "kay@example.org")


def test_without_scripts(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Plain Song")
    page = visitor(java_script_enabled=False)
    page.goto(stack.url)
    page.get_by_role("heading", name="Plain Song").click()
    get_tickets(page)
    assert page.url == f"{stack.url}/events/{event.id}/seats"
    page.get_by_role("link", name=re.compile("^Section")).first.click()
    page.locator("input[name=seat]:not([disabled])").first.check()
    page.get_by_role("button", name="Hold these seats").click()
    page.wait_for_url("**/checkout/**")
    fill_buyer(page, "Nora Script", "nora@example.org")
    pay_by_card(page)
    assert_bought(page, stack, "nora@example.org")


def test_on_a_phone(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Pocket Opera", seats=12)
    page = visitor(390, 844, has_touch=True, is_mobile=True)
    enter_shop(page, stack, "Pocket Opera", from_home=True)
    page.get_by_role("button", name="Find best available").tap()
    page.locator("#go").tap()
    page.wait_for_url("**/checkout/**")
    fill_buyer(page, "Finn Phone", "finn@example.org")
    pay_by_card(page)
    assert_bought(page, stack, "finn@example.org", seats=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_at_320_pixels(stack: Stack, visitor: Visitor) -> None:
    """A page at 200 % on a small laptop, or a very small phone: nothing is cut off and all of it works."""
    stack.put_on_sale("Narrow Way")
    page = visitor(320, 640)
    enter_shop(page, stack, "Narrow Way", from_home=True)
    hold_seats(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    fill_buyer(page, "Nell Arrow", "nell@example.org")
    pay_by_card(page)
    assert_bought(page, stack, "nell@example.org")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
