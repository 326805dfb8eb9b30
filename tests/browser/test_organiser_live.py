"""The live sale in a browser (B13, B19): figures move while a fan buys, levers say who is affected, it recovers."""

import itertools
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from playwright.sync_api import Page, expect

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.sales_figures import EventFigures, Forecast
from frontrow.core.clock import US_PER_S
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, choose, enter, pay, until
from tests.browser.tour import instead

LIVE = f"/organiser/events/{EVENT_ID}/live"
SLOW_MS = 60_000
DAY_US = 86_400 * US_PER_S
ODD_LANGUAGE = (
    "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true })"
)


# two hours of frames, one per second; how old each point is that was kept
HOURS_OF_FRAMES = """() => {
  const { charts } = window.live, first = charts.points.at(-1).at_s;
  for (let s = 1; s <= 7200; s++) charts.push({ ...charts.points.at(-1), at_s: first + s });
  return charts.points.map((one) => first + 7200 - one.at_s);
}"""
SPANNING = """(minutes) => window.live.charts.plots.length === 4 &&
  window.live.charts.plots.every(({ plot }) => plot.scales.x.max - plot.scales.x.min === minutes * 60)"""
JUDGED = """([now, rate]) => {
  document.querySelector("#rate").value = rate;
  window.live.levers.show(now, false);
  return document.querySelector("#eta").textContent;
}"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of its own: this file pauses the sale and stops the server."""
    with Site(tmp_path_factory.mktemp("live"), put_hall) as running:
        yield running


def watching(profile: Any, site: Site, role: str = "owner", **more: Any) -> Page:
    """A member of the team in front of the live sale, with a frame on the page."""
    page: Page = profile(**more).new_page()
    staff(page, site, role)
    page.goto(site.url + LIVE)
    expect(page.locator("#link")).to_have_text("Live", timeout=SLOW_MS)
    return page


def test_b13_the_figures_move_while_a_fan_buys_and_a_reload_keeps_the_history(profile: Any, stage: Site) -> None:
    stage.call(lambda platform: platform.organiser.history.record_points())  # the first point, whenever the job begins
    page = watching(profile, stage)
    until(page, "window.live.charts.points.length > 1")
    sold = page.locator("[data-below=share]")
    expect(sold).to_have_text("0 of 1,500 seats, 0 held")
    expect(page.locator("#forecast")).to_be_hidden()  # nobody can know yet
    fan: Page = profile(width=390, height=844).new_page()
    enter(fan, stage)
    choose(fan, 2)
    fan.locator("#go").click()
    expect(sold).to_have_text("0 of 1,500 seats, 2 held", timeout=SLOW_MS)
    pay(fan)
    fan.wait_for_url("**/bookings/**")
    expect(sold).to_have_text("2 of 1,500 seats, 0 held", timeout=SLOW_MS)
    expect(page.locator("[data-tile=revenue]")).to_contain_text("€", timeout=SLOW_MS)
    expect(page.locator("#mix [data-cell=sold]").filter(has_text=re.compile("^2 of"))).to_have_count(1, timeout=SLOW_MS)
    expect(page.locator("[data-tile=payments]")).to_be_hidden()
    page.get_by_role("heading", name="System health").click()
    expect(page.locator("[data-tile=payments]")).to_have_text("100%", timeout=SLOW_MS)
    expect(page.locator("[data-tile=ticket]")).not_to_have_text("–", timeout=SLOW_MS)
    assert page.locator("#c-times canvas").bounding_box()["width"] > 100  # type: ignore[index]  # drawn when it is opened
    expect(page.locator(".heat path[data-full='1']")).to_have_count(1, timeout=SLOW_MS)
    page.locator(".heat path[data-full='1']").click()
    expect(page.locator("[data-section=sold]")).to_have_text("2")
    expect(page.locator(".heat path[data-on]")).to_have_count(1)
    first = page.evaluate("window.live.charts.points[0].at_s")
    page.reload()
    until(page, "window.live?.charts.points.length > 0")
    assert page.evaluate("window.live.charts.points[0].at_s") == first
    expect(sold).to_have_text("2 of 1,500 seats, 0 held")


def at_the_hall(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / US_PER_S, ZoneInfo("Europe/Vienna"))


