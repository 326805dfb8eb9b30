"""What the organiser's pages have in common: the menu, words for roles and dialogs, times with their zone."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.core.clock import US_PER_S
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID

TIME = re.compile(r"\b\d\d:\d\d\b")
NO_ZONE = re.compile(r"\b\d\d:\d\d\b(?!:)(?! CES?T| UTC)")
AT = f"/organiser/events/{EVENT_ID}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        await put_hall(platform)
        opens = platform.clock() + 86_400 * US_PER_S  # so its preview says when
        draft = {"name": "Late Night Comedy", "status": EventStatus.DRAFT, "sale_starts_at_us": opens}
        await put_hall(platform, id="evt_draft", **draft)

    with Site(tmp_path_factory.mktemp("office"), put) as running:
        yield running


@pytest.fixture
def owner(profile: Any, site: Site) -> Page:
    page: Page = profile().new_page()
    staff(page, site)
    return page


def groups_of(page: Page) -> list[str]:
    return page.locator(".side .of").all_inner_texts()


def test_the_menu_has_four_groups_with_an_event_and_without(owner: Page, site: Site) -> None:
    owner.goto(f"{site.url}/organiser")
    assert groups_of(owner) == ["Events", "Money", "Appearance", "Team and programs"]
    owner.goto(f"{site.url}{AT}/bookings")
    assert groups_of(owner) == ["Aurora World Tour", "Sale", "Buyers and gate", "All events"]
    buyers = owner.locator(".side").get_by_role("list", name="Buyers and gate")
    expect(buyers.get_by_role("link", name="Bookings")).to_have_attribute("aria-current", "page")
    everything = owner.locator(".side .rest")
    expect(everything.get_by_role("link", name="Audit log")).to_be_hidden()
    everything.get_by_text("Organisation").click()
    everything.get_by_role("link", name="Audit log").click()
    expect(owner.get_by_role("heading", name="Audit log")).to_be_visible()


def test_a_menu_shows_no_group_that_a_role_has_no_use_for(profile: Any, site: Site) -> None:
    page: Page = profile().new_page()
    staff(page, site, "door")
    page.goto(f"{site.url}{AT}")
    assert groups_of(page) == ["Aurora World Tour", "Buyers and gate", "All events"]


def test_a_dialog_is_left_by_cancel(owner: Page, site: Site) -> None:
    owner.goto(f"{site.url}{AT}/live")
    owner.get_by_role("button", name="Pause", exact=True).click()
    dialog = owner.get_by_role("dialog", name="Pause the sale?")
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(dialog).to_have_count(0)


def test_roles_and_scopes_are_explained_in_words(owner: Page, site: Site) -> None:
    owner.goto(f"{site.url}/organiser/team")
    role = owner.get_by_role("group", name="Role")
    expect(role.get_by_role("radio", name="Gate")).to_have_accessible_name(
        "Gate Scans tickets at the gate and finds bookings there. Sees no sales figures."
    )
    expect(role.get_by_role("radio", name="Box office")).to_be_checked()
    expect(owner.get_by_role("checkbox", name="Refund; sell and give tickets at the box office")).to_be_visible()


def test_times_are_said_with_their_zone(profile: Any, site: Site) -> None:
    """Whoever sells may sit in another zone than the venue, which is in Vienna."""
    page: Page = profile(timezone_id="America/New_York").new_page()
    staff(page, site)
    for path in ("/organiser", AT, f"{AT}/live", "/organiser/events/evt_draft/preview", "/door"):
        page.goto(site.url + path)
        text = page.locator("main").inner_text()
        assert TIME.search(text), f"{path} says no time"
        assert NO_ZONE.findall(text) == [], path


LINES = """(one, text) => {
  if (text) one.textContent = text;
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
}"""


def test_a_sum_and_an_address_stay_on_one_line(owner: Page, site: Site) -> None:
    """Before: with disputes there were six figures, and the currency of the first fell below it."""

    async def sold(platform: Platform) -> str:
        visit = ShopPass(EVENT_ID, "place:sum", platform.clock() + 600 * US_PER_S, "pass-sum")
        hold = await platform.box_office.holds.place(EVENT_ID, visit, ["104-C-7"])
        await platform.ledger.messages.put_contact(Contact("place:sum", "ada.lovelace@example.org"), platform.clock())
        await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
        return hold.booking_id

    booking = site.call(sold)
    owner.goto(f"{site.url}{AT}/reports")
    tiles = owner.locator(".tiles .tile")
    tiles.last.evaluate("(one) => { while (one.parentNode.children.length < 6) one.after(one.cloneNode(true)); }")
    figure = tiles.first.locator("dd")
    assert figure.evaluate(LINES, "153.594,70\u00a0€") == 1
    assert figure.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    owner.goto(f"{site.url}{AT}/bookings/{booking}")
    assert owner.locator(".facts .mail bdi").inner_text() == "ada.lovelace@example.org"
    assert owner.locator(".facts .mail bdi").evaluate(LINES, "") == 1


def test_a_badge_is_as_wide_as_its_words(owner: Page, site: Site) -> None:
    """Before: in Dates it was stretched over the whole line."""
    owner.goto(f"{site.url}{AT}/dates")
    badge = owner.locator(".setup .chip").first
    words, whole = badge.evaluate(
        """(one) => {
          const range = document.createRange();
          range.selectNodeContents(one);
          return [range.getBoundingClientRect().width, one.getBoundingClientRect().width];
        }"""
    )
    assert whole < words + 60, "its dot and its padding"
    line = badge.evaluate("(one) => one.closest('a').getBoundingClientRect().width")
    assert line > 3 * whole, "the line is much wider"


def test_times_in_tables_are_as_large_as_the_rest(owner: Page, site: Site) -> None:
    """Before: a rule for the headings of the fans' months made them twice as large."""

    async def held(platform: Platform) -> None:
        visit = ShopPass(EVENT_ID, "place:when", platform.clock() + 600 * US_PER_S, "pass-when")
        await platform.box_office.holds.place(EVENT_ID, visit, ["104-A-5"])

    site.call(held)
    owner.goto(f"{site.url}{AT}/bookings")
    row = owner.locator("tbody tr").first
    sizes = row.locator("td").evaluate_all("(cells) => cells.map((one) => getComputedStyle(one).fontSize)")
    assert len(set(sizes)) == 1, sizes
    expect(row.locator(".when")).to_contain_text("CE")


