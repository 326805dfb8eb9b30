"""Who is who: J2 two guests side by side in two events of two organisations; J7 bought on a phone, shown on a laptop
after signing in with the same address; staff with a Unicode password."""

import csv
import io
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.people.team import Actor
from tests.boxoffice.people.support import CHEAP
from tests.browser.staff import staff
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, enter_shop, fill_buyer, hold_seats, pay_by_card, sign_in_by_mail
from tests.support.eventually import eventually_sync

ADA, BOB = "ada@example.org", "bob@example.org"
CHOSEN = "un caf\u00e9 \u00e0 Orl\u00e9ans"
TYPED = " un cafe\u0301 a\u0300 Orle\u0301ans"  # on another keyboard, with a space too many


@pytest.fixture(scope="module")
def stack_options() -> dict[str, Any]:
    return {"people": CHEAP}


def test_two_guests_of_two_organisations_never_meet(stack: Stack, visitor: Visitor) -> None:
    """J2: the first visitors of two rooms, step by step side by side; pages, mails, accounts and tables."""
    organisers = {"Northern Lights": "org_lights", "Opera Night": "org_opera"}
    events = {name: stack.put_on_sale(name, organiser_id=organiser) for name, organiser in organisers.items()}
    ada, bob = visitor(), visitor()
    enter_shop(ada, stack, "Northern Lights")
    enter_shop(bob, stack, "Opera Night")
    lights, opera = hold_seats(ada, 2), hold_seats(bob, 1)
    fill_buyer(ada, "Ada Lovelace", ADA)
    pay_by_card(ada)
    ada.wait_for_url("**/bookings/**")
    bob.reload()
    expect(bob.locator("#email")).to_have_value("")
    expect(bob.locator("#name")).to_have_value("")
    fill_buyer(bob, "Bob Byron", BOB)
    pay_by_card(bob)
    bob.wait_for_url("**/bookings/**")
    expect(ada.locator(".ticket").first).to_contain_text("Ada Lovelace")
    expect(bob.locator(".ticket").first).to_contain_text("Bob Byron")
    assert (stack.paid(lights), stack.paid(opera)) == (100_00, 50_00)

    for email, mine, other in ((ADA, "Northern Lights", "Opera Night"), (BOB, "Opera Night", "Northern Lights")):
        mail = stack.mailbox.wait_for(email, mine)
        assert other not in mail.text + mail.html
        assert len(stack.mailbox.mails(email)) == 1

    for page, email, mine, other, theirs in (
        (ada, ADA, "Northern Lights", "Opera Night", opera),
        (bob, BOB, "Opera Night", "Northern Lights", lights),
    ):
        sign_in_by_mail(page, stack, email)
        _has_only(page, stack, mine, other, theirs)

    for event, organiser in organisers.items():
        _organiser_sees_only(visitor(), stack, events[event].id, organiser, own=event == "Northern Lights")

    ada.goto(f"{stack.url}/account")
    ada.locator("form[action$='/erase'] input[name=confirm]").fill("erase my data")
    ada.locator("form[action$='/erase'] button").click()
    ada.wait_for_url(f"{stack.url}/")
    _has_only(bob, stack, "Opera Night", "Northern Lights", lights)
    bob.goto(f"{stack.url}/bookings/{opera}")
    expect(bob.locator(".ticket")).to_contain_text("Bob Byron")


def _has_only(page: Page, stack: Stack, mine: str, other: str, theirs: str) -> None:
    """Tickets, messages and data of this person, and nothing of the other."""
    page.goto(f"{stack.url}/tickets")
    expect(page.get_by_role("heading", name=mine)).to_have_count(1)
    expect(page.get_by_text(other)).to_have_count(0)
    page.goto(f"{stack.url}/account")
    expect(page.get_by_text(mine).first).to_be_visible()
    expect(page.get_by_text(other)).to_have_count(0)
    for path in (f"/bookings/{theirs}", f"/checkout/{theirs}", f"/bookings/{theirs}/tickets.pdf"):
        assert page.request.get(stack.url + path).status == 404
    data = page.evaluate("fetch('/v1/me/export').then((answer) => answer.text())")
    assert mine in data
    assert other not in data
    assert theirs not in data


def _organiser_sees_only(page: Page, stack: Stack, event_id: str, organiser: str, *, own: bool) -> None:
    """Search by parts of names, and the table to download."""
    staff(page, stack.site, organiser=organiser)
    for words, count in (("lovel", int(own)), ("YRON bob", int(not own))):
        page.goto(f"{stack.url}/organiser/events/{event_id}/bookings")
        page.locator("#q").fill(words)
        page.get_by_role("button", name="Search").click()
        expect(page.locator("table.rows tbody tr")).to_have_count(count)
    path = f"/organiser/events/{event_id}/exports/attendees.csv"
    text = page.evaluate("(path) => fetch(path).then((answer) => answer.text())", path)
    names = {row["name"] for row in csv.DictReader(io.StringIO(text.lstrip("\ufeff")))}
    assert names == {"Ada Lovelace" if own else "Bob Byron"}


