"""Ticket types in a browser (B7, B13): cards, a matrix of prices that follows, and a room without seats."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import EventStatus
from tests.browser.looks import bring_axe, console_of, read_booking_view
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import enter

OPTIONS = "/organiser/events/evt_draft/options"
NEW_TEAM = "org_club"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        await put_hall(platform, id="evt_draft", name="Late Night Comedy", status=EventStatus.DRAFT)

    with Site(tmp_path_factory.mktemp("types"), put) as running:
        yield running


@pytest.fixture
def owner(profile: Any, site: Site) -> Page:
    context = profile()
    bring_axe(context)
    page: Page = context.new_page()
    staff(page, site)
    page.goto(f"{site.url}{OPTIONS}")
    return page


def test_each_type_is_a_card_and_the_matrix_follows_what_is_typed(owner: Page, site: Site) -> None:
    told = console_of(owner.context)
    cards = owner.locator(".typecards > [role=group]:visible")
    expect(cards).to_have_count(1)  # one line to fill in, not a page of empty fields
    cards.get_by_label("Name").fill("Adult")
    owner.get_by_role("button", name="Another ticket type").click()
    child = owner.get_by_role("group", name="Ticket type 2")
    expect(child.get_by_label("Name")).to_be_focused()
    child.get_by_label("Name").fill("Child")
    matrix = owner.get_by_role("table", name="What each type costs")
    expect(matrix.get_by_role("columnheader")).to_have_text(["Ticket type", "Floor", "Pit", "Lower", "Upper"])
    expect(matrix.get_by_role("row", name="Adult")).to_contain_text("120.00")
    upper = matrix.get_by_role("textbox", name="Child, Upper")
    expect(upper).to_have_attribute("placeholder", "45.00")
    child.get_by_label("Percent of the price").fill("50")
    expect(upper).to_have_attribute("placeholder", "22.50")
    upper.fill("20")
    owner.get_by_role("button", name="Save and exit").click()
    owner.wait_for_url("**done=saved")
    owner.goto(f"{site.url}{OPTIONS}")
    expect(upper).to_have_value("20.00")
    expect(matrix.get_by_role("textbox", name="Child, Floor")).to_have_attribute("placeholder", "60.00")
    assert read_booking_view(owner, "ticket types") == []
    assert told == []


def test_a_wrong_price_in_the_matrix_is_said_in_its_cell(owner: Page, site: Site) -> None:
    owner.locator("#tname0").fill("Adult")
    if owner.locator("#tname1").is_hidden():
        owner.get_by_role("button", name="Another ticket type").click()
    owner.locator("#tname1").fill("Child")
    owner.locator("#tprice1-0").fill("cheap")
    owner.get_by_role("button", name="Save and continue").click()
    expect(owner.locator("#tprice1-0-err")).to_be_visible()
    expect(owner.locator("#tprice1-0")).to_have_value("cheap")


def test_a_room_without_seats_is_sold_from_its_template(profile: Any, site: Site) -> None:
    page: Page = profile().new_page()
    staff(page, site, "manager", NEW_TEAM)
    page.goto(f"{site.url}/organiser/events/new")
    page.get_by_label("Name of the event").fill("Basement Night")
    page.get_by_label("The show starts").fill("2031-06-01T22:00")
    page.get_by_role("button", name="Continue", exact=True).click()
    page.get_by_label("Name of the venue").fill("The Basement")
    page.get_by_label("City").fill("Vienna")
    page.get_by_label("Template", exact=True).select_option("Standing places only, without numbers")
    page.get_by_label("Seats or standing places").fill("150")
    page.get_by_role("button", name="Save draft and continue").click()
    page.wait_for_url("**/prices?done=draft")
    page.locator("#price0").fill("18")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/options?done=saved")
    event = page.url.partition("/options")[0]
    page.goto(f"{event}/sale")
    page.get_by_label("The sale opens").fill("2020-01-01T10:00")
    page.get_by_role("button", name="Save and continue").click()
    page.goto(f"{event}/preview")
    page.get_by_role("button", name="Publish now").click()
    page.wait_for_url("**?done=published")
    fan: Page = profile().new_page()
    enter(fan, site, event.rpartition("/")[2])
    expect(fan.locator("#count-free")).to_contain_text("150")
    fan.locator("#list button").first.click()
    for _ in range(2):
        fan.get_by_role("button", name="One place more").click()
    expect(fan.locator("#picked")).to_contain_text("Floor, standing × 2")
    fan.locator("#go").click()
    fan.wait_for_url("**/checkout/**")
    expect(fan.locator("#price")).to_contain_text("€36")
