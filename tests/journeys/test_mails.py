"""Mails that people act on: the link opens the tickets or the offer in a fresh browser, in the fan's own language."""

import re
from importlib.resources import files

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Visitor
from tests.journeys.mailbox import Mail
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, come_to_checkout, fill_buyer, pay_by_card
from tests.support.eventually import eventually_sync
from tests.support.pdf_letters import letters_of


def link_of(mail: Mail, purpose: str) -> str:
    """The mail's one link, which is for this purpose."""
    (link,) = mail.links()
    assert f"/open#frm_{purpose}." in link
    return link


def change_language(page: Page, stack: Stack, language: str, path: str) -> None:
    page.goto(f"{stack.url}/language/{language}?back={path}")
    expect(page.locator("html")).to_have_attribute("lang", language)


@pytest.mark.parametrize(
    ("language", "name", "subject", "direction"),
    [("ja", "山田 太郎", "のチケット", "ltr"), ("ar", "محمد بن علي", "تذاكرك لحضور", "rtl")],
    ids=["ja", "ar"],
)
def test_the_confirmation_in_ones_own_letters_opens_the_tickets_anywhere(
    stack: Stack, visitor: Visitor, language: str, name: str, subject: str, direction: str
) -> None:
    """J12: page, mail and PDF in Japanese and Arabic; the mail's link shows the tickets and gives none back."""
    event_name, address = f"Aurora {language} {stack.form}", f"{language}@example.org"
    stack.put_on_sale(event_name)
    buyer = visitor()
    booking_id = come_to_checkout(buyer, stack, event_name)
    change_language(buyer, stack, language, f"/checkout/{booking_id}")
    expect(buyer.locator("html")).to_have_attribute("dir", direction)
    fill_buyer(buyer, name, address)
    pay_by_card(buyer)
    buyer.wait_for_url("**/bookings/**")

    mail = stack.mailbox.wait_for(address, event_name)
    assert subject in mail.subject
    assert f'<html lang="{language}" dir="{direction}">' in mail.html
    assert name in mail.html
    pdf = mail.attachments()["tickets.pdf"]
    printed = set(letters_of(pdf))
    assert set("山田太郎") <= printed if language == "ja" else printed & set("محمد")

    friend = visitor(390, 844, locale=language)
    friend.goto(link_of(mail, "booking"))
    friend.wait_for_url(f"**/bookings/{booking_id}")
    expect(friend.locator(".ticket")).to_have_count(1)
    expect(friend.locator(".qr img")).to_have_js_property("complete", True)
    expect(friend.locator(".give")).to_have_count(0)
    refused = friend.request.post(
        f"{stack.url}/bookings/{booking_id}/give-back",
        form={"seat": "x", "how": "refund"},
        headers={"origin": stack.url},
    )
    assert refused.status == 404
    friend.goto(f"{stack.url}/bookings/{booking_id}/receipt")
    expect(friend.locator(".receipt")).to_contain_text("50")

    stranger = visitor()
    assert stranger.goto(f"{stack.url}/bookings/{booking_id}").status == 404  # type: ignore[union-attr]
    stranger.goto(link_of(mail, "booking")[:-1])
    expect(stranger.get_by_role("heading", name="This link does not work")).to_be_visible()
    assert stack.paid(booking_id) == 50_00


def test_j8_from_the_waitlist_by_the_mails_link_to_a_ticket_in_another_browser(stack: Stack, visitor: Visitor) -> None:
    """J8, B11: sold out, in line; seats come back; the offer's mail in Arabic is opened on a phone and paid there."""
    event_name, address = f"Full House {stack.form}", f"wait-{stack.form}@example.org"
    event = stack.put_on_sale(event_name, seats=1)
    first = visitor()
    sold = buy(first, stack, event_name, "first@example.org")

    fan = visitor(locale="ar")
    fan.goto(f"{stack.url}/sign-in?back=/events/{event.id}/waitlist")
    fan.locator("#email").fill(address)
    fan.locator("#ask button").click()
    sign_in = stack.mailbox.wait_for(address, "#frl_")
    assert sign_in.subject == "رابط تسجيل الدخول"
    fan.goto(sign_in.links()[0])
    fan.wait_for_url("**/waitlist")
    fan.locator("#count").select_option("1")
    fan.locator("form[action$='/waitlist'] .btn.primary").click()
    expect(fan.locator(".big.num")).to_have_text("1")

    first.locator(".give summary").click()
    first.locator(".give input[name=seat]").check()
    first.locator(".give button").click()
    first.locator("form[action$=give-back] .danger").click()
    expect(first.locator(".ticket")).to_have_count(0)

    offer = stack.mailbox.wait_for(address, re.escape("/open#frm_offer."))
    assert "محجوزة مؤقتًا لك" in offer.subject
    assert '<html lang="ar" dir="rtl">' in offer.html
    phone = visitor(390, 844, locale="ar")
    phone.goto(link_of(offer, "offer"))
    phone.wait_for_url("**/offers/**")
    expect(phone.locator("fr-timer")).to_be_visible()
    phone.locator("button[value=claim]").click()
    phone.wait_for_url("**/checkout/**")
    booking_id = phone.url.rpartition("/")[2]
    pay_by_card(phone)
    phone.wait_for_url("**/bookings/**")
    expect(phone.locator(".ticket")).to_have_count(1)
    tickets = stack.mailbox.wait_for(address, "frm_booking")
    assert "تذاكرك" in tickets.subject
    stack.mailbox.wait_for("first@example.org", f"Your booking for {event_name} is refunded")
    eventually_sync(lambda: stack.paid(sold), until=lambda paid: paid == 0)  # a job pays it
    assert stack.paid(booking_id) == 50_00

    late = visitor(locale="ar")
    late.goto(link_of(offer, "offer"))
    late.wait_for_url("**/offers/**")
    expect(late.locator("button[value=claim]")).to_have_count(0)


def test_the_click_on_a_notification_opens_what_it_is_about(visitor: Visitor) -> None:
    """Issue 11: it always opened the account. The worker's own code runs; only the notification API is stood in."""
    code = (files("frontrow.web") / "static/js/push-worker.js").read_text("utf-8")
    page = visitor()
    opened = page.evaluate(
        """async ([code, pushed]) => {
          const handlers = {}, shown = [], opened = [];
          const self = {
            location: { origin: "https://shop.example" },
            addEventListener: (name, handler) => { handlers[name] = handler; },
            registration: { showNotification: async (title, options) => { shown.push(options); } },
            clients: { openWindow: async (url) => { opened.push(url); } },
          };
          new Function("self", code)(self);
          for (const message of pushed) {
            const waits = [];
            const event = { waitUntil: (work) => waits.push(work) };
            handlers.push({ ...event, data: { json: () => message } });
            handlers.notificationclick({ ...event, notification: { close() {}, data: shown.at(-1).data } });
            await Promise.all(waits);
          }
          return opened;
        }""",
        [
            code,
            [
                {"id": "1", "title": "Tickets", "url": "https://shop.example/open#frm_booking.bkg_1.9.x"},
                {"id": "2", "title": "Offer", "url": "/offers/ofr_1"},
                {"id": "3", "title": "Old"},
                {"id": "4", "title": "Elsewhere", "url": "https://evil.example/"},
            ],
        ],
    )
    ours = "https://shop.example"
    assert opened == [f"{ours}/open#frm_booking.bkg_1.9.x", f"{ours}/offers/ofr_1", f"{ours}/account", "/account"]