def test_times_are_the_venues_no_tick_repeats_and_the_forecast_says_how_sure_it_is(profile: Any, stage: Site) -> None:
    count = stage.platform.organiser.figures.of
    at_us = [stage.platform.clock() + 40 * DAY_US + minutes * 60 * US_PER_S for minutes in (5, 1, 9)]
    about, first, last = (f"{at.day} {at:%b, %H:%M}" for at in map(at_the_hall, at_us))

    async def foresee(event: Event) -> EventFigures:
        return msgspec.structs.replace(await count(event), forecast=Forecast(*at_us))

    with instead(stage.platform.organiser.figures, "of", foresee):
        page = watching(profile, stage, timezone_id="America/New_York")
        line = page.locator("#forecast")
        expect(line).to_have_text(f"Sold out about {about} at this pace (between {first} and {last})", timeout=SLOW_MS)
    expect(line).to_be_hidden(timeout=SLOW_MS)
    charts = page.locator("script[type=module]").get_attribute("src").replace("live.js", "charts.js")  # type: ignore[union-attr]
    ticks = f"""import("{charts}").then(({{ clockAt, tickLabels }}) =>
        [clockAt("Asia/Tokyo").format(0), tickLabels([0, 0.25, 0.5]), tickLabels([1000, 1050])])"""
    assert page.evaluate(ticks) == ["09:00", ["0", "0.25", "0.5"], ["1k", "1.05k"]]


def test_w6_pausing_says_who_is_affected_and_fans_see_it(profile: Any, stage: Site) -> None:
    page = watching(profile, stage)
    fan: Page = profile(width=390, height=844).new_page()
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog", name="Pause the sale?")
    expect(dialog.locator("[data-count=waiting]")).to_have_text("0")
    dialog.get_by_label("Everything: nobody can choose seats either").check()
    dialog.get_by_role("button", name="Pause now").click()
    expect(page.locator("#phase")).to_have_text("Sale paused", timeout=SLOW_MS)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_hidden()
    fan.goto(f"{stage.url}/events/{EVENT_ID}")
    expect(fan.get_by_role("heading", name="Paused for a moment")).to_be_visible()
    fan.goto(f"{stage.url}/v1/events/{EVENT_ID}/room/")
    fan.get_by_role("button", name="Join the queue").click()
    expect(fan.locator("#why")).to_have_text("The queue is paused. Nobody loses their place.", timeout=SLOW_MS)
    expect(page.locator("[data-tile=waiting]")).to_have_text("1", timeout=SLOW_MS)
    _set(page, "Message to the queue", "Shown to everyone who is waiting", "Back at noon", "Show message")
    expect(fan.locator("#words")).to_have_text("Back at noon", timeout=SLOW_MS)
    page.get_by_role("button", name="Resume", exact=True).click()
    dialog = page.get_by_role("dialog", name="Resume the sale?")
    expect(dialog.locator("[data-count=waiting]")).to_have_text("1")
    dialog.get_by_role("button", name="Resume now").click()
    expect(page.locator("#phase")).to_have_text("Selling", timeout=SLOW_MS)
    fan.wait_for_url("**/seats", timeout=SLOW_MS)


def test_w6_rate_and_capacity_are_set_from_the_page_and_noted(profile: Any, stage: Site) -> None:
    page = watching(profile, stage, width=390, height=844)
    _set(page, "Rate", "People per second, at most", "77", "Set the rate")
    expect(page.locator("[data-below=admitted]")).to_have_text("0 per second now, at most 77", timeout=SLOW_MS)
    _set(page, "Capacity", "People at once, at most", "500", "Set the capacity")

    async def room(platform: Any) -> tuple[int, int]:
        config = platform.room.service.control.view(EVENT_ID).state.config
        return config.rate_per_s, config.capacity

    assert stage.call(room) == (77, 500)
    page.reload()
    expect(page.locator("#acts")).to_contain_text("Waiting room adjusted")


