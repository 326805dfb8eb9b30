"""The live map heals (B2): lost, reordered, damaged changes, sleep, a restarted server, no stream: 0 seats differ."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.holds import ShopPass
from tests.browser.served import PATIENT_ROOM, Site, put_hall
from tests.browser.steps import EVENT_ID, differing_seats, enter, until

numbers = itertools.count()
CHANGES = 6


@pytest.fixture(scope="module")
def own_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that a test may restart."""
    with Site(tmp_path_factory.mktemp("live"), put_hall, room=PATIENT_ROOM) as running:
        yield running


@pytest.fixture(scope="module")
def let_in(browser: Browser, own_site: Site) -> Any:
    """What the browser of somebody who was let in keeps; waiting anew for each test would take most of its time."""
    context = browser.new_context()
    enter(context.new_page(), own_site)
    kept = context.storage_state()
    context.close()
    return kept


@pytest.fixture
def viewer(profile: Any, own_site: Site, let_in: Any) -> Page:
    page: Page = profile(storage_state=let_in).new_page()
    page.goto(f"{own_site.url}/events/{EVENT_ID}/seats")
    until(page, "window.frontrow")
    expect(page.locator("#mode")).to_have_text("Live")
    return page


async def take_some(platform: Platform) -> None:
    """Different people hold seats, one after the other, so that several frames leave."""
    ids = platform.box_office.sales.get(EVENT_ID).plan.seat_ids
    for _ in range(CHANGES):
        number, seq = next(numbers), platform.box_office.feeds[EVENT_ID].ring.seq
        visit = ShopPass(EVENT_ID, f"place:live{number}", platform.clock() + 600_000_000, f"pass{number}")
        await platform.box_office.holds.place(EVENT_ID, visit, [ids[400 + number]])
        await _next_frame(platform, seq)


async def _next_frame(platform: Platform, seq: int) -> None:
    """Wait until there is a frame after `seq`, which may have left before the hold was answered."""
    feed = platform.box_office.feeds[EVENT_ID]
    while feed.ring.seq == seq:
        await feed.woken()


def seen(page: Page, site: Site) -> int:
    """Change seats; the number of seats that differ once the page has caught up."""
    site.call(take_some)
    return differing_seats(page)


def test_a_map_follows_the_changes(viewer: Page, own_site: Site) -> None:
    before = viewer.evaluate("window.frontrow.model.seq")
    assert seen(viewer, own_site) == 0
    assert viewer.evaluate("window.frontrow.model.seq") >= before + CHANGES
    assert viewer.evaluate("window.frontrow.feed.resyncs") == 0, "by changes alone"


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("dropped", "let left = 2; feed.take = (line) => { if (left-- > 0) return; take(line); };"),
        (
            "reordered",
            "let kept = null; feed.take = (line) => { if (kept === null) { kept = line; return; }"
            " take(line); if (kept) { take(kept); kept = ''; } };",
        ),
        ("doubled", "feed.take = (line) => { take(line); take(line); };"),
        ("no base64", "let left = 1; feed.take = (line) => take(left-- > 0 ? line.slice(0, -3) + '*!' : line);"),
        (
            "cut off",
            "let left = 1; feed.take = (line) => { const [e, p, s] = line.split(' ');"
            " take(left-- > 0 ? `${e} ${p} ${s} ${btoa(String.fromCharCode(129))}` : line); };",
        ),
        (
            "outside the map",
            "let left = 1; feed.take = (line) => { const [e, p, s] = line.split(' ');"
            " take(left-- > 0 ? `${e} ${p} ${s} ${btoa(String.fromCharCode(255, 255, 255, 1))}` : line); };",
        ),
        ("of another epoch", "let left = 1; feed.take = (line) => take(left-- > 0 ? '7' + line : line);"),
        ("nonsense", "let left = 1; feed.take = (line) => take(left-- > 0 ? 'x y z' : line);"),
    ],
)
def test_changes_that_go_wrong_on_their_way_are_healed(viewer: Page, own_site: Site, what: str, code: str) -> None:
    viewer.evaluate(f"() => {{ const {{ feed }} = window.frontrow, take = feed.take.bind(feed); {code} }}")
    assert seen(viewer, own_site) == 0, what


def test_a_damaged_change_that_looks_good_is_found_by_comparing(viewer: Page, own_site: Site) -> None:
    """Nothing tells it from a real one; all states are compared now and then, and when the connection comes back."""
    viewer.evaluate("() => { const { model } = window.frontrow; for (let i = 0; i < 300; i++) model.state[i] = 2; }")
    viewer.evaluate("dispatchEvent(new Event('online'))")
    assert seen(viewer, own_site) == 0
    assert viewer.evaluate("window.frontrow.feed.resyncs") >= 1


def test_a_laptop_that_slept_starts_anew(viewer: Page, own_site: Site) -> None:
    viewer.evaluate(
        "() => { const { feed, model } = window.frontrow; feed.take = () => {}; window.take = feed.take;"
        " const real = Date.now.bind(Date); Date.now = () => real() + 3_600_000; }"
    )
    own_site.call(take_some)
    until(viewer, "window.frontrow.feed.resyncs >= 1")
    viewer.evaluate("() => { delete window.frontrow.feed.take; }")
    assert seen(viewer, own_site) == 0


def test_a_restarted_server_is_found_again_with_its_new_count(viewer: Page, own_site: Site) -> None:
    epoch = viewer.evaluate("window.frontrow.model.epoch")
    own_site.stop()
    own_site.start()
    until(viewer, "(old) => window.frontrow.model.epoch !== old", epoch)
    assert seen(viewer, own_site) == 0


def test_without_a_stream_the_map_polls_and_comes_back(profile: Any, own_site: Site) -> None:
    context = profile()
    context.route("**/seats/stream*", lambda route: route.abort())
    page = context.new_page()
    enter(page, own_site)
    expect(page.locator("#mode")).to_have_text("Slower updates")
    assert seen(page, own_site) == 0
    context.unroute("**/seats/stream*")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator("#mode")).to_have_text("Live")
    assert seen(page, own_site) == 0
