"""J11: a fan registers for a presale, is drawn, gets a code by mail, joins the presale lane with it and buys. Another
has no code, is told kindly when everybody may come, asks to be notified, and the mail at the opening leads to the line.
The organiser closes registration, opens the presale and then the sale by changing their times."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from playwright.sync_api import Page, expect

from frontrow.core.clock import US_PER_S
from tests.browser.looks import read_booking_view
from tests.browser.staff import staff
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import fill_buyer, hold_seats, pay_by_card

MINUTE_S = 60
HOUR_S = 3600
NAME = "Midnight Sun"


def local(stack: Stack, seconds: int) -> str:
    """A moment from now as a `datetime-local` field of the venue shows it."""
    at_s = stack.platform.clock() // US_PER_S + seconds
    return datetime.fromtimestamp(at_s, ZoneInfo("Europe/Vienna")).strftime("%Y-%m-%dT%H:%M")


def confirm_by_mail(page: Page, stack: Stack, address: str) -> None:
    """Open the link of the mail in this browser, which need not be the one that asked."""
    mail = stack.mailbox.wait_for(address, "/sign-ups/confirm/")
    page.goto(next(link for link in mail.links() if "/sign-ups/confirm/" in link))
    page.get_by_role("button", name="Yes, confirm").click()
    expect(page.get_by_role("heading", name="Confirmed")).to_be_visible()


def set_time(staff_page: Page, stack: Stack, step: str, label: str, seconds: int) -> None:
    """Move one of the event's times, in the wizard."""
    staff_page.goto(f"{stack.url}/organiser/events/{step}")
    staff_page.get_by_label(label).fill(local(stack, seconds))
    staff_page.get_by_role("button", name="Save", exact=True).click()
    staff_page.wait_for_url("**?done=saved")


def test_fans_register_are_drawn_and_buy_and_others_are_told_when_the_sale_opens(
    stack: Stack, visitor: Visitor
) -> None:
    now_us = stack.platform.clock()
    times: dict[str, Any] = {
        "presale_starts_at_us": now_us + HOUR_S * US_PER_S,
        "sale_starts_at_us": now_us + 2 * HOUR_S * US_PER_S,
    }
    event = stack.put_on_sale(NAME, seats=6, **times)
    event_page = f"{stack.url}/events/{event.id}"

    # the organiser opens registration
    staff_page = visitor()
    staff(staff_page, stack.site)
    staff_page.goto(f"{stack.url}/organiser/events/{event.id}/presale")
    staff_page.get_by_label("Registration opens").fill(local(stack, -HOUR_S))
    staff_page.get_by_label("Registration closes").fill(local(stack, 10 * MINUTE_S))
    staff_page.get_by_label("Codes", exact=True).fill("1")
    assert read_booking_view(staff_page, "presale") == []
    staff_page.get_by_role("button", name="Open registration").click()
    staff_page.wait_for_url("**?done=saved")

    # Ada registers and confirms in another browser, by keyboard
    ada = visitor(390, 844)
    ada.goto(event_page)
    assert read_booking_view(ada, "event before the presale") == []
    ada.locator("#register-email").focus()
    ada.keyboard.type("ada@example.org")
    ada.keyboard.press("Enter")
    expect(ada.get_by_role("heading", name="Check your inbox")).to_be_visible()
    phone = visitor(390, 844)
    confirm_by_mail(phone, stack, "ada@example.org")
    assert read_booking_view(phone, "confirmed") == []

    # Bob wants to be told when everybody can buy; he has scripts switched off
    bob = visitor(java_script_enabled=False)
    bob.goto(event_page)
    bob.locator("#notify-email").fill("bob@example.org")
    bob.get_by_role("button", name="Notify me").click()
    expect(bob.get_by_role("heading", name="Check your inbox")).to_be_visible()
    confirm_by_mail(bob, stack, "bob@example.org")

    # registration closes, the organiser draws
    staff_page.get_by_label("Registration closes").fill(local(stack, -MINUTE_S))
    staff_page.get_by_role("button", name="Save", exact=True).click()
    expect(staff_page.get_by_role("button", name="Draw now")).to_be_enabled()
    staff_page.get_by_role("button", name="Draw now").click()
    staff_page.wait_for_url("**?done=drawn")
    mail = stack.mailbox.wait_for("ada@example.org", "Your presale code")
    (code_link,) = [link for link in mail.links() if "#VF-" in link]
    staff_page.reload()
    expect(staff_page.get_by_role("heading", name="Drawn")).to_be_visible()

    # the presale opens: Ada's link brings her code along; she buys
    set_time(staff_page, stack, f"{event.id}/room", "The presale starts", -MINUTE_S)
    ada.goto(code_link)
    expect(ada.locator("input[name=code]")).to_have_value(code_link.rpartition("#")[2])
    ada.get_by_role("button", name="Join the queue").click()
    ada.wait_for_url("**/seats")
    booking_id = hold_seats(ada)
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    pay_by_card(ada)
    ada.wait_for_url("**/bookings/**")
    assert stack.paid(booking_id) == 50_00
    stack.mailbox.wait_for("ada@example.org", "bkg_")

    # without a code one is told kindly when to come, also with a code that was used
    eve = visitor()
    eve.goto(event_page)
    expect(eve.get_by_text("The presale is on. Do you have a code?")).to_be_visible()
    assert read_booking_view(eve, "event in the presale") == []
    eve.get_by_role("link", name="Join with your code").click()
    expect(eve.get_by_text("The general sale begins")).to_be_visible()
    eve.get_by_role("button", name="Join the queue").click()
    expect(eve.get_by_role("alert")).to_contain_text("presale")
    eve.locator("input[name=code]").fill(code_link.rpartition("#")[2])
    eve.get_by_role("button", name="Join the queue").click()
    expect(eve.get_by_role("alert")).to_contain_text("used")

    # the general sale opens: one mail, whose link leads to the line
    assert not [mail for mail in stack.mailbox.mails("bob@example.org") if "is open" in mail.subject]
    set_time(staff_page, stack, f"{event.id}/sale", "The sale opens", 0)
    opened = stack.mailbox.wait_for("bob@example.org", "is open")
    line = next(link for link in opened.links() if "/room/" in link)
    bob_now = visitor()
    bob_now.goto(line)
    bob_now.get_by_role("button", name="Join the queue").click()
    bob_now.wait_for_url("**/seats")
    end = next(link for link in opened.links() if "/sign-ups/end/" in link)
    bob.goto(end)
    bob.get_by_role("button", name="Stop these emails").click()
    expect(bob.get_by_role("heading", name="You will get no more emails")).to_be_visible()
    assert len(stack.mailbox.mails("bob@example.org")) == 2
