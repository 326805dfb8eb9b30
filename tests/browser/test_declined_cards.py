"""One declined card is not the end (B9): more cards within the hold, then the same seats again if they are
free; and the other way for hot sales."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.events.model.events import USUAL_CARD_TRIES
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount
from frontrow.core.clock import US_PER_S
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, be_let_in, hold_at_once, pay

DECLINED = "4000000000000002"
LIMITED = "evt_limited"


def at_checkout(page: Page, site: Site, event_id: str = EVENT_ID) -> str:
    be_let_in(page, site.url, event_id)
    booking_id = hold_at_once(page, site.url, event_id)
    page.goto(f"{site.url}/checkout/{booking_id}")
    return booking_id


def read_booking(site: Site, booking_id: str) -> Booking:
    found: Booking = site.call(lambda platform: platform.ledger.booking(booking_id))
    return found


def decline_all(page: Page) -> None:
    for _ in range(USUAL_CARD_TRIES):
        pay(page, DECLINED)
        expect(page.get_by_text("Your bank declined")).to_be_visible()
    expect(page.get_by_role("heading", name="Your card was declined")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_three_cards_then_the_same_seats_again(profile: Any, site: Site, scripts: bool) -> None:
    page: Page = profile(java_script_enabled=scripts).new_page()
    first = at_checkout(page, site)
    expect(page.get_by_text("on sale")).to_have_count(0)  # nobody is threatened before anything happened
    for left in ("You can try 2 more times.", "You can try 1 more time."):
        pay(page, DECLINED)
        expect(page.get_by_role("alert")).to_contain_text("Nothing was charged, and your seats are still held.")
        expect(page.get_by_role("alert")).to_contain_text(left)
        assert read_booking(site, first).state in ("held", "paying")
        if page.locator("#email").count():
            expect(page.locator("#email")).to_have_value("ada@example.org")
    pay(page, DECLINED)
    expect(page.get_by_role("heading", name="Your card was declined")).to_be_visible()
    assert read_booking(site, first).state == "cancelled", "the last decline frees the seats at once"
    page.get_by_role("button", name="Hold the same seats again").click()
    page.wait_for_url(lambda url: "/checkout/" in url and first not in url)
    second = read_booking(site, page.url.rpartition("/")[2])
    assert second.seats == read_booking(site, first).seats
    pay(page)
    page.wait_for_url("**/bookings/**")


@pytest.mark.parametrize("scripts", [True, False])
def test_on_a_phone_a_decline_is_said_beside_the_card(profile: Any, site: Site, scripts: bool) -> None:
    """Before: it was said at the top, and the card's fields were a screen further down."""
    page: Page = profile(390, 844, java_script_enabled=scripts).new_page()
    at_checkout(page, site)
    pay(page, DECLINED)
    expect(page.get_by_role("alert")).to_contain_text("Your bank declined")
    expect(page.get_by_role("alert")).to_be_in_viewport()
    expect(page.locator("#card")).to_be_in_viewport()


def test_the_same_seats_are_not_offered_when_one_is_gone(fan: Page, site: Site) -> None:
    """Neither on the page, nor for who pressed the button a moment too late: they see what is free beside."""
    first = at_checkout(fan, site)
    decline_all(fan)
    stale = fan.context.new_page()
    stale.goto(fan.url)
    expect(stale.get_by_role("button", name="Hold the same seats again")).to_be_visible()

    async def take(platform: Platform) -> None:
        seats = await platform.booking_views.seat_ids(EVENT_ID, read.seats)
        visit = ShopPass(EVENT_ID, "fan_faster", platform.clock() + 900 * US_PER_S)
        await platform.box_office.holds.place(EVENT_ID, visit, seats)

    read = read_booking(site, first)
    site.call(take)
    fan.reload()
    expect(fan.get_by_role("button", name="Hold the same seats again")).to_have_count(0)
    expect(fan.get_by_role("link", name="Choose seats again")).to_be_visible()
    stale.get_by_role("button", name="Hold the same seats again").click()
    expect(stale.get_by_text("Someone was faster: these seats are taken.")).to_be_visible()
    stale.get_by_role("link", name="Choose seats again").click()
    stale.wait_for_url("**/seats")


