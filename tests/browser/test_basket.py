"""One basket for seats and standing places: nothing that was chosen is dropped before the fan has said so."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, SeatFlag, Section, area
from tests.browser.served import PATIENT_ROOM, Site, put_hall
from tests.browser.steps import EVENT_ID, be_let_in, enter, settled, until
from tests.web.api.support import one_row

ONE_PRICE_ID, ROWS_ID, SHORT_ROWS_ID, FEW_ID = "evt_one_price", "evt_rows", "evt_short_rows", "evt_few"
FEES_ID = "evt_fees"
FEES = (Fee("Order fee", per_booking_minor=199), Fee("Postage", per_booking_minor=250))
KEPT = 2  # wheelchair place and the companion's seat of the hall with rows


# Where the parts of a seat's name stand, in the order in which they are said.
SPOTS = """(line) => {
  const words = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), spots = [], range = document.createRange();
  while (words.nextNode())
    for (const part of words.currentNode.data.matchAll(/[A-Z0-9]+(?![^]*€)/g)) {
      range.setStart(words.currentNode, part.index);
      range.setEnd(words.currentNode, part.index + part[0].length);
      spots.push(range.getBoundingClientRect().left);
    }
  return spots;
}"""


def rows_and_pit() -> Plan:
    """Two rows of ten seats, at their left a wheelchair place with the companion's seat; and a pit."""
    rows = tuple(
        Row(
            name,
            tuple(Seat(str(at + 1), 10.0 * at, 14.0 * number, "front", flag(number, at)) for at in range(10)),
            rank=number,
        )
        for number, name in enumerate("AB")
    )
    return Plan("Rows", (Section("Stalls", rows), area("Pit", 20, tier="standing")), 300.0, 200.0)


def short_rows() -> Plan:
    """Two rows of five seats: a party of six sits in the middle of both, with a single seat on either side."""
    rows = tuple(
        Row(name, tuple(Seat(str(at + 1), 10.0 * at, 14.0 * number, "front") for at in range(5)), rank=number)
        for number, name in enumerate("AB")
    )
    return Plan("Short rows", (Section("Stalls", rows),), 300.0, 200.0)


def flag(row: int, at: int) -> int:
    return int((SeatFlag.STEP_FREE, SeatFlag.COMPANION)[at]) if row == 0 and at < KEPT else 0


async def put(platform: Platform) -> None:
    await put_hall(platform)
    await put_hall(platform, one_row(12), id=ONE_PRICE_ID, name="One price")
    await put_hall(platform, rows_and_pit(), id=ROWS_ID, name="Two rows", lonely_rule_until_percent=90)
    await put_hall(platform, one_row(12), id=FEES_ID, name="With fees", fees=FEES)
    await put_hall(platform, one_row(3), id=FEW_ID, name="Three seats")
    await put_hall(platform, short_rows(), id=SHORT_ROWS_ID, name="Short rows", lonely_rule_until_percent=90)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("basket"), put, room=PATIENT_ROOM) as running:
        yield running


def mine(page: Page) -> list[int]:
    found: list[int] = page.evaluate("[...window.frontrow.model.mine].sort((a, b) => a - b)")
    return found


def pick(page: Page, *seats: int) -> None:
    for seat in seats:
        page.evaluate("(i) => window.frontrow.pick(i)", seat)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


async def take(platform: Platform, seats: list[int], event_id: str) -> None:
    """Somebody else holds these seats."""
    visit = ShopPass(event_id, f"place:other{seats[0]}", platform.clock() + 600_000_000, f"other{seats[0]}")
    names = platform.box_office.sales.get(event_id).plan.seat_ids
    await platform.box_office.holds.place(event_id, visit, [names[seat] for seat in seats])


def test_b4_best_available_proposes_with_the_price_and_holds_nothing(fan: Page, site: Site) -> None:
    enter(fan, site)
    asked = list[str]()
    fan.on("request", lambda one: asked.append(one.url) if one.method == "POST" and "/holds" in one.url else None)
    press(fan, "Find best available")
    expect(fan.locator("#say")).to_contain_text("Best available: ")
    expect(fan.locator("#say")).to_contain_text("€")
    assert len(mine(fan)) == 2
    assert fan.evaluate("[...window.frontrow.model.mine].every((i) => window.frontrow.model.state[i] === 0)")
    assert asked == [], "nothing is held yet"
    expect(fan.locator("footer .btn.primary").filter(visible=True)).to_have_count(1)
    press(fan, "Continue with 2 seats")
    fan.wait_for_url("**/checkout/**")
    assert len(asked) == 1


