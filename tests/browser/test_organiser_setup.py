"""An organiser sets a sale up in a browser (B13): from nothing to an event that fans see; wrong input, rights."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import pyotp
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.events.pictures import LOGO_HEIGHT
from frontrow.boxoffice.people.model.people import Stage, SubjectKind
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.clock import US_PER_S
from tests.boxoffice.people.support import PASSWORD
from tests.browser.looks import bring_axe, read_booking_view
from tests.browser.served import Site, put_hall
from tests.browser.staff import session_cookie, staff
from tests.browser.steps import EVENT_ID, until
from tests.support.pictures import a_picture

SENTENCE = "a sentence nobody guesses either"
NEW_TEAM = "org_fresh"
TABLE = "section,row,seat,tier\nA,1,1,front\nA,1,2,front\nA,2,1,back\nA,2,2,back\n"
PATIENCE_MS = 45_000
MAPS_DRAWN = "() => [...document.querySelectorAll('fr-seatmap')].every((map) => map.querySelector('canvas'))"
expect.set_options(timeout=PATIENCE_MS)
IDS = (
    "",
    "/details",
    "/venue",
    "/prices",
    "/sale",
    "/room",
    "/seats",
    "/preview",
    "/dates",
    "/options",
    "/codes",
    "/presale",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        await put_hall(platform)
        await put_hall(platform, id="evt_draft", name="Late Night Comedy", status=EventStatus.DRAFT)

    with Site(tmp_path_factory.mktemp("office"), put) as running:
        yield running


@pytest.fixture
def staff_page(profile: Any) -> Page:
    context = profile()
    context.set_default_timeout(PATIENCE_MS)
    page: Page = context.new_page()
    return page


def go_on(page: Page, name: str, url: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_url(url)


def test_b13_from_an_empty_organiser_to_an_event_on_sale_that_a_fan_sees(
    staff_page: Page, site: Site, profile: Any
) -> None:
    staff(staff_page, site, "manager", NEW_TEAM)
    staff_page.goto(f"{site.url}/organiser")
    expect(staff_page.get_by_role("heading", name="Put your first event on sale")).to_be_visible()
    staff_page.get_by_role("main").get_by_role("link", name="New event").click()
    staff_page.get_by_label("Name of the event").fill("Aurora in the Park")
    staff_page.get_by_label("Description").fill("Northern lights, with trees.")
    staff_page.get_by_label("The show starts").fill("2031-06-01T20:00")
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    staff_page.get_by_label("Name of the venue").fill("City Park")
    staff_page.get_by_label("Time zone").fill("Europe/Vienna")
    go_on(staff_page, "Save draft and continue", "**/prices?done=draft")
    for number, price in enumerate(("90", "60,50", "30")):
        staff_page.locator(f"#price{number}").fill(price)
    staff_page.locator("#fee0").fill("Service")
    staff_page.locator("#percent0").fill("2.5")
    go_on(staff_page, "Save and continue", "**/options?done=saved")
    go_on(staff_page, "Save and continue", "**/sale?done=saved")
    staff_page.get_by_label("The sale opens").fill("2020-01-01T10:00")
    staff_page.get_by_label("Tickets per person").fill("4")
    go_on(staff_page, "Save and continue", "**/room?done=saved")
    go_on(staff_page, "Save and continue", "**/seats?done=saved")
    staff_page.get_by_label("Seats that are not sold").fill("Stalls-A\nCircle-B-2…5")
    go_on(staff_page, "Save and continue", "**/preview?done=saved")
    framed = staff_page.frame_locator("iframe.preview")
    expect(framed.get_by_role("heading", name="Aurora in the Park")).to_be_visible()
    expect(framed.get_by_text("€62.01")).to_be_visible()
    event_id = staff_page.url.split("/")[5]
    fan = profile().new_page()
    assert fan.goto(f"{site.url}/events/{event_id}").status == 404, "a draft is nobody else's business"
    go_on(staff_page, "Publish now", "**?done=published")
    fan.goto(f"{site.url}/events/{event_id}")
    expect(fan.get_by_role("heading", name="Aurora in the Park")).to_be_visible()
    expect(fan.get_by_role("button", name="Get tickets")).to_be_visible()
    expect(fan.get_by_text("€62.01")).to_be_visible()
    expect(fan.get_by_text("Up to 4 tickets per person.")).to_be_visible()
    in_frame = staff_page.goto(f"{site.url}/organiser/events/{event_id}/preview/page")
    assert in_frame is not None
    shown = staff_page.locator("main").inner_text()
    assert shown == fan.locator("main").inner_text(), "the preview is what fans see"


def test_wrong_input_is_said_at_its_field_and_nothing_typed_is_lost(staff_page: Page, site: Site) -> None:
    staff(staff_page, site)
    staff_page.goto(f"{site.url}/organiser/events/new")
    staff_page.get_by_label("Description").fill("kept")
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    expect(staff_page.locator("#name-err")).to_be_visible()
    expect(staff_page.locator("#starts-err")).to_have_text("Choose a date and a time.")
    expect(staff_page.get_by_label("Name of the event")).to_be_focused()
    expect(staff_page.get_by_label("Description")).to_have_value("kept")


def test_a_new_venue_without_a_name_is_refused_and_its_city_sets_the_time_zone(staff_page: Page, site: Site) -> None:
    staff(staff_page, site)
    staff_page.goto(f"{site.url}/organiser/events/new")
    staff_page.get_by_label("Name of the event").fill("Aurora")
    staff_page.get_by_label("The show starts").fill("2040-01-01T20:00")
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    staff_page.get_by_label("A new venue").check()
    staff_page.get_by_role("button", name="Save draft and continue").click()
    expect(staff_page.locator("#new_name-err")).to_be_visible()
    staff_page.get_by_label("City").fill("Vienna")
    expect(staff_page.get_by_label("Time zone")).to_have_value("Europe/Vienna")


def test_a_wrong_price_and_a_wrong_percentage_are_each_marked_and_kept(staff_page: Page, site: Site) -> None:
    staff(staff_page, site)
    staff_page.goto(f"{site.url}/organiser/events/evt_draft/prices")
    staff_page.locator("#price0").fill("a lot")
    staff_page.locator("#percent1").fill("101")
    staff_page.get_by_role("button", name="Save and continue").click()
    expect(staff_page.locator("#price0-err")).to_be_visible()
    expect(staff_page.locator("#percent1-err")).to_be_visible()
    expect(staff_page.locator("#price0")).to_have_value("a lot")


@pytest.mark.parametrize(
    ("step", "label", "typed", "field", "said"),
    [
        ("sale", "The sale ends", "2001-01-01T10:00", "sale_ends", ""),
        ("seats", "Seats that are not sold", "FA\nNowhere-1", "withheld", "Line 2 names no seats of this plan."),
    ],
)
def test_a_wrong_value_of_a_draft_is_said_at_its_field(
    staff_page: Page, site: Site, step: str, label: str, typed: str, field: str, said: str
) -> None:
    staff(staff_page, site)
    staff_page.goto(f"{site.url}/organiser/events/evt_draft/{step}")
    staff_page.get_by_label(label).fill(typed)
    staff_page.get_by_role("button", name="Save and continue").click()
    expect(staff_page.locator(f"#{field}-err")).to_be_visible()
    expect(staff_page.locator(f"#{field}-err")).to_contain_text(said)


def duplicated(staff_page: Page, site: Site) -> str:
    """The address of a copy of the event; its details are open."""
    staff(staff_page, site)
    staff_page.goto(f"{site.url}/organiser/events/{EVENT_ID}")
    staff_page.get_by_role("button", name="Duplicate").click()
    staff_page.wait_for_url("**/details?done=copied")
    return staff_page.url.partition("/details")[0]


def test_a_picture_is_uploaded_without_losing_what_is_typed(staff_page: Page, site: Site) -> None:
    duplicated(staff_page, site)
    staff_page.get_by_label("Line-up").fill("not saved yet")
    for name, body, shown in (("notes.txt", b"no picture", ".note.bad"), ("show.png", a_picture(), "#picture img.art")):
        staff_page.set_input_files("#picture-file", {"name": name, "mimeType": "image/png", "buffer": body})
        expect(staff_page.locator(shown)).to_be_visible()
    expect(staff_page.locator("#picture img.art")).to_have_js_property("naturalWidth", 900)
    expect(staff_page.get_by_label("Line-up")).to_have_value("not saved yet")
    staff_page.reload()
    expect(staff_page.get_by_label("Line-up")).to_have_value("")


def test_b13_a_cancelled_event_says_before_who_is_refunded_and_after_how_far_it_is(
    staff_page: Page, site: Site
) -> None:
    staff_page.goto(f"{duplicated(staff_page, site)}/preview")
    go_on(staff_page, "Publish now", "**?done=published")
    staff_page.get_by_role("link", name="Cancel the event …").click()
    dialog = staff_page.get_by_role("dialog")
    expect(dialog).to_contain_text("Bookings refunded in full: 0")
    dialog.get_by_role("link", name="Keep the event").click()
    expect(dialog).to_be_hidden()
    staff_page.get_by_role("link", name="Cancel the event …").click()
    dialog.get_by_role("button", name="Cancel the event").click()
    expect(staff_page.get_by_role("heading", name="Everyone is refunded automatically")).to_be_visible()
    site.ahead_s += 60  # the job goes on until no hold can be alive
    expect(staff_page.get_by_role("heading", name="Everyone has been refunded")).to_be_visible()
    expect(staff_page.get_by_text("Cancelled").first).to_be_visible()


def test_a_plan_that_cannot_be_read_is_named_by_line_and_column_and_a_good_one_is_looked_at_first(
    staff_page: Page, site: Site
) -> None:
    staff(staff_page, site, "owner", NEW_TEAM)
    staff_page.goto(f"{site.url}/organiser/venues/new")
    staff_page.get_by_label("Name of the venue").fill("Club")
    staff_page.get_by_label("A table (CSV)").check()
    staff_page.get_by_label("or paste it here").fill("section,row,seat\nA,1,1\nA,1,1\nB,,2\n")
    staff_page.get_by_role("button", name="Preview").click()
    expect(staff_page.locator("#text-err")).to_contain_text("Line 3: section, row and seat")
    expect(staff_page.locator("#text-err")).to_contain_text("Line 4: section, row and seat")
    staff_page.get_by_label("A pretix seating plan (JSON)").check()
    staff_page.get_by_label("or paste it here").fill('{"name": "x",\n "zones": [}')
    staff_page.get_by_role("button", name="Preview").click()
    expect(staff_page.locator("#text-err")).to_contain_text("Line 2, column 12")
    staff_page.locator("#file").set_input_files({"name": "club.csv", "mimeType": "text/csv", "buffer": TABLE.encode()})
    expect(staff_page.get_by_label("or paste it here")).to_have_value(TABLE)
    staff_page.get_by_role("button", name="Preview").click()
    expect(staff_page.get_by_role("heading", name="Check the plan")).to_be_visible()
    expect(staff_page.get_by_text("4 seats")).to_be_visible()
    go_on(staff_page, "Save venue", "**?done=made")
    expect(staff_page.get_by_role("heading", name="Club")).to_be_visible()


def left_of(page: Page, section: str) -> float:
    """Where a section of the venue that is looked at begins."""
    found: float = page.evaluate(
        """async (id) => {
        const { map } = await (await fetch(`${location.pathname}/map.json`)).json();
        return map.sections.find((one) => one[0] === id)[3];
    }""",
        section,
    )
    return found


def venue_url(site: Site, plan: PlanSource) -> str:
    """The page of a new venue of the new team."""

    async def made(platform: Platform) -> str:
        edit = VenueEdit(name="Barn", plan=plan)
        return (await platform.organiser.organise.venues.create(Editor("stf_x", NEW_TEAM), edit)).venue.id

    return f"{site.url}/organiser/venues/{site.call(made)}"


def test_the_editor_works_by_keyboard_alone(staff_page: Page, site: Site) -> None:
    staff(staff_page, site, "owner", NEW_TEAM)
    staff_page.goto(venue_url(site, PlanSource("theatre", 500)))
    summary = staff_page.locator("summary", has_text="Add a section with seats")
    summary.focus()
    staff_page.keyboard.press("Enter")
    for text in ("Par", "Parterre", "3", "7", "front"):
        staff_page.keyboard.press("Tab")
        staff_page.keyboard.type(text)
    staff_page.keyboard.press("Enter")
    staff_page.wait_for_url("**?section=Par&done=saved**")
    expect(staff_page.get_by_role("heading", name="Section Parterre")).to_be_visible()
    expect(staff_page.get_by_text("Rows: 3 · 21 seats")).to_be_visible()
    staff_page.get_by_label("Mark seats").focus()
    staff_page.keyboard.type("A-1…4")
    staff_page.keyboard.press("Tab")
    staff_page.keyboard.press("Tab")
    staff_page.keyboard.press("Enter")
    expect(staff_page.get_by_text("Step-free: 4")).to_be_visible()
    before = left_of(staff_page, "Par")
    staff_page.get_by_role("button", name="Right").focus()
    with staff_page.expect_navigation():
        staff_page.keyboard.press("Enter")
    assert left_of(staff_page, "Par") == before + 20
    staff_page.get_by_role("button", name="Remove the section").focus()
    staff_page.keyboard.press("Enter")
    expect(staff_page.get_by_role("link", name="Parterre")).to_have_count(0)


SPOT = """([s, r, i]) => {
  const { board, arranger } = window.frontrow, { points } = arranger.draft.sections[s].rows[r];
  const { left, top } = board.box.getBoundingClientRect(), { x, y } = board.spot(points[2 * i], points[2 * i + 1]);
  return [left + x, top + y];
}"""
GRIP = """(name) => {
  const { board } = window.frontrow, { left, top } = board.box.getBoundingClientRect();
  return [left + board.grips[name].x, top + board.grips[name].y];
}"""
FIRST_SEATS = "window.frontrow.arranger.draft.sections.map((one) => one.rows[0].points.slice(0, 2))"
BENDS = """() => {
  const { points } = window.frontrow.arranger.draft.sections[0].rows[0];
  return points[13] - points[1];
}"""
Spot = tuple[float, float]


def drag(page: Page, spot: Spot, right: float, down: float) -> None:
    page.mouse.move(*spot)
    page.mouse.down()
    page.mouse.move(spot[0] + right / 2, spot[1] + down / 2)
    page.mouse.move(spot[0] + right, spot[1] + down)
    page.mouse.up()


def drag_by_finger(page: Page, spot: Spot, right: float, down: float) -> None:
    fingers = page.context.new_cdp_session(page)
    for step in range(6):
        at = {"x": spot[0] + right * step / 5, "y": spot[1] + down * step / 5}
        kind = "touchMove" if step else "touchStart"
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def is_opened(page: Page) -> None:
    """Until the board can be used; it is in view."""
    page.wait_for_selector("#arrange[data-ready]")
    page.locator("#board").scroll_into_view_if_needed()


# What is written on canvases, and how much it is stretched.
NOTE_WRITTEN = """
window.written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  window.written.push([text, this.getTransform().a / devicePixelRatio]);
  return fillText.call(this, text, ...at);
};
"""


@pytest.fixture
def board(profile: Any, site: Site) -> Page:
    """The page on which seats are arranged, of a venue with the blocks A and B, each of two rows of twelve seats."""
    table = [
        f"{block},{row},{n},{40 + 10 * n},{y + 12 * row}"
        for block, y in (("A", 50), ("B", 150))
        for row in (1, 2)
        for n in range(1, 13)
    ]
    page: Page = profile(has_touch=True).new_page()
    page.set_default_timeout(PATIENCE_MS)
    staff(page, site, "owner", NEW_TEAM)
    page.goto(venue_url(site, PlanSource(csv="\n".join(["section,row,seat,x,y", *table]))) + "/arrange")
    is_opened(page)
    return page


def choose_row(page: Page, section: str, row: str) -> None:
    page.get_by_role("radio", name="Rows").check()
    page.get_by_role("button", name=section, exact=True).click()
    page.get_by_role("button", name=row).focus()


def test_a_block_is_dragged_by_mouse_on_the_grid_and_the_move_undone(board: Page) -> None:
    before = board.evaluate(FIRST_SEATS)
    drag(board, board.evaluate(SPOT, [1, 0, 3]), 37, 93)
    expect(board.get_by_role("heading", name="Section B")).to_be_visible()
    after = board.evaluate(FIRST_SEATS)
    assert after[0] == before[0], "nothing else moves"
    assert after[1][1] > before[1][1]
    assert all(value % 5 == 0 for value in after[1]), "on the grid"
    board.keyboard.press("Control+z")
    assert board.evaluate(FIRST_SEATS) == before
    board.keyboard.press("Control+Shift+z")
    assert board.evaluate(FIRST_SEATS) == after


def test_a_block_is_rotated_by_its_grip_and_a_frame_chooses_several(board: Page) -> None:
    drag(board, board.evaluate(SPOT, [1, 0, 3]), 37, 93)
    drag(board, board.evaluate(GRIP, "turn"), 60, 0)
    expect(board.locator("#say")).to_contain_text("Section B: rotated by")
    board.keyboard.press("Control+z")
    left, top = board.evaluate(SPOT, [0, 0, 0])
    drag(board, (left - 25, top - 25), 600, 600)
    expect(board.get_by_role("heading", name="2 items")).to_be_visible()


def test_names_on_the_board_are_written_in_the_size_they_are_shown_in(board: Page) -> None:
    """Before: a small font was stretched, and its letters stood apart: "S TAGE"."""
    board.add_init_script(NOTE_WRITTEN)
    board.reload()
    is_opened(board)
    written = board.evaluate("window.written")
    assert {"A", "B"} <= {text for text, _ in written}
    assert {scale for _, scale in written} == {1}


def test_a_row_is_moved_and_bent_by_keys(board: Page) -> None:
    before = board.evaluate(FIRST_SEATS)
    choose_row(board, "A", "Row 1")
    board.keyboard.press("Shift+ArrowRight")
    expect(board.locator("#say")).to_have_text("Row 1 of section A: now at 100, 62.")
    assert board.evaluate(FIRST_SEATS)[0] == [before[0][0] + 50, before[0][1]]
    board.keyboard.press("Alt+ArrowUp")
    expect(board.locator("#say")).to_have_text("Row 1 of section A: bent by -5°.")


def test_unsaved_changes_of_a_plan_are_kept_over_a_reload(board: Page) -> None:
    choose_row(board, "A", "Row 1")
    board.keyboard.press("Alt+ArrowUp")
    drag(board, board.evaluate(GRIP, "bend"), 0, -40)
    assert board.evaluate(BENDS) < -3, "the middle is above the ends"
    board.reload()
    is_opened(board)
    expect(board.get_by_text("Unsaved changes were restored.")).to_be_visible()
    assert board.evaluate(BENDS) < -3


def test_rows_that_overlap_are_marked_and_saved_once_they_are_apart(board: Page) -> None:
    board.get_by_role("radio", name="Rows").check()
    board.get_by_role("button", name="B", exact=True).click()
    board.get_by_role("button", name="Row 2").click()
    for _ in range(2):
        board.get_by_role("button", name="Up", exact=True).click()
    board.get_by_role("button", name="Save").click()
    expect(board.locator("#problem")).to_contain_text("B-1-1 and B-2-1 overlap, and 11 more of these rows")
    is_opened(board)
    assert board.evaluate("window.frontrow.board.wrong.size") == 24
    board.get_by_role("button", name="B", exact=True).click()
    board.get_by_role("button", name="Row 2").focus()
    for _ in range(2):
        board.keyboard.press("ArrowDown")
    choose_row(board, "A", "Row 1")
    board.keyboard.press("Shift+ArrowRight")
    shown = board.evaluate(FIRST_SEATS)
    go_on(board, "Save", "**?done=saved")
    is_opened(board)
    assert board.evaluate(FIRST_SEATS) == shown
    expect(board.get_by_text("Changes stay in this browser")).to_be_hidden()


def test_on_a_phone_a_finger_moves_and_bends_only_what_is_chosen(board: Page) -> None:
    board.set_viewport_size({"width": 390, "height": 844})
    board.goto(board.url)
    is_opened(board)
    before = board.evaluate(FIRST_SEATS)
    board.touchscreen.tap(*board.evaluate(SPOT, [0, 1, 6]))
    expect(board.get_by_role("heading", name="Section A")).to_be_visible()
    drag_by_finger(board, board.evaluate(SPOT, [0, 1, 6]), 30, 10)
    moved = board.evaluate(FIRST_SEATS)
    assert moved[0][0] > before[0][0]
    assert moved[1] == before[1]
    was = board.evaluate(BENDS)
    drag_by_finger(board, board.evaluate(GRIP, "bend"), 0, 40)
    assert board.evaluate(BENDS) > was + 2
    left, top = board.evaluate(SPOT, [1, 1, 0])
    scrolled = board.evaluate("scrollY")
    drag_by_finger(board, (left, top), 0, -120)
    until(board, f"() => scrollY > {scrolled}")
    assert board.evaluate(FIRST_SEATS)[1] == before[1], "a finger moves only what is selected"
    assert board.evaluate("document.documentElement.scrollWidth") <= 390


def test_codes_are_made_taken_along_and_imported(staff_page: Page, site: Site) -> None:
    staff(staff_page, site, "box_office")
    staff_page.goto(f"{site.url}/organiser/events/{EVENT_ID}/codes")
    staff_page.get_by_label("How many?").fill("3")
    go_on(staff_page, "Generate codes", "**?done=made")
    with staff_page.expect_download() as taken:
        staff_page.get_by_role("link", name="Download (CSV)").click()
    lines = taken.value.path().read_text().splitlines()
    assert lines[0] == "code,lane"
    assert len(lines) == 4
    assert all(re.fullmatch(r"VF-\w{7}-\w{13},general", line) for line in lines[1:])
    staff_page.get_by_label("or paste it here").fill("code,lane\nabcd,nowhere")
    staff_page.get_by_role("button", name="Import", exact=True).click()
    expect(staff_page.locator("#text-err")).to_contain_text("Line 2")
    staff_page.get_by_label("or paste it here").fill("code,lane\nabcd,general")
    go_on(staff_page, "Import", "**?done=imported")


def test_who_may_only_read_can_look_at_everything_and_change_nothing(staff_page: Page, site: Site) -> None:
    staff(staff_page, site, "read_only")
    staff_page.goto(f"{site.url}/organiser/events/evt_draft/prices")
    expect(staff_page.get_by_text("your role cannot change it")).to_be_visible()
    expect(staff_page.locator("#price0")).to_be_disabled()
    expect(staff_page.get_by_role("button", name="Save")).to_have_count(0)
    staff_page.goto(f"{site.url}/organiser/events/evt_draft/preview")
    expect(staff_page.get_by_role("button", name="Publish now")).to_have_count(0)
    staff_page.goto(f"{site.url}/organiser")
    expect(staff_page.get_by_role("link", name="New event")).to_have_count(0)
    answer = staff_page.goto(f"{site.url}/organiser/events/new")
    assert answer is not None
    assert answer.status == 403
    expect(staff_page.get_by_role("heading", name="Your role does not allow this")).to_be_visible()


def test_an_invited_member_sets_a_second_factor_up_signs_out_and_in_again(staff_page: Page, site: Site) -> None:
    async def invited(platform: Platform) -> str:
        await platform.people.team.create_organiser("Fresh", NEW_TEAM)
        return await platform.people.team.create_invitation_link(NEW_TEAM, "eve@example.org", Role.MANAGER)

    staff_page.goto(site.call(invited))
    staff_page.get_by_label("Name").fill("Eve")
    staff_page.get_by_label("New password").fill(SENTENCE)
    go_on(staff_page, "Continue", "**/second-factor")
    staff_page.get_by_text("I cannot scan it").click()
    secret = staff_page.locator(".secret").inner_text().replace(" ", "")
    staff_page.get_by_label("Code", exact=True).fill("000000")
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    expect(staff_page.get_by_role("alert")).to_contain_text("This code is wrong")
    assert staff_page.locator(".secret").text_content().replace(" ", "") == secret, "the same secret after a wrong code"  # type: ignore[union-attr]
    staff_page.get_by_label("Code", exact=True).fill(pyotp.TOTP(secret).at(site.platform.clock() // US_PER_S))
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    recovery = staff_page.locator(".codes code").first.inner_text()
    staff_page.get_by_role("link", name="I have saved them").click()
    staff_page.wait_for_url("**/organiser")
    go_on(staff_page, "Sign out", "**/organiser/sign-in")
    staff_page.goto(f"{site.url}/organiser/venues")
    staff_page.get_by_label("Email", exact=True).fill("eve@example.org")
    staff_page.get_by_label("Password").fill(PASSWORD)
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    expect(staff_page.get_by_role("alert")).to_contain_text("Wrong email address or password")
    staff_page.get_by_label("Password").fill(SENTENCE)
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    staff_page.get_by_label("Code").fill(recovery)
    go_on(staff_page, "Sign in", "**/organiser/venues")


async def half(staff_id: str, stage: Stage, platform: Platform) -> str:
    """A session that lacks its second factor."""
    return (await platform.people.sessions.start(SubjectKind.STAFF, staff_id, stage=stage)).secret


def every_page(context: BrowserContext, site: Site) -> Iterator[tuple[str, Page]]:
    """All pages of this file's topic, ready to be looked at."""
    page = context.new_page()
    for path in ("/organiser/sign-in", "/invitation#x"):
        page.goto(site.url + path)
        yield path, page
    half_signed_in = staff(page, site, "owner", "org_empty")
    for stage, path in ((Stage.TOTP, "/organiser/sign-in"), (Stage.ENROL, "/organiser/second-factor")):
        half_signed_in.session = site.call(functools.partial(half, half_signed_in.id, stage))
        page.context.add_cookies([session_cookie(site, half_signed_in)])  # type: ignore[list-item]
        page.goto(site.url + path)
        yield f"{path} {stage}", page
    staff(page, site, "owner", "org_empty")
    page.goto(f"{site.url}/organiser")
    yield "empty overview", page
    page.goto(f"{site.url}/organiser/events/new")
    page.get_by_role("button", name="Continue", exact=True).click()
    page.wait_for_selector(".field-err")
    yield "new event with errors", page
    page.get_by_label("Name of the event").fill("x")
    page.get_by_label("The show starts").fill("2031-06-01T20:00")
    page.get_by_role("button", name="Continue", exact=True).click()
    page.wait_for_selector("#new-venue")
    yield "new event, venue", page
    yield from _venues(page, site)
    staff(page, site)
    for path in ("/organiser", "/organiser?show=past", "/organiser/venues", "/organiser/brand"):
        page.goto(site.url + path)
        yield path, page
    for behind in IDS:
        page.goto(f"{site.url}/organiser/events/evt_draft{behind}")
        until(page, MAPS_DRAWN)
        yield f"draft{behind}", page
    page.goto(f"{site.url}/organiser/events/{EVENT_ID}/venue")
    yield "venue, on sale", page
    page.goto(f"{site.url}/organiser/events/{EVENT_ID}")
    page.get_by_role("link", name="Cancel the event …").click()
    yield "cancel dialog", page


