"""Steps of fans that several journeys take, in English pages; each waits until it has happened."""

from pathlib import Path

import zxingcpp
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import be_let_in, choose, fill_card_form, get_tickets, hold_at_once, reload_until, until
from tests.journeys.stack import Stack

GOOD_CARD = "4242 4242 4242 4242"


def find_event(page: Page, stack: Stack, event_name: str) -> None:
    """From the home page to the event's page."""
    page.goto(stack.url)
    heading = page.get_by_role("heading", name=event_name).first
    reload_until(page, heading)
    heading.click()
    page.wait_for_url("**/events/*")


def enter_shop(page: Page, stack: Stack, event_name: str, *, from_home: bool = False) -> None:
    """From the event's page (or the home page before it) to the seats: nobody waits, so nobody sees the room."""
    if from_home:
        find_event(page, stack, event_name)
    else:
        page.goto(stack.event_url(event_name))
    tickets = page.get_by_role("button", name="Get tickets")
    reload_until(page, tickets)  # a seat that came back is on sale again within a second
    get_tickets(page)


def come_to_seats(page: Page, stack: Stack, event_name: str) -> None:
    """Let in without the pages before (`enter_shop` walks), and in front of the seats."""
    be_let_in(page, stack.url, stack.event_id(event_name))
    page.goto(f"{stack.event_url(event_name)}/seats")


def come_to_checkout(page: Page, stack: Stack, event_name: str, count: int = 1) -> str:
    """Let in with seats held, without the pages before (`enter_shop` and `hold_seats` walk); the booking's id."""
    event_id = stack.event_id(event_name)
    be_let_in(page, stack.url, event_id)
    booking_id = hold_at_once(page, stack.url, event_id, count)
    page.goto(f"{stack.url}/checkout/{booking_id}")
    return booking_id


def hold_seats(page: Page, count: int = 1) -> str:
    """Pick free seats on the seats page and go on to the checkout; the booking's id."""
    until(page, "window.frontrow")
    choose(page, count)
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    return page.url.rpartition("/")[2].partition("?")[0]


def fill_buyer(page: Page, name: str, email: str) -> None:
    """Who buys, as the checkout asks."""
    page.locator("#name").fill(name)
    page.locator("#email").fill(email)


def pay_by_card(page: Page, card: str = GOOD_CARD) -> None:
    """Pay with a card typed into our own form (the simulated provider's)."""
    fill_card_form(page, card)
    page.locator("#go").click()


def fill_card(page: Page, stack: Stack, card: str = GOOD_CARD) -> None:
    """Type a card into Stripe's form if the shop sells with Stripe, into our own otherwise; nothing is paid yet.

    With Stripe the person's browser needs `bring_stripe_js`.
    """
    if stack.stripe is None:
        fill_card_form(page, card)
    else:
        page.locator("#stripe-number").fill(card)


def buy(
    page: Page,
    stack: Stack,
    event_name: str,
    email: str,
    *,
    count: int = 1,
    name: str = "Ada Lovelace",
    card: str = GOOD_CARD,
    from_home: bool = False,
) -> str:
    """A purchase, from the home page or else from the checkout on; ends on the booking's page; the booking's id."""
    if from_home:
        enter_shop(page, stack, event_name, from_home=True)
        booking_id = hold_seats(page, count)
    else:
        booking_id = come_to_checkout(page, stack, event_name, count)
    fill_card(page, stack, card)
    fill_buyer(page, name, email)
    page.locator("#go").click()
    page.wait_for_url("**/bookings/**")
    return booking_id


def read_code(page: Page, folder: Path) -> str:
    """What a scanner reads from the first ticket on the screen."""
    return read_codes(page, folder)[0]


def read_codes(page: Page, folder: Path) -> list[str]:
    """What a scanner reads from each ticket on the screen."""
    return [scan_picture(picture, folder) for picture in page.locator(".qr img").all()]


def scan_picture(picture: Locator, folder: Path) -> str:
    """What a scanner reads from a picture on the screen."""
    expect(picture).to_have_js_property("complete", True)
    (folder / "code.png").write_bytes(picture.screenshot())
    found = zxingcpp.read_barcode(Image.open(folder / "code.png"))
    assert found is not None, "the code can be scanned from the screen"
    return str(found.text)


def sign_in_by_mail(page: Page, stack: Stack, email: str, back: str = "/tickets") -> None:
    """Ask for a link and open the one in the mail; ends on the page `back`."""
    before = len([mail for mail in stack.mailbox.mails() if "#frl_" in mail.text and mail.to == email.lower()])
    page.goto(f"{stack.url}/sign-in?back={back}")
    page.get_by_label("Email", exact=True).fill(email)
    page.get_by_role("button", name="Send me a link").click()
    page.get_by_role("button", name="Send the link again").wait_for()
    mail = stack.mailbox.wait_for(email.lower(), "#frl_", skip=before)
    page.goto(next(link for link in mail.links() if "#frl_" in link))
    page.wait_for_url(f"**{back}")