def _set(page: Page, lever: str, label: str, value: str, button: str) -> None:
    page.get_by_role("button", name=lever, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(label).fill(value)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_have_count(0)


def test_the_activity_says_what_changed_from_what_to_what_at_once(profile: Any, stage: Site) -> None:
    page, other = watching(profile, stage), watching(profile, stage)
    _set(page, "Rate", "People per second, at most", "31", "Set the rate")
    _set(page, "Rate", "People per second, at most", "64", "Set the rate")
    newest = page.locator("#acts li").first
    expect(newest).to_contain_text("Waiting room adjusted", timeout=SLOW_MS)
    expect(newest.locator(".detail")).to_have_text("People per second, at most: from 31 to 64", timeout=SLOW_MS)
    expect(other.locator("#acts .detail").first).to_have_text(
        "People per second, at most: from 31 to 64", timeout=SLOW_MS
    )
    expect(other.locator("[data-below=admitted]")).to_have_text("0 per second now, at most 64", timeout=SLOW_MS)


def test_the_charts_show_five_fifteen_or_sixty_minutes(profile: Any, stage: Site) -> None:
    page = watching(profile, stage)
    until(page, "window.live.charts.points.length > 1")
    until(page, SPANNING, 15)
    for minutes in (60, 5):
        page.get_by_role("radio", name=f"{minutes} min", exact=True).check()
        until(page, SPANNING, minutes)


def test_an_hour_of_frames_is_kept_whole_whatever_is_shown(profile: Any, stage: Site) -> None:
    """Every second of the last five minutes, every fifth of the hour before; the page may stay open all day."""
    page = watching(profile, stage)
    until(page, "window.live.charts.points.length > 0")
    ages = page.evaluate(HOURS_OF_FRAMES)
    assert max(ages) <= 3_600 + 1_000, "older points go, a thousand at a time"
    assert [age for age in ages if age < 300] == list(range(299, -1, -1))
    assert min(older - newer for older, newer in itertools.pairwise(ages) if newer > 1_800) == 5


def test_no_axis_counts_parts_of_people(profile: Any, stage: Site) -> None:
    """Before: from 0 to 1 in steps of 0.2 people."""
    page = watching(profile, stage)
    until(page, "window.live.charts.points.length > 1")
    for chart in ("c-line", "c-seats"):
        ticks = page.evaluate(
            """(id) => window.live.charts.plots.map(({ plot }) => plot)
                .find(({ root }) => root.parentElement.id === id).axes[1]._splits""",
            chart,
        )
        assert ticks, chart
        assert all(tick == int(tick) for tick in ticks), chart


def test_the_rate_is_judged_in_one_sentence_that_knows_the_capacity(profile: Any, stage: Site) -> None:
    page = watching(profile, stage)
    inside = {"waiting": 90, "active": 0, "capacity": 500}
    for now, rate, sentence in (
        ({"waiting": 0}, 2, "Nobody is waiting now."),
        ({}, 3, "All 90 who wait would be inside in 30 s."),
        (
            {"active": 10, "capacity": 40},
            3,
            "30 of 90 who wait would be inside in 10 s. "
            "Then the capacity of 40 is reached, and people come in as others leave.",
        ),
        ({"active": 500}, 3, "The capacity of 500 is reached: people come in as others leave, whatever the rate."),
        ({}, 0, "At this rate nobody is let in."),
    ):
        assert page.evaluate(JUDGED, [inside | now, rate]) == sentence
    page.get_by_role("button", name="Rate", exact=True).click()
    expect(page.get_by_role("dialog").locator("#eta")).to_have_text("Nobody is waiting now.")


def test_a_lost_server_is_seen_and_the_figures_come_back_by_themselves(profile: Any, stage: Site) -> None:
    page = watching(profile, stage)
    stage.stop()
    note = page.locator("#old")
    expect(note).to_contain_text("These figures are from", timeout=SLOW_MS)
    expect(page.locator("#link")).to_have_text("No connection")
    stage.start()  # with an empty ledger, as tests' sites begin: the member signs in again, in another tab
    staff(page, stage)
    expect(note).to_be_hidden(timeout=SLOW_MS)
    expect(page.locator("#link")).to_have_text(re.compile("Live|Every few seconds"), timeout=SLOW_MS)
    expect(page.locator("[data-tile=share]")).not_to_have_text("–")


def test_a_member_of_the_gate_sees_none_of_it(profile: Any, stage: Site) -> None:
    page: Page = profile().new_page()
    staff(page, stage, "door")
    answer = page.goto(stage.url + LIVE)
    assert answer is not None
    assert answer.status == 403
    expect(page.get_by_role("heading", name="Your role does not allow this")).to_be_visible()
    page.goto(f"{stage.url}/organiser")
    expect(page.get_by_role("link", name="Audit log")).to_have_count(0)
    expect(page.get_by_role("link", name="Team")).to_have_count(0)


def test_a_browser_with_an_invalid_language_sees_the_charts_all_the_same(profile: Any, stage: Site) -> None:
    """Chromium without a locale says `en-US@posix`, which `Intl` refuses; the chart library asks for just that."""
    context = profile()
    context.add_init_script(ODD_LANGUAGE)
    page: Page = context.new_page()
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    staff(page, stage, "owner")
    page.goto(stage.url + LIVE)
    expect(page.locator("#c-line canvas")).to_have_count(1)
    expect(page.locator("#link")).to_have_text("Live", timeout=SLOW_MS)
    assert page.evaluate("navigator.language") == "en-GB"
    assert broken == []