def _venues(page: Page, site: Site) -> Iterator[tuple[str, Page]]:
    page.goto(f"{site.url}/organiser/venues/new")
    page.get_by_label("Name of the venue").fill("Club")
    page.get_by_role("button", name="Preview").click()
    page.wait_for_selector("fr-seatmap canvas")
    yield "new venue, looked at", page
    page.get_by_role("button", name="Save venue").click()
    page.get_by_role("link", name="Stalls").click()
    page.wait_for_selector("fr-seatmap canvas")
    yield "venue editor", page
    page.get_by_role("link", name="Arrange seats").click()
    page.wait_for_selector("#arrange[data-ready]")
    page.get_by_role("button", name="Circle", exact=True).click()
    page.keyboard.press("ArrowDown")
    yield "seats being arranged", page


def test_axe_finds_nothing_text_reflows_and_the_console_stays_clean(profile: Any, site: Site) -> None:
    context = profile(bypass_csp=True, reduced_motion="reduce")
    bring_axe(context)
    context.set_default_timeout(PATIENCE_MS)
    found, names = list[str](), list[str]()
    told: list[str] = []
    context.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    context.on("weberror", lambda error: told.append(str(error.error)))
    for name, page in every_page(context, site):
        names.append(name)
        found += read_booking_view(page, name)
    assert len(names) >= 20
    assert not found, f"{len(found)}\n" + "\n".join(found)
    assert not [text for text in told if "status of 4" not in text]  # the page's own 422