def test_best_available_asks_before_it_replaces_a_basket(fan: Page, site: Site) -> None:
    enter(fan, site)
    last = fan.evaluate("window.frontrow.model.sections.findLast((one) => !one.area).base + 5")
    pick(fan, last)
    press(fan, "Find best available")
    ask = fan.locator("#ask")
    expect(ask).to_contain_text("You have chosen ")
    expect(ask).to_contain_text("€")
    assert mine(fan) == [last], "nothing is replaced before the fan says so"
    proposed = fan.evaluate("window.frontrow.map.view.options.proposed")
    assert len(proposed) == 2
    assert last not in proposed
    press(fan, "Keep my choice")
    expect(ask).to_be_hidden()
    assert mine(fan) == [last]
    press(fan, "Find best available")
    press(fan, "Add these")
    assert mine(fan) == sorted([last, *proposed])
    press(fan, "Find best available")
    press(fan, "Take these instead")
    assert mine(fan) == proposed
    expect(fan.locator("#picked li")).to_have_count(2)


def test_on_a_phone_every_answer_to_the_question_is_in_sight(profile: Any, site: Site) -> None:
    """Before: "Keep my choice" was cut off at the bottom of the screen."""
    page: Page = profile(390, 844).new_page()
    enter(page, site)
    pick(page, page.evaluate("window.frontrow.model.sections.findLast((one) => !one.area).base + 5"))
    press(page, "Find best available")
    for name in ("Add these", "Take these instead", "Keep my choice"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 390, "height": 560})
    press(page, "Keep my choice")
    expect(page.locator("#ask")).to_be_hidden()


def test_on_a_phone_the_list_alone_keeps_its_heading_off_the_edge(profile: Any, site: Site) -> None:
    """Before: the name of the show touched the bar above it."""
    page: Page = profile(390, 844).new_page()
    enter(page, site)
    button = page.get_by_role("button", name="List only")
    before = button.evaluate("(one) => getComputedStyle(one).backgroundColor")
    button.click()
    expect(page.locator("#mapbox")).to_be_hidden()
    settled(page)
    assert button.evaluate("(one) => getComputedStyle(one).backgroundColor") != before, "one sees that it is on"
    panel, name = page.locator("#panel").bounding_box(), page.locator("#panel h2").first.bounding_box()
    assert panel is not None
    assert name is not None
    assert name["y"] - panel["y"] >= 8


