"""The pages are for everybody: right to left, without motion, with forced colours, and for people who listen."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.served import Site
from tests.browser.steps import EVENT_ID, choose, enter, settled, until
from tests.browser.tour import put_all


@pytest.fixture(scope="module")
def full_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("full"), put_all) as running:
        yield running


def test_arabic_reads_from_right_to_left_and_fits(profile: Any, full_site: Site) -> None:
    page = profile(390, 844, locale="ar").new_page()
    for path in ("/", f"/events/{EVENT_ID}", f"/v1/events/{EVENT_ID}/room/", "/sign-in"):
        page.goto(full_site.url + path)
        assert page.evaluate("document.documentElement.dir") == "rtl"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.goto(f"{full_site.url}/language/de?back=/tickets")
    expect(page.get_by_role("heading", name="Meine Tickets")).to_be_visible()


def test_who_wants_no_motion_gets_none_and_forced_colours_show_every_state(profile: Any, full_site: Site) -> None:
    page = profile(reduced_motion="reduce", forced_colors="active").new_page()
    enter(page, full_site)
    choose(page, 1)
    assert not page.evaluate("() => { window.frontrow.map.flyTo(2); return window.frontrow.map.flying; }"), "at once"
    chosen = page.locator("#grid [aria-selected=true]")
    free = page.locator("#grid [aria-disabled=false][aria-selected=false]").first
    paint = "(one) => getComputedStyle(one).backgroundColor"
    assert chosen.evaluate(paint) != free.evaluate(paint)


def test_the_hold_timer_is_announced_at_120_60_and_20_seconds(profile: Any, full_site: Site) -> None:
    page = profile().new_page()
    enter(page, full_site)
    choose(page, 1)
    page.locator("#go").click()
    page.wait_for_url("**/checkout/**")
    expect(page.get_by_role("button", name="I need more time")).to_be_hidden()
    page.evaluate(
        "() => { window.heard = []; const say = document.querySelector('#say');"
        " new MutationObserver(() => { const text = say.textContent; if (text) window.heard.push(text); })"
        ".observe(say, { childList: true, characterData: true, subtree: true }); }"
    )
    for left_s in (121, 120, 119, 61, 60, 59, 21, 20, 19):
        page.evaluate(
            "(left) => { const timer = document.querySelector('fr-timer');"
            " const skew = Number(document.documentElement.dataset.now) - performance.timeOrigin - performance.getEntriesByType('navigation')[0].responseStart;"  # noqa: E501
            " timer.setAttribute('until', new Date(Date.now() + skew + left * 1000 - 30).toISOString());"
            " timer.tick(); }",
            left_s,
        )
        settled(page)
    assert page.evaluate("window.heard") == [f"{left_s} seconds left on your seats." for left_s in (120, 60, 20)]
    expect(page.get_by_role("button", name="I need more time")).to_be_visible()
    page.reload()
    page.evaluate("document.querySelector('#extend').classList.remove('later')")
    before = page.locator("fr-timer").get_attribute("until")
    page.get_by_role("button", name="I need more time").click()
    until(page, "(old) => document.querySelector('fr-timer').getAttribute('until') > old", before)