def test_the_preview_of_a_brand_begins_with_the_colours_of_the_page(owner: Page, site: Site) -> None:
    """Before: without a colour of one's own it showed the blue that pages once had."""
    owner.goto(f"{site.url}/organiser/brand")
    paint = "(one) => getComputedStyle(one).backgroundColor"
    shown = owner.locator(".look.light .btn").evaluate(paint)
    assert shown == owner.get_by_role("button", name="Save").first.evaluate(paint)


def test_nothing_in_a_table_or_a_list_is_cut_or_touches_its_frame(profile: Any, site: Site) -> None:
    """Before: exports stood on the border of their card, booking numbers broke in two, on a phone a line was empty."""

    async def held(platform: Platform) -> None:
        visit = ShopPass(EVENT_ID, "place:whole", platform.clock() + 600 * US_PER_S, "pass-whole")
        await platform.box_office.holds.place(EVENT_ID, visit, ["104-B-5"])

    site.call(held)
    page: Page = profile().new_page()
    staff(page, site)
    page.goto(f"{site.url}{AT}/exports")
    card, name = page.locator(".lines").bounding_box(), page.locator(".lines strong").first.bounding_box()
    assert card is not None
    assert name is not None
    assert name["x"] >= card["x"] + 12
    page.goto(f"{site.url}{AT}/bookings")
    number = page.locator("tbody .id").first
    assert number.evaluate("(one) => one.getClientRects().length") == 1
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator("tbody .when").first.evaluate("(one) => getComputedStyle(one).marginTop") == "0px"


def test_the_menu_of_an_event_fits_a_small_desktop(owner: Page, site: Site) -> None:
    owner.goto(f"{site.url}{AT}")
    side = owner.locator(".side")
    assert side.evaluate("(one) => one.scrollHeight <= one.clientHeight"), "all of it is seen without scrolling"
