"""A draft walked through as a fan (B13): its page, seats, checkout with real prices, tickets; nothing is sold."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount, TicketType
from tests.browser.looks import bring_axe, console_of, read_booking_view
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff

DRAFT, BARE = "evt_draft", "evt_bare"
WALK = f"/organiser/events/{DRAFT}/walk"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        options: dict[str, Any] = {
            "ticket_types": (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000)),
            "add_ons": (AddOn("parking", "Parking", 900),),
            "discounts": (Discount("EARLY", 1_000),),
            "withheld": frozenset({0}),
        }
        await put_hall(platform, id=DRAFT, name="Late Night Comedy", status=EventStatus.DRAFT, **options)
        await put_hall(platform, id=BARE, name="Without prices", status=EventStatus.DRAFT, tiers=())

    with Site(tmp_path_factory.mktemp("walk"), put) as running:
        yield running


@pytest.fixture
def owner(profile: Any, site: Site) -> Page:
    context = profile()
    bring_axe(context)
    page: Page = context.new_page()
    staff(page, site)
    return page


def test_b13_a_draft_is_walked_through_from_its_page_to_the_tickets(owner: Page, site: Site) -> None:
    told = console_of(owner.context)
    owner.goto(f"{site.url}/organiser/events/{DRAFT}/preview")
    owner.get_by_role("link", name="Walk through as a fan").click()
    frame = owner.frame_locator("#walk")
    expect(frame.get_by_role("heading", name="Late Night Comedy")).to_be_visible()
    frame.get_by_role("button", name="Get tickets").click()
    owner.wait_for_url("**/walk/seats")
    owner.get_by_label("Seats", exact=True).fill("104-A-4 104-A-5")
    expect(owner.locator("#total")).to_have_text("€140")
    assert read_booking_view(owner, "walk: seats") == []
    owner.get_by_role("button", name="Continue to checkout").click()
    owner.wait_for_url("**/walk/checkout?**")
    pay = frame.get_by_role("button", name="Pay €140")
    expect(pay).to_be_visible()
    expect(frame.locator("#price")).to_contain_text("104, Row A")
    frame.get_by_label("104, Row A, Seat 4").select_option("child")
    expect(frame.get_by_role("button", name="Pay €105")).to_be_visible()
    frame.get_by_label("Parking").fill("1")
    frame.get_by_label("Discount code").fill("early")
    frame.get_by_role("button", name="Update the price").click()
    expect(frame.get_by_role("button", name="Pay €103.50")).to_be_visible()
    frame.get_by_label("Discount code").fill("nonsense")
    frame.get_by_role("button", name="Update the price").click()
    expect(frame.get_by_text("This is not a code for this event.")).to_be_visible()
    expect(frame.get_by_role("button", name="Pay €114")).to_be_visible()
    frame.get_by_label("Discount code").fill("early")
    frame.get_by_role("button", name="Update the price").click()
    frame.get_by_role("button", name="Pay €103.50").click()
    owner.wait_for_url("**/walk/tickets?**")
    expect(owner.get_by_role("heading", name="You have walked the whole way")).to_be_visible()
    expect(owner.get_by_text("€103.50")).to_be_visible()
    link = owner.get_by_role("link", name="Look at the tickets (PDF)").get_attribute("href")
    answer = owner.request.get(f"{site.url}{link}")
    assert answer.ok
    assert answer.body().startswith(b"%PDF")
    assert told == []

    async def sold(platform: Platform) -> int:
        return sum([1 async for _ in platform.ledger.active_seats(DRAFT, platform.clock())])

    assert site.call(sold) == 0, "nothing was held or sold"


def test_what_no_fan_could_buy_is_not_walked_on_with(owner: Page, site: Site) -> None:
    withheld = site.call(_first_seat)
    for seats in (withheld, "nowhere-1", " ".join(f"104-A-{n}" for n in range(1, 10)), ""):
        owner.goto(f"{site.url}{WALK}/checkout?seats={seats}")
        assert owner.url.endswith("/walk/seats?refused=1"), seats
        expect(owner.get_by_role("alert")).to_contain_text("Pick 1 to 8 seats that are for sale.")
    owner.goto(f"{site.url}/organiser/events/{BARE}/walk/seats")
    expect(owner.get_by_role("alert")).to_contain_text("Prices are missing.")


async def _first_seat(platform: Platform) -> str:
    event = await platform.ledger.catalogue.event(DRAFT)
    return str((await platform.organiser.organise.venues.plan(event.plan_hash)).seat_id(0))


def test_a_draft_stays_unknown_to_everybody_else(profile: Any, site: Site) -> None:
    page: Page = profile().new_page()
    staff(page, site, "owner", "org_other")
    for path in ("", "/seats", "/checkout?seats=104-A-4", "/checkout/page?seats=104-A-4", "/tickets.pdf?seats=104-A-4"):
        answer = page.goto(f"{site.url}{WALK}{path}")
        assert answer is not None
        assert answer.status == 404, path


def test_the_preview_of_an_open_sale_does_not_say_that_it_opens(owner: Page, site: Site) -> None:
    """Before: "The sale opens" with a time of yesterday."""
    owner.goto(f"{site.url}/organiser/events/{DRAFT}/preview")
    expect(owner.get_by_text("Fans see the event at once, and the sale is open.")).to_be_visible()
    expect(owner.get_by_text("The sale opens")).to_have_count(0)
