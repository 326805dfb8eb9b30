"""What fans may want besides two seats (B1, B2, B4, B11): standing, step-free, cheap, near, in their language."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.holds.model.holds import ShopPass
from tests.browser.mails import mail_with, mails_of, sign_in
from tests.browser.served import WAIT_S, Site, put_hall
from tests.browser.steps import EVENT_ID, be_let_in, enter, fill_card_form, pay, until
from tests.browser.tour import instead
from tests.support.eventually import eventually_sync
from tests.web.api.support import one_row

FULL_ID = "evt_full"


async def put(platform: Platform) -> None:
    await put_hall(platform)
    await put_hall(platform, one_row(2), id=FULL_ID, name="Sold in a minute")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("wishes"), put) as running:
        yield running


def mine(page: Page) -> list[int]:
    found: list[int] = page.evaluate("[...window.frontrow.model.mine]")
    return found


def test_b4_places_to_stand_are_bought_by_their_number(fan: Page, site: Site) -> None:
    enter(fan, site)
    area = fan.evaluate("window.frontrow.model.sections.findIndex((one) => one.area)")
    fan.locator(f"#list [data-section='{area}']").click()
    fan.get_by_label("How many standing places?").fill("3")
    fan.get_by_label("How many standing places?").press("Tab")
    expect(fan.locator("#picked")).to_contain_text("Pit, standing × 3")
    fan.get_by_role("button", name="Continue with 3 seats").click()
    pay(fan)
    expect(fan.locator(".ticket")).to_have_count(3)
    expect(fan.locator(".ticket dt").filter(has_text="Row")).to_have_count(0)


def test_step_free_seats_are_found_with_the_companions_seat_beside_them(fan: Page, site: Site) -> None:
    enter(fan, site)
    before = fan.locator("#list button").count()
    fan.locator("#step-free").check()
    until(fan, "(before) => document.querySelectorAll('#list button').length < before", before)
    fan.locator("#list button").first.click()
    wheelchair = fan.get_by_role("gridcell", name="free, step-free").and_(
        fan.locator(":not([aria-label*='companion'])")
    )
    chosen = int(wheelchair.first.get_attribute("data-seat") or -1)
    wheelchair.first.click()
    beside = fan.locator(f"[data-seat='{chosen + 1}']")
    assert "companion seat" in (beside.get_attribute("aria-label") or "")
    beside.click()
    assert mine(fan) == [chosen, chosen + 1]
    fan.get_by_role("button", name="Continue with 2 seats").click()
    pay(fan)
    expect(fan.locator(".ticket")).to_have_count(2)


def test_the_price_filter_leaves_what_is_cheap_enough_in_list_map_and_best(fan: Page, site: Site) -> None:
    enter(fan, site)
    before = fan.locator("#list button").count()
    fan.locator("#price").focus()
    fan.keyboard.press("Home")
    cheapest = fan.evaluate("Math.min(...window.frontrow.model.doc.tiers.map((tier) => tier.price))")
    assert fan.evaluate("window.frontrow.model.maxPrice") == cheapest
    assert fan.locator("#price").get_attribute("aria-valuetext") == f"€{cheapest // 100}"
    assert 0 < fan.locator("#list button").count() < before
    fan.get_by_role("button", name="Find best available").click()
    fan.get_by_role("button", name="Continue with 2 seats").click()
    fan.wait_for_url("**/checkout/**")
    expect(fan.get_by_role("button", name=f"Pay €{2 * cheapest // 100}")).to_be_visible()


def test_b11_from_the_waitlist_by_the_offers_mail_to_a_ticket(fan: Page, site: Site, profile: Any) -> None:
    """Sold out, in the line, somebody gives a seat back, the mail comes, the offer is taken and paid."""
    seats = site.call(buy_all)
    guest, said = profile().new_page(), list[str]()
    guest.on("console", lambda message: said.append(message.text))
    be_let_in(guest, site.url, FULL_ID)
    guest.goto(f"{site.url}/events/{FULL_ID}/waitlist")
    guest.get_by_label("Email").fill("guest@example.org")
    guest.get_by_role("button", name="Join the waitlist").click()
    expect(guest.get_by_role("button", name="Leave the waitlist")).to_be_visible()
    guest.get_by_role("button", name="Leave the waitlist").click()
    expect(guest.get_by_role("button", name="Join the waitlist")).to_be_visible()
    assert said == []
    sign_in(fan, site, "wait@example.org", f"/events/{FULL_ID}/waitlist")
    fan.get_by_label("How many seats?").select_option("1")
    fan.get_by_role("button", name="Join the waitlist").click()
    expect(fan.get_by_role("heading", name="Your place on the waitlist")).to_be_visible()
    before = mails_of(site)
    site.call(lambda platform: platform.box_office.holds.held.release(*seats))
    assert mail_with(site, r"Seats have become free: .+", before)
    fan.reload()
    expect(fan.get_by_role("heading", name="Seats for you")).to_be_visible()
    expect(fan.get_by_role("timer")).to_be_visible()
    fan.get_by_role("button", name="Accept").click()
    fan.wait_for_url("**/checkout/**")
    expect(fan.get_by_text("Tickets are sent to wait@example.org.")).to_be_visible()
    pay(fan)
    expect(fan.locator(".ticket")).to_have_count(1)


async def buy_all(platform: Platform) -> tuple[str, int]:
    """Every seat of the small show is held by others; the booking and fence of one of them."""
    ids = platform.box_office.sales.get(FULL_ID).plan.seat_ids
    made = None
    for number, seat in enumerate(ids):
        visit = ShopPass(FULL_ID, f"place:full{number}", platform.clock() + 600_000_000, f"full{number}")
        made = await platform.box_office.holds.place(FULL_ID, visit, [seat])
    assert made is not None
    return made.booking_id, made.fence


def test_b8_who_lost_seats_to_an_absent_provider_goes_first_the_next_time(fan: Page, site: Site) -> None:
    enter(fan, site)
    fan.get_by_role("button", name="Find best available").click()
    fan.get_by_role("button", name="Continue with 2 seats").click()
    fan.wait_for_url("**/checkout/**")
    with instead(site.platform.box_office.provider.inner, "script", lambda *_: Fault.LOST_REQUEST):  # type: ignore[attr-defined]
        pay(fan)
        expect(fan.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
        site.ahead_s += 601  # the hold is over, and the provider never came back
        expect(fan.get_by_role("heading", name="The payment did not go through")).to_be_visible()
    fan.context.clear_cookies(name="frontrow_pass")
    fan.get_by_role("button", name="Enter without waiting").click()
    fan.wait_for_url("**/seats")
    until(fan, "window.frontrow")


def test_more_time_is_given_once(fan: Page, site: Site) -> None:
    enter(fan, site)
    fan.get_by_role("button", name="Find best available").click()
    fan.get_by_role("button", name="Continue with 2 seats").click()
    fan.wait_for_url("**/checkout/**")
    more = fan.locator("#extend button")
    expect(more).to_be_hidden()
    before = fan.locator("fr-timer").get_attribute("until") or ""
    fan.evaluate("document.querySelector('#extend').requestSubmit()")
    until(fan, "(old) => document.querySelector('fr-timer')?.getAttribute('until') > old", before)


def test_who_wants_to_be_forgotten_types_it_in_the_own_language_and_is(profile: Any, site: Site) -> None:
    page = profile().new_page()
    sign_in(page, site, "gone@example.org")
    page.goto(f"{site.url}/language/de?back=/account")
    page.get_by_label("meine Daten löschen").fill("nein")
    page.get_by_role("button", name="Konto löschen").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("meine Daten löschen").fill("Meine Daten löschen")
    page.get_by_role("button", name="Konto löschen").click()
    expect(page.get_by_role("link", name="Anmelden")).to_be_visible()
    page.goto(f"{site.url}/account")
    page.wait_for_url("**/sign-in?back=/account")


@pytest.mark.parametrize("language", ["ar", "ja"])
def test_a_purchase_in_another_language_from_the_switch_in_the_foot(profile: Any, site: Site, language: str) -> None:
    """Every page on the way is in that language, in its direction, and fits a small screen."""
    page = profile(390, 844).new_page()
    page.goto(f"{site.url}/events/{EVENT_ID}")
    page.locator(f"footer [hreflang={language}]").click()
    fits(page, language)
    page.goto(f"{site.url}/v1/events/{EVENT_ID}/room/")
    fits(page, language)
    page.go_back()
    page.locator("#enter button, button[form=enter]").filter(visible=True).click()
    page.wait_for_url("**/seats")
    until(page, "window.frontrow")
    fits(page, language)
    page.locator("#best button").click()
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    fits(page, language)
    page.locator("#email").fill("ada@example.org")
    fill_card_form(page, "4242424242424242")
    page.locator("#go").click()
    expect(page.locator(".ticket")).to_have_count(2)
    fits(page, language)


def fits(page: Page, language: str) -> None:
    direction = "rtl" if language == "ar" else "ltr"
    expect(page.locator(f"html[lang={language}]")).to_have_attribute("dir", direction)
    page.wait_for_load_state()
    assert page.locator("html").evaluate("(one) => one.scrollWidth") <= 390, page.url


DEVICE = """PushManager.prototype.subscribe = async function (how) {
  sessionStorage.key = how.applicationServerKey;
  const made = { endpoint: "https://push.example.org/device", toJSON: () => ({ endpoint: made.endpoint, keys: { p256dh: "BKey", auth: "secret" } }), unsubscribe: async () => { PushManager.prototype.getSubscription = async () => null; return true; } };
  PushManager.prototype.getSubscription = async () => made;
  return made;
};"""  # noqa: E501


RECORD_SHOWN = """() => {
  self.shown = [];
  self.registration.showNotification = async (title, options) => void self.shown.push([title, options]);
}"""


def test_b10_a_device_is_subscribed_shows_what_is_pushed_and_is_let_go(profile: Any, site: Site) -> None:
    """The browser's push service is not here, and a headless browser shows no notifications: subscribing and showing
    are stand-ins, the worker is real. How a message is encrypted for the device and signed is tested in
    tests/boxoffice/messages/test_notify.py."""
    context = profile(permissions=["notifications"])
    context.add_init_script(DEVICE)
    page = context.new_page()
    tool = context.new_cdp_session(page)
    known: dict[str, str] = {}
    tool.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda told: known.update({one["registrationId"]: one["scopeURL"] for one in told["registrations"]}),
    )
    tool.send("ServiceWorker.enable")
    sign_in(page, site, "push@example.org", "/account")
    page.get_by_role("button", name="Notify this device").click()
    expect(page.get_by_role("button", name="Stop notifying this device")).to_be_visible()
    assert len(page.evaluate("sessionStorage.key")) == 87, "our public key, uncompressed"
    me = page.evaluate("fetch('/v1/me').then((r) => r.json())")
    assert len(me["push"]) == 1
    assert "push" in me["preferences"]["channels"]
    until(page, "async () => (await navigator.serviceWorker.getRegistration('/push/'))?.active?.state === 'activated'")
    assert [scope.removeprefix(site.url) for scope in known.values()] == ["/push/"], "it controls no page"
    body = json.dumps({"id": "m1", "title": "Seats for you", "body": "Until 20:15"})
    about = {"origin": site.url, "registrationId": next(iter(known)), "data": body}
    [worker] = context.service_workers
    worker.evaluate(RECORD_SHOWN)
    tool.send("ServiceWorker.deliverPushMessage", about)
    shown = [["Seats for you", {"body": "Until 20:15", "tag": "m1", "data": {"url": f"{site.url}/account"}}]]
    assert eventually_sync(lambda: worker.evaluate("self.shown"), WAIT_S) == shown
    page.get_by_role("button", name="Stop notifying this device").click()
    expect(page.get_by_role("button", name="Notify this device")).to_be_visible()
    assert page.evaluate("fetch('/v1/me').then((r) => r.json())")["push"] == []
