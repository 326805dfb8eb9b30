"""A whole purchase (B2, B10, B18) by mouse, keyboard, on a small screen, without JavaScript; two for one seat."""

import re
from typing import Any

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.checkout import visit_keeper
from tests.browser.served import Site, put_hall
from tests.browser.steps import (
    EVENT_ID,
    GOOD_CODE,
    GOOD_EXPIRY,
    choose,
    enter,
    get_tickets,
    go_in_without_scripts,
    landed,
    pay,
    said,
    until,
)


def test_b18_a_purchase_by_mouse_from_the_list_of_events_to_the_ticket(fan: Page, site: Site, tmp_path: Any) -> None:
    fan.goto(site.url)
    fan.get_by_label("Artist, team, venue or city").fill("aurora")
    fan.get_by_role("button", name="Search").click()
    fan.get_by_role("heading", name="Aurora World Tour").first.click()
    expect(fan.get_by_role("heading", name="Prices")).to_be_visible()
    get_tickets(fan)
    until(fan, "window.frontrow")
    seat = fan.evaluate(
        "() => { const { map, model } = window.frontrow; map.flyTo(1);"
        " return model.state.findIndex((s, n) => s === 0 && model.section[n] === 1); }"
    )
    landed(fan)
    at = fan.evaluate(
        "(i) => { const { map, model } = window.frontrow, { camera } = map.view, box = map.getBoundingClientRect();"
        " return [box.left + model.x[i] * camera.k + camera.x, box.top + model.y[i] * camera.k + camera.y]; }",
        seat,
    )
    fan.mouse.click(*at)
    assert fan.evaluate("[...window.frontrow.model.mine]") == [seat]
    fan.get_by_role("button", name="Continue with 1 seat").click()
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    picture = fan.locator(".qr img")
    expect(picture).to_have_js_property("complete", True)
    (tmp_path / "qr.png").write_bytes(picture.screenshot())
    read = zxingcpp.read_barcode(Image.open(tmp_path / "qr.png"))
    assert read is not None, "the ticket's code can be scanned from the screen"
    for ending in ("tickets.pdf", "tickets.ics"):
        answer = fan.request.get(f"{fan.url}/{ending}")
        assert answer.status == 200
    fan.get_by_role("link", name="My tickets").click()
    expect(fan.get_by_role("heading", name="Aurora World Tour")).to_be_visible()


def test_b2_a_purchase_by_keyboard_only(fan: Page, site: Site) -> None:
    """Every seat announces section, row, seat, price and state."""

    def tab_to(selector: str, most: int = 60) -> None:
        for _ in range(most):
            fan.keyboard.press("Tab")
            if fan.evaluate("(s) => document.activeElement?.matches(s)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached by Tab")

    fan.goto(f"{site.url}/events/{EVENT_ID}")
    tab_to("#enter button")
    fan.keyboard.press("Enter")
    fan.wait_for_url("**/seats")
    until(fan, "window.frontrow")
    tab_to("fr-seatmap")
    fan.keyboard.press("ArrowDown")
    said(fan, "seats free")
    fan.keyboard.press("Enter")
    said(fan, "Row ")
    spoken = fan.locator("#say").inner_text()
    assert re.fullmatch(r".+, Row \w+, Seat \d+, €\d+, (free|taken|held by somebody).*", spoken), spoken
    landed(fan)
    fan.keyboard.press("ArrowRight")
    until(fan, "(before) => document.querySelector('#say').textContent !== before", spoken)
    fan.keyboard.press("Enter")
    until(fan, "window.frontrow.model.mine.size === 1")
    said(fan, "chosen by you")
    tab_to("#go")
    fan.keyboard.press("Enter")
    fan.wait_for_url("**/checkout/**")
    tab_to("#email")
    fan.keyboard.type("keys@example.org")
    for field, text in (("#card", "4242424242424242"), ("#expiry", GOOD_EXPIRY), ("#cvc", GOOD_CODE)):
        tab_to(field)
        fan.keyboard.type(text)
    tab_to("#go")
    fan.keyboard.press("Enter")
    fan.wait_for_url("**/bookings/**")


def test_the_grid_of_seats_is_one_stop_and_arrows_move_in_it(fan: Page, site: Site) -> None:
    enter(fan, site)
    fan.locator("#list button").first.click()
    expect(fan.locator("#grid [tabindex='0']")).to_have_count(1)
    fan.locator("#grid [tabindex='0']").focus()
    before = fan.evaluate("document.activeElement.dataset.seat")
    fan.keyboard.press("ArrowRight")
    after = fan.evaluate("document.activeElement.dataset.seat")
    assert int(after) == int(before) + 1
    label = fan.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.fullmatch(r".+, Row \w+, Seat \d+, €\d+, (free|taken|held by somebody).*", label)
    labels = fan.locator("#grid [data-seat]").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert all(re.match(r".+, Row \w+, Seat \d+, €\d+, \w+", one) for one in labels)