def test_the_policy_holds_on_the_pages_with_maps_and_frames(profile: Any, site: Site) -> None:
    context = profile()
    context.set_default_timeout(PATIENCE_MS)
    told: list[str] = []
    context.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    context.on("weberror", lambda error: told.append(str(error.error)))
    page = context.new_page()
    staff(page, site)
    for behind in ("/preview", "/sale", "/codes", ""):
        page.goto(f"{site.url}/organiser/events/{EVENT_ID}{behind}")
        until(page, MAPS_DRAWN)
    page.goto(f"{site.url}/organiser/events/{EVENT_ID}/preview")
    expect(page.locator("fr-seatmap canvas").first).to_be_visible()
    page.frame_locator("iframe.preview").get_by_role("button", name="Get tickets").click()
    expect(page.frame_locator("iframe.preview").get_by_role("button", name="Get tickets")).to_be_visible()
    choose_brand(page, site)
    assert not told


def choose_brand(page: Page, site: Site) -> None:
    """A colour is previewed in both schemes while it is typed; saved with a logo, fans see both."""
    page.goto(f"{site.url}/organiser/brand")
    light, dark = (page.locator(f".look.{scheme}") for scheme in ("light", "dark"))
    for own in ("dark", "light"):  # without a colour of one's own, in either scheme of the page
        page.emulate_media(color_scheme=own)  # type: ignore[arg-type]
        expect(light.locator(".btn")).to_have_css("background-color", "rgb(154, 23, 80)")
        expect(dark.locator(".btn")).to_have_css("background-color", "rgb(255, 143, 184)")
    page.locator("#colour").fill("#ffd400")
    for look in (light, dark):
        expect(look.locator(".btn")).to_have_css("background-color", "rgb(255, 212, 0)")
    expect(light.locator("xpath=..").locator(".adjusted")).to_be_visible()
    expect(dark.locator("xpath=..").locator(".adjusted")).to_be_hidden()
    expect(dark.locator("a")).to_have_css("color", "rgb(255, 212, 0)")
    expect(light.locator("a")).not_to_have_css("color", "rgb(255, 212, 0)")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**?done=saved")
    page.set_input_files("#picture-file", {"name": "logo.png", "mimeType": "image/png", "buffer": a_picture()})
    expect(page.get_by_alt_text("Your logo")).to_have_js_property("naturalHeight", LOGO_HEIGHT)
    page.goto(f"{site.url}/events/{EVENT_ID}")
    expect(page.locator(".logo img")).to_have_js_property("naturalHeight", LOGO_HEIGHT)
    expect(page.get_by_role("button", name="Get tickets")).to_have_css("background-color", "rgb(255, 212, 0)")