def test_bought_on_a_phone_shown_on_a_laptop(stack: Stack, visitor: Visitor) -> None:
    """J7: no account, another device, the same address in another case; tickets, money back, and nobody else's."""
    stack.put_on_sale("Harbour Song")
    phone, mallory, laptop = visitor(390, 844), visitor(), visitor()
    bought = buy(phone, stack, "Harbour Song", "Grace@Example.org", count=2, name="Grace Hopper")
    stack.mailbox.wait_for("grace@example.org", "Harbour Song")
    typed = buy(mallory, stack, "Harbour Song", "grace@example.org", name="Mallory")
    mallory.goto(f"{stack.url}/tickets")
    expect(mallory.locator("a.ev")).to_have_count(1)
    assert mallory.request.get(f"{stack.url}/bookings/{bought}").status == 404, (
        "an address that was typed proves nothing"
    )

    laptop.goto(f"{stack.url}/tickets")
    expect(laptop.locator("a.ev")).to_have_count(0)
    laptop.get_by_role("link", name="Sign in with your email").click()
    sign_in_by_mail(laptop, stack, "GRACE@example.org")
    expect(laptop.locator("a.ev")).to_have_count(2)
    laptop.goto(f"{stack.url}/bookings/{bought}")
    expect(laptop.locator(".ticket")).to_have_count(2)
    expect(laptop.locator(".ticket").first).to_contain_text("Grace Hopper")
    laptop.locator("details.give summary").click()
    laptop.locator("details.give input[name=seat]").first.check()
    laptop.locator("details.give button").click()
    laptop.locator("form[action$=give-back] .danger").click()
    expect(laptop.locator(".ticket")).to_have_count(1)
    stack.mailbox.wait_for("grace@example.org", "Part of your booking for Harbour Song is refunded")
    eventually_sync(lambda: stack.paid(bought), until=lambda paid: paid == 50_00)  # a job pays it
    assert stack.paid(typed) == 50_00

    laptop.goto(f"{stack.url}/account")
    laptop.get_by_role("button", name="Sign out").click()
    laptop.wait_for_url(f"{stack.url}/")
    laptop.goto(f"{stack.url}/tickets")  # the next person at this laptop
    expect(laptop.locator("a.ev")).to_have_count(0)
    assert laptop.request.get(f"{stack.url}/bookings/{bought}").status == 404

    stranger = visitor()
    sign_in_by_mail(stranger, stack, "heidi@example.org")
    expect(stranger.locator("a.ev")).to_have_count(0)
    assert stranger.request.get(f"{stack.url}/bookings/{bought}").status == 404


def test_staff_sign_in_with_a_unicode_password(stack: Stack, visitor: Visitor) -> None:
    async def invited(platform: Platform) -> None:
        await platform.people.team.create_organiser("Caf\u00e9", "org_cafe")
        owner = Actor("stf_owner", "org_cafe", Role.OWNER)
        await platform.people.team.invite(owner, "zoe@example.org", Role.MANAGER, "en")

    stack.call(invited)
    mail = stack.mailbox.wait_for("zoe@example.org", "/invitation#")
    zoe = visitor()
    zoe.goto(next(link for link in mail.links() if "/invitation#" in link))
    zoe.get_by_label("Name").fill("Zo\u00eb")
    zoe.get_by_label("New password").fill(CHOSEN)
    zoe.locator("form[action='/invitation'] button").click()
    zoe.wait_for_url("**/second-factor")
    tablet = visitor()
    tablet.goto(f"{stack.url}/organiser/sign-in")
    for password, url in (
        ("un cafe a Orleans", re.compile(r"/organiser/sign-in\?.*told=")),
        (TYPED, re.compile("/second-factor$")),
    ):
        tablet.get_by_label("Email", exact=True).fill("zoe@example.org")
        tablet.get_by_label("Password").fill(password)
        tablet.locator("form[action='/organiser/sign-in'] button").click()
        tablet.wait_for_url(url)
    expect(tablet.locator(".enrol img")).to_be_visible()


def test_a_sign_in_mail_works_in_any_browser_and_by_its_code(stack: Stack, visitor: Visitor) -> None:
    """Issue 26: the link is opened in the phone's mail program, the code typed on the laptop that asked for it."""
    laptop, phone = visitor(), visitor(390, 844)
    laptop.goto(f"{stack.url}/sign-in?back=/account")
    laptop.get_by_label("Email", exact=True).fill("ivy@example.org")
    laptop.get_by_role("button", name="Send me a link").click()
    mail = stack.mailbox.wait_for("ivy@example.org", "/sign-in")
    laptop.get_by_label("Six-digit code").fill("000 000")
    laptop.get_by_role("button", name="Sign in", exact=True).click()
    expect(laptop.get_by_role("alert")).to_contain_text("This code is not right")
    code = re.search(r"\d{3} \d{3}", mail.text)
    assert code is not None

    phone.goto(next(link for link in mail.links() if "#frl_" in link))
    expect(phone.get_by_role("heading", name="Sign in here?")).to_be_visible()
    expect(phone.locator("main")).to_contain_text("ivy@example.org")
    phone.reload()
    expect(phone.get_by_role("heading", name="Sign in here?")).to_have_count(0)  # no address shows the secret again
    laptop.get_by_label("Six-digit code").fill(code[0])
    laptop.get_by_role("button", name="Sign in", exact=True).click()
    laptop.wait_for_url("**/account")

    laptop.goto(f"{stack.url}/sign-in?back=/tickets")
    laptop.get_by_label("Email", exact=True).fill("ivy@example.org")
    laptop.get_by_role("button", name="Send me a link").click()
    second = stack.mailbox.wait_for("ivy@example.org", "/sign-in", skip=1)
    phone.goto(next(link for link in second.links() if "#frl_" in link))
    phone.get_by_role("button", name="Sign in in this browser").click()
    phone.wait_for_url("**/tickets")  # where the laptop wanted to go