def test_a_purchase_on_a_small_screen_with_the_best_seats(profile: Any, site: Site) -> None:
    page = profile(390, 844, has_touch=True, is_mobile=True).new_page()
    enter(page, site)
    page.get_by_role("button", name="Find best available").tap()
    page.get_by_role("button", name="Continue with 2 seats").tap()
    pay(page)
    page.wait_for_url("**/bookings/**")
    expect(page.locator(".ticket")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_purchase_without_javascript_from_the_list(profile: Any, site: Site) -> None:
    page = profile(java_script_enabled=False).new_page()
    page.goto(f"{site.url}/events/{EVENT_ID}")
    get_tickets(page)
    assert not page.locator("#mapbox").is_visible(), "the map needs scripts; the list is there instead"
    page.get_by_role("link", name=re.compile("^Section")).first.click()
    free = page.locator("input[name=seat]:not([disabled])")
    label = free.first.get_attribute("aria-label")
    assert label is not None
    assert re.fullmatch(r".+, Row \w+, Seat \d+, €\d+, free.*", label)
    free.first.check()
    page.get_by_role("button", name="Hold these seats").click()
    pay(page, "4242424242424242")
    page.wait_for_url("**/bookings/**")
    expect(page.locator(".qr img")).to_have_count(1)


async def not_on_the_map_yet(platform: Platform, event_id: str, seat: str) -> None:
    """This server's map learns of a hold a moment after the claim store."""
    index = platform.box_office.sales.get(event_id).index_of[seat]
    platform.box_office.feeds[event_id].ring.states[index] = 0


def test_without_javascript_a_lost_seat_is_told_with_one_nearby(profile: Any, site: Site) -> None:
    event_id = "evt_lost_seat"  # of its own: what other tests bought may leave no seat nearby
    site.call(lambda platform: put_hall(platform, id=event_id, name="Aurora once more"))
    site.call(lambda platform: platform.box_office.openings.refresh())
    first, second = (profile(java_script_enabled=False).new_page() for _ in range(2))
    for page in (first, second):
        page.goto(f"{site.url}/v1/events/{event_id}/room/")
        go_in_without_scripts(page)
        page.goto(f"{site.url}/events/{event_id}/seats?section=101")
    wanted = first.locator("input[name=seat]:not([disabled])").nth(5).get_attribute("value")
    for page in (first, second):
        page.locator(f"input[value='{wanted}']").check()
    first.get_by_role("button", name="Hold these seats").click()
    first.wait_for_url("**/checkout/**")
    site.call(lambda platform: not_on_the_map_yet(platform, event_id, str(wanted)))
    second.get_by_role("button", name="Hold these seats").click()
    expect(second.get_by_role("alert")).to_contain_text("Someone was faster")
    instead = second.get_by_role("button", name=re.compile("instead"))
    for _ in range(5):  # the one nearby may be gone too; the page then names another
        with second.expect_navigation():
            instead.click()
        if "/checkout/" in second.url:
            break
    second.wait_for_url("**/checkout/**")


def test_b2_two_browsers_want_one_seat_one_wins_the_other_sees_it_grey_and_gets_one_nearby(
    profile: Any, site: Site
) -> None:
    winner, loser = profile().new_page(), profile().new_page()
    for page in (winner, loser):
        enter(page, site)
    seat = winner.evaluate("window.frontrow.model.state.indexOf(0)")
    for page in (winner, loser):
        page.evaluate("(i) => window.frontrow.pick(i)", seat)
    loser.evaluate("window.frontrow.feed.stop()")  # the loser has not heard of it when both press
    winner.locator("#go").click()
    winner.wait_for_url("**/checkout/**")
    loser.locator("#go").click()
    expect(loser.locator("#notes")).to_contain_text("Someone was faster")
    assert loser.evaluate("(i) => window.frontrow.model.state[i]", seat) != 0
    loser.locator("#instead").click()
    (other,) = loser.evaluate("[...window.frontrow.model.mine]")
    assert other != seat
    far = loser.evaluate(
        "([a, b]) => { const { x, y } = window.frontrow.model; return Math.hypot(x[a] - x[b], y[a] - y[b]); }",
        [seat, other],
    )
    assert far < 60, "the alternative is near"
    loser.locator("#go").click()
    loser.wait_for_url("**/checkout/**")


def test_b2_a_seat_taken_by_somebody_turns_grey_for_everybody_and_leaves_the_basket(profile: Any, site: Site) -> None:
    watching, buying = profile().new_page(), profile().new_page()
    for page in (watching, buying):
        enter(page, site)
    (seat,) = choose(watching)
    buying.evaluate("(i) => window.frontrow.pick(i)", seat)
    buying.locator("#go").click()
    buying.wait_for_url("**/checkout/**")
    until(watching, "(i) => window.frontrow.model.state[i] !== 0", seat)
    expect(watching.locator(f"[data-seat='{seat}']")).to_have_attribute("aria-disabled", "true")
    expect(watching.locator(f"[data-seat='{seat}']")).to_have_attribute("aria-label", re.compile("held by someone"))
    expect(watching.locator("#notes")).to_contain_text("Someone was faster")
    assert watching.evaluate("window.frontrow.model.mine.size") == 0


def test_who_buys_again_at_once_comes_in_anew_and_loses_nothing(
    fan: Page, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: for a second after a purchase, "Get tickets" led back into the visit that had bought. It ended while the
    fan was choosing, and the choice was lost."""
    monkeypatch.setattr(visit_keeper, "pause_after", lambda took_s: 3_600)  # it comes by too late
    with Site(tmp_path / "again", put_hall) as site:
        for _ in range(2):
            fan.goto(f"{site.url}/events/{EVENT_ID}")
            get_tickets(fan)
            until(fan, "window.frontrow")
            choose(fan, 2)
            fan.locator("#go").click()
            pay(fan)
            fan.wait_for_url("**/bookings/**")