def test_what_was_limited_comes_back_and_is_chosen_again(fan: Page, profile: Any, site: Site) -> None:
    """The last decline gives the code and the add-on back at once; who holds the seats again has them again, unless
    somebody else was faster."""
    once = Discount("ONCE", 1_000, most_uses=1)
    options = {"add_ons": (AddOn("vip", "Meet the band", 900, 1, 1),), "discounts": (once,)}
    site.call(lambda platform: put_hall(platform, id=LIMITED, name="Limited", **options))
    site.call(lambda platform: platform.box_office.openings.refresh())
    other: Page = profile().new_page()
    at_checkout(other, site, LIMITED)
    at_checkout(fan, site, LIMITED)
    fan.get_by_label("Meet the band").fill("1")
    fan.get_by_label("Discount code").fill("once")
    fan.get_by_label("Discount code").press("Enter")
    expect(fan.locator("#go")).to_have_text("Pay €117")
    decline_all(fan)
    fan.get_by_role("button", name="Hold the same seats again").click()
    expect(fan.locator("#go")).to_have_text("Pay €117")
    decline_all(fan)
    other.get_by_label("Discount code").fill("once")
    other.get_by_label("Discount code").press("Enter")
    expect(other.locator("#go")).to_have_text("Pay €108")
    fan.get_by_role("button", name="Hold the same seats again").click()
    expect(fan.get_by_text("This code has been used up.")).to_be_visible()
    expect(fan.locator("#go")).to_have_text("Pay €129")


def test_two_tabs_share_the_tries(fan: Page, site: Site) -> None:
    booking_id = at_checkout(fan, site)
    other = fan.context.new_page()
    other.goto(f"{site.url}/checkout/{booking_id}")
    pay(fan, DECLINED)
    expect(fan.get_by_text("You can try 2 more times.")).to_be_visible()
    pay(other, DECLINED)
    expect(other.get_by_text("You can try 1 more time.")).to_be_visible()
    pay(fan, DECLINED)
    expect(fan.get_by_role("heading", name="Your card was declined")).to_be_visible()
    pay(other)
    expect(other.get_by_role("heading", name="Your card was declined")).to_be_visible()
    other.get_by_role("button", name="Hold the same seats again").click()
    other.wait_for_url(lambda url: "/checkout/" in url and booking_id not in url)
    held = other.url
    fan.get_by_role("button", name="Hold the same seats again").click()
    fan.wait_for_url(held)  # one hold, whichever tab asked


def test_a_decline_while_the_provider_comes_and_goes_costs_no_try(fan: Page, site: Site) -> None:
    """A call that is lost is no decline: it is made again, and counts once."""
    booking_id = at_checkout(fan, site)
    pay(fan, DECLINED)
    expect(fan.get_by_text("You can try 2 more times.")).to_be_visible()
    inner: Any = site.platform.box_office.provider.inner  # type: ignore[attr-defined]
    before, inner.script = inner.script, lambda operation, key, number: Fault.LOST_REQUEST
    try:
        pay(fan, DECLINED)
        expect(fan.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
    finally:
        inner.script = before
    expect(fan.get_by_text("You can try 1 more time.")).to_be_visible(timeout=60_000)
    assert read_booking(site, booking_id).state == "paying"
    pay(fan)
    fan.wait_for_url("**/bookings/**")


def test_an_organiser_frees_the_seats_at_the_first_decline_by_one_click(profile: Any, fan: Page, site: Site) -> None:
    """The rule of the design documents, for hot sales."""
    site.call(lambda platform: put_hall(platform, id="evt_hot", name="Hot"))
    site.call(lambda platform: platform.box_office.openings.refresh())
    desk: Page = profile().new_page()
    staff(desk, site, role="owner")
    desk.goto(f"{site.url}/organiser/events/evt_hot/sale")
    expect(desk.get_by_label("Card attempts per purchase")).to_have_value("3")
    desk.get_by_label("Hot sale: free the seats at the first decline").check()
    desk.get_by_role("button", name="Save").first.click()
    desk.goto(f"{site.url}/organiser/events/evt_hot/sale")
    expect(desk.get_by_label("Hot sale: free the seats at the first decline")).to_be_checked()
    site.call(lambda platform: platform.box_office.openings.refresh())
    booking_id = at_checkout(fan, site, "evt_hot")
    pay(fan, DECLINED)
    expect(fan.get_by_role("heading", name="Your card was declined")).to_be_visible()
    assert read_booking(site, booking_id).state == "cancelled"


def test_an_event_keeps_the_number_it_has_stored(fan: Page, site: Site) -> None:
    async def put(platform: Platform) -> None:
        event = await platform.ledger.catalogue.event(EVENT_ID)
        await platform.ledger.catalogue.put_event(replace(event, id="evt_stored", card_tries=1), platform.clock())
        await platform.box_office.openings.refresh()

    site.call(put)
    at_checkout(fan, site, "evt_stored")
    pay(fan, DECLINED)
    expect(fan.get_by_role("heading", name="Your card was declined")).to_be_visible()
