"""The dialogs before a refund (B12): each line, what was paid and what comes back, for fans and for the team."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice
from frontrow.boxoffice.pricing.model.sale_options import AddOn, TicketType
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.core.clock import US_PER_S
from frontrow.web.http.access import booking_token
from tests.browser.looks import bring_axe, read_booking_view
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff

EVENT = "evt_refunds"
BASE = f"/organiser/events/{EVENT}"
OPTIONS: dict[str, Any] = {
    "ticket_types": (TicketType("adult", "Adult"), TicketType("family", "Family", 5_000, min_per_booking=3)),
    "add_ons": (AddOn("dinner", "Dinner", 20_000), AddOn("parking", "Parking", 800)),
    "fees": (Fee("Service fee", per_seat_minor=200), Fee("Order fee", per_booking_minor=199)),
    "refunds": RefundPolicy(window_s=3_600, fee_per_seat_minor=250, keeps_seat_fees=True),
}


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("refunds"), put_hall) as running:
        running.call(lambda platform: put_hall(platform, id=EVENT, name="Aurora with dinner", **OPTIONS))
        running.call(lambda platform: platform.box_office.openings.refresh())
        yield running


def bought(site: Site, page: Page, *seats: str) -> Booking:
    """A family with a dinner and two parking places, in this browser."""

    async def buy(platform: Platform) -> Booking:
        fan = f"fan_{seats[0]}"
        await platform.ledger.messages.put_contact(Contact(fan, "ada@example.org"), platform.clock())
        visit = ShopPass(EVENT, fan, platform.clock() + 900 * US_PER_S, fan)
        hold = await platform.box_office.holds.place(EVENT, visit, list(seats))
        held = await platform.ledger.booking(hold.booking_id)
        assert held is not None
        choice = BookingChoice(dict.fromkeys(held.seats, "family"), {"dinner": 1, "parking": 2})
        sale = platform.box_office.sales.get(EVENT)
        await platform.box_office.checkout.choose(held, choice, sale.event, sale.plan)
        await platform.box_office.checkout.pay(held.id, held.fence, "pm_card_visa")
        await platform.box_office.checkout.work()
        sold = await platform.ledger.booking(held.id)
        assert sold is not None
        return sold

    booking: Booking = site.call(buy)
    token = site.call(lambda platform: _token(platform, booking.id))
    secure = site.url.replace("http://", "https://")
    page.context.add_cookies(
        [{"name": "frontrow_bookings", "value": token, "url": secure, "secure": True, "httpOnly": True}]
    )
    return booking


async def _token(platform: Platform, booking_id: str) -> str:
    return booking_token(platform.secrets, booking_id)


def amounts(site: Site, booking: Booking) -> list[int]:
    async def read(platform: Platform) -> list[int]:
        return [one.amount_minor for one in await platform.ledger.payments.refunds_of(booking.id)]

    found: list[int] = site.call(read)
    return found


def test_a_fan_sees_each_line_before_the_refund_and_gets_exactly_that(fan: Page, hall: Site) -> None:
    bring_axe(fan.context)
    booking = bought(hall, fan, "101-A-1", "101-A-2", "101-A-3")
    fan.goto(f"{hall.url}/bookings/{booking.id}")
    fan.get_by_text("Return tickets", exact=True).click()
    for box in fan.locator("input[name=seat]").all()[:2]:
        box.check()
    fan.get_by_label("Parking").select_option("1")
    fan.get_by_role("button", name="See the refund").click()
    fan.wait_for_url("**/return?**")
    table = fan.get_by_role("table")
    for said in ("Family", "Parking", "no longer get the group price", "Fees per ticket", "Refund fee"):
        expect(table).to_contain_text(said)
    fees = table.get_by_role("row").filter(has_text="Order fee")
    expect(fees).to_contain_text("Refunded with the last ticket")
    expect(fees.get_by_role("cell")).to_have_text([re.compile("Order fee"), "€1.99", "–"])
    expect(table.get_by_role("columnheader")).to_have_text(["What", "Paid", "Comes back"])
    expect(table.get_by_role("row").filter(has_text="Row A, Seat")).to_have_count(2)  # a row per seat
    assert read_booking_view(fan, "the refund") == []
    amount = fan.locator("tfoot strong").inner_text()
    fan.get_by_role("button", name="Request a refund").click()
    expect(fan.locator(".returned")).to_contain_text(amount)
    expect(fan.locator(".returned")).to_contain_text("Refund requested on")
    expect(fan.get_by_text("1 ticket is still valid.")).to_be_visible()
    fan.get_by_text("Return tickets", exact=True).click()
    fan.get_by_label("Dinner").select_option("1")
    fan.get_by_role("button", name="See the refund").click()
    expect(fan.locator("tfoot strong")).to_have_text("€200")
    fan.get_by_role("button", name="Request a refund").click()
    expect(fan.locator(".returned tr").nth(1)).to_contain_text("€200")
    expect(fan.locator(".qr img")).to_have_count(1)  # the seat is kept
    assert amounts(hall, booking)[1:] == [20_000]


def test_my_tickets_counts_what_is_valid_and_says_what_was_paid_back(fan: Page, hall: Site) -> None:
    """A booking was "Paid, 3 tickets" after two of them had gone back, and the note of its refund never left."""
    booking = bought(hall, fan, "101-C-1", "101-C-2", "101-C-3")

    async def refund(platform: Platform, *seats: int) -> None:
        await platform.box_office.refunds.override(booking.id, seats)
        await platform.box_office.refunds.work()

    hall.call(lambda platform: refund(platform, *booking.seats[:2]))
    fan.goto(f"{hall.url}/tickets")
    card = fan.locator("a.ev")
    expect(card).to_contain_text("Paid")
    expect(card).to_contain_text("1 ticket")
    expect(card).to_contain_text("refunded")
    fan.goto(f"{hall.url}/bookings/{booking.id}")
    expect(fan.locator(".returned")).to_contain_text("Refunded on")
    expect(fan.locator(".note")).to_have_count(0)
    hall.call(lambda platform: refund(platform, booking.seats[2]))
    fan.goto(f"{hall.url}/tickets")
    expect(card).to_contain_text("Returned")
    expect(card).to_contain_text("No valid ticket")


# Where words of a text stand, from left to right as one sees them.
SPOTS = """(one, words) => {
  const range = document.createRange(), walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), found = {};
  while (walker.nextNode())
    for (const word of words) {
      const at = walker.currentNode.data.indexOf(word);
      if (at < 0) continue;
      range.setStart(walker.currentNode, at);
      range.setEnd(walker.currentNode, at + word.length);
      found[word] = range.getBoundingClientRect().left;
    }
  return words.map((word) => found[word]);
}"""


def test_add_ons_of_a_ticket_are_read_in_arabic_order(profile: Any, hall: Site) -> None:
    """Before: "1 × Dinner, 2 × Parking" stood as "Dinner, 2 × Parking × 1"."""
    page = profile(390, 844, locale="ar").new_page()
    booking = bought(hall, page, "101-D-1", "101-D-2", "101-D-3")
    page.goto(f"{hall.url}/bookings/{booking.id}")
    add_ons = page.locator(".ticket dd", has_text="Dinner").first
    one, dinner, two, parking = add_ons.evaluate(SPOTS, ["1", "Dinner", "2", "Parking"])
    assert one < dinner, "the number stands before its name"
    assert two < parking
    assert parking < one, "and the second one is read after the first, from the right"


def test_the_team_chooses_lines_and_sees_what_the_policy_keeps(profile: Any, hall: Site) -> None:
    page = profile().new_page()
    bring_axe(page.context)
    booking = bought(hall, page, "101-B-1", "101-B-2", "101-B-3")
    staff(page, hall)
    page.goto(f"{hall.url}{BASE}/bookings/{booking.id}")
    page.get_by_label("101, Row B, Seat 3").uncheck()
    page.get_by_role("combobox", name="Dinner").select_option("1")
    page.get_by_role("button", name="Refund", exact=True).click()
    dialog = page.get_by_role("dialog", name="Refund", exact=True)
    expect(dialog).to_contain_text("Dinner")
    expect(dialog).to_contain_text("The remaining seats no longer get the group price")
    assert read_booking_view(page, "the team's refund") == []
    dialog.get_by_label("in full, regardless of the refund policy").check()
    dialog.get_by_label("Reason (needed for a refund in full)").fill("ill")
    dialog.get_by_role("button", name="Refund now").click()
    expect(page.get_by_role("status").first).to_contain_text("The refund is in progress")
    expect(page.get_by_text("1 × Dinner")).to_be_visible()


def test_the_steps_of_a_policy_are_set_in_the_wizard_and_read_by_fans(profile: Any, hall: Site) -> None:
    page = profile().new_page()
    bring_axe(page.context)
    staff(page, hall)
    page.goto(f"{hall.url}{BASE}/sale")
    page.locator("#refund_hours").fill("48")
    page.locator("#refund_hours2").fill("24")
    page.locator("#refund_share2").fill("50")
    assert read_booking_view(page, "the wizard") == []
    page.get_by_role("button", name="Save").first.click()
    page.goto(f"{hall.url}/events/{EVENT}")
    expect(page.get_by_text("You can return tickets until 24 hours before the show. You get 50% back.")).to_be_visible()