@pytest.mark.parametrize(("height", "seat"), [(844, 2), (667, 6)])
def test_on_a_phone_price_and_button_are_in_sight_with_fees_too(
    profile: Any, site: Site, height: int, seat: int
) -> None:
    """Before: with one fee, half of the button was below the screen."""
    page: Page = profile(390, height).new_page()
    enter(page, site, FEES_ID)
    pick(page, seat, seat + 1)
    for part in ("#go", "#total", ".due .fees"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    found = page.evaluate(
        """() => {
          const { left, top, width, height } = document.querySelector("#go").getBoundingClientRect();
          return document.elementFromPoint(left + width / 2, top + height - 2).id;
        }"""
    )
    assert found == "go", "nothing lies over it"
    press(page, "Continue with 2 seats")
    page.wait_for_url("**/checkout/**")


def test_seats_and_standing_places_are_in_one_basket_with_one_button(fan: Page, site: Site) -> None:
    enter(fan, site, ROWS_ID)
    pick(fan, 12, 13)
    fan.locator("#list [data-section='1']").click()
    press(fan, "One place more")
    press(fan, "One place more")
    expect(fan.locator("#picked li")).to_have_count(3)
    expect(fan.locator("#picked")).to_contain_text("Stalls, Row B, Seat 3")
    expect(fan.locator("#picked")).to_contain_text("Pit, standing × 2")
    press(fan, "Continue with 4 seats")
    fan.wait_for_url("**/checkout/**")
    expect(fan.get_by_text("Stalls, Row B, Seat 3").first).to_be_visible()
    expect(fan.get_by_text("Pit, standing").first).to_be_visible()


def test_proposed_seats_that_are_gone_become_the_next_best_and_are_shown_before_the_checkout(
    fan: Page, site: Site
) -> None:
    """The page does not know yet that they are gone: the server chooses and holds others in one step."""
    enter(fan, site)
    fan.evaluate("window.frontrow.feed.stop()")
    press(fan, "Find best available")
    before = mine(fan)
    site.call(lambda platform: take(platform, before, EVENT_ID))
    press(fan, "Continue with 2 seats")
    expect(fan.locator("#notes")).to_contain_text("The next best seats are held for you: ")
    expect(fan.locator("#notes")).to_contain_text("€")
    after = mine(fan)
    assert len(after) == 2
    assert not set(after) & set(before)
    assert fan.url.endswith("/seats"), "first the fan sees them"
    press(fan, "Continue to checkout")
    fan.wait_for_url("**/checkout/**")


def test_a_proposal_that_leaves_single_seats_is_held_as_it_was_shown(fan: Page, site: Site) -> None:
    """The rule against single seats is for choices by hand: the best seats for a party that is split are allowed."""
    enter(fan, site, SHORT_ROWS_ID)
    fan.locator("#count").select_option("6")
    press(fan, "Find best available")
    assert mine(fan) == [1, 2, 3, 6, 7, 8]
    expect(fan.locator("#alone")).to_be_hidden()
    press(fan, "Continue with 6 seats")
    fan.wait_for_url("**/checkout/**")
    expect(fan.get_by_text("Stalls, Row B, Seat 4").first).to_be_visible()


@pytest.mark.parametrize(("answer", "held"), [("Add these", 3), ("Take these instead", 2), ("Keep my choice", 1)])
def test_without_scripts_a_fan_who_holds_seats_is_asked(profile: Any, site: Site, answer: str, held: int) -> None:
    page = profile(java_script_enabled=False).new_page()
    be_let_in(page, site.url, EVENT_ID)
    shop = f"{site.url}/events/{EVENT_ID}/seats"
    page.goto(shop)
    page.locator("#n-count").select_option("1")
    page.get_by_role("button", name="Find best available").click()
    page.wait_for_url("**/checkout/**")
    page.goto(shop)
    page.locator("#n-count").select_option("2")
    page.get_by_role("button", name="Find best available").click()
    expect(page.get_by_text("You have chosen ").filter(visible=True)).to_be_visible()
    expect(page.get_by_text("1 seat held").filter(visible=True)).to_be_visible()
    page.get_by_text(answer, exact=True).click()
    if held > 1:
        page.wait_for_url("**/checkout/**")
    page.goto(shop)
    expect(page.get_by_text(f"{held} seat{'s' * (held > 1)} held").filter(visible=True)).to_be_visible()


def test_a_seat_that_would_be_left_alone_is_marked_with_the_ways_out(fan: Page, site: Site) -> None:
    enter(fan, site, ROWS_ID)
    fan.locator("#list [data-section='0']").click()
    free = fan.evaluate("[...Array(20).keys()].filter((i) => window.frontrow.model.state[i] === 0)")
    end = 19
    assert {16, 17, 18, 19} <= set(free)
    pick(fan, end - 2, end - 1)
    alone = fan.locator("#alone")
    expect(alone).to_contain_text("This would leave Stalls, Row B, Seat 10 alone.")
    expect(fan.locator(f"#grid [data-seat='{end}']")).to_have_class(re.compile(r"\balone\b"))
    assert fan.evaluate("window.frontrow.map.view.options.alone") == [end]
    alone.get_by_role("button", name="Move to Stalls, Row B, Seats 9–10").click()
    assert mine(fan) == [end - 1, end]
    expect(alone).to_be_hidden()
    pick(fan, end, end - 2)
    expect(alone).to_be_visible()
    alone.get_by_role("button", name="Take Stalls, Row B, Seat 10 too").click()
    assert mine(fan) == [end - 2, end - 1, end]
    expect(alone).to_be_hidden()


# The seats of rows from left to right from which a step to the side leads anywhere but to the neighbour.
LEFT_THE_ROW = """(dx) => { const { model } = window.frontrow, wrong = [];
  for (let i = 0; i < model.n; i++) {
    const one = model.sections[model.section[i]], [from, to] = model.rowEnds(one, model.rowOf(i));
    if (one.area || to - from < 2) continue;
    const next = model.step(i, dx, 0), beside = i > from ? i - 1 : i + 1;
    const across = Math.abs(model.x[beside] - model.x[i]) < Math.abs(model.y[beside] - model.y[i]);
    if (!across && next >= 0 && (next < from || next >= to || Math.abs(next - i) !== 1)) wrong.push([i, next]);
  }
  return wrong; }"""


def test_arrow_keys_stay_in_the_row_until_its_end(profile: Any, site: Site) -> None:
    page = profile().new_page()
    enter(page, site)
    assert page.evaluate(LEFT_THE_ROW, 1) == []
    assert page.evaluate(LEFT_THE_ROW, -1) == []
    enter(page, site, ROWS_ID)
    page.locator("fr-seatmap").focus()
    page.evaluate("window.frontrow.map.view.options.focus = 15")
    for key, end in (("ArrowRight", 19), ("ArrowLeft", 10)):
        for _ in range(12):
            page.keyboard.press(key)
        assert page.evaluate("window.frontrow.map.view.options.focus") == end


def test_the_price_slider_is_there_only_where_prices_differ(profile: Any, site: Site) -> None:
    for event_id, differ in ((EVENT_ID, True), (ONE_PRICE_ID, False)):
        page = profile().new_page()
        enter(page, site, event_id)
        expect(page.locator("#list button").first).to_be_visible()
        expect(page.locator("#price")).to_be_visible(visible=differ)
        plain = profile(java_script_enabled=False).new_page()
        be_let_in(plain, site.url, event_id)
        plain.goto(f"{site.url}/events/{event_id}/seats")
        expect(plain.locator("#n-price")).to_be_visible(visible=differ)


def test_wheelchair_places_are_for_those_who_ask_and_not_counted_for_others(fan: Page, site: Site) -> None:
    enter(fan, site, ROWS_ID)
    states = "window.frontrow.model.state.filter((state) => state === 0).length"
    free = fan.evaluate(states)
    expect(fan.locator("#count-free")).to_have_text(f"{free - KEPT} seats free")
    pick(fan, 0)
    expect(fan.locator("#notes")).to_contain_text("kept for people who need step-free access")
    assert mine(fan) == []
    press(fan, "I need a step-free place")
    assert mine(fan) == [0]
    expect(fan.locator("#step-free")).to_be_checked()
    expect(fan.locator("#count-free")).to_have_text(f"{KEPT} seats free")


def test_show_the_whole_venue_fits_at_once(fan: Page, site: Site) -> None:
    enter(fan, site)
    fan.evaluate("window.frontrow.map.flyTo(2)")
    until(fan, "!window.frontrow.map.flying")
    press(fan, "Show the whole venue")
    until(fan, "!window.frontrow.map.flying")
    k, fits = fan.evaluate("(({ view }) => [view.camera.k, view.fit().k])(window.frontrow.map)")
    assert k == pytest.approx(fits)


def test_who_allows_seats_apart_is_not_advised_to_allow_them(fan: Page, site: Site) -> None:
    enter(fan, site, FEW_ID)
    fan.locator("#count").select_option("4")
    press(fan, "Find best available")
    expect(fan.locator("#notes")).to_contain_text("Try another price, fewer seats, or seats apart.")
    fan.locator("#apart").check()
    press(fan, "Find best available")
    expect(fan.locator("#notes")).to_contain_text("Try another price or fewer seats.")


def test_a_seat_of_the_basket_is_read_in_arabic_order(profile: Any, site: Site) -> None:
    """Section, row and seat follow each other from right to left, each number beside its own word."""
    page: Page = profile(locale="ar").new_page()
    enter(page, site)
    pick(page, page.evaluate("window.frontrow.model.sections[2].base + 5"))
    name = page.locator("#picked li").first
    assert page.evaluate("document.documentElement.dir") == "rtl"
    spots = name.evaluate(SPOTS)
    assert len(spots) >= 3, name.inner_text()
    assert spots == sorted(spots, reverse=True), name.inner_text()


def test_no_name_is_printed_over_another(fan: Page, site: Site) -> None:
    enter(fan, site)
    for section in (2, 5):
        fan.evaluate("(s) => window.frontrow.map.flyTo(s)", section)
        until(fan, "!window.frontrow.map.flying")
        boxes = fan.evaluate("window.frontrow.map.view.prints.boxes")
        assert boxes
        for number, (x0, y0, x1, y1) in enumerate(boxes):
            for a0, b0, a1, b1 in boxes[:number]:
                assert x1 <= a0 or x0 >= a1 or y1 <= b0 or y0 >= b1
