"""The look of the pages: pictures first, colours from the picture, tickets one can swipe, a search that follows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from frontrow.shared.colours import contrast
from tests.browser.looks import axe, bring_axe, console_of
from tests.browser.served import PATIENT_ROOM, Site, put_hall
from tests.browser.steps import EVENT_ID, be_let_in, hold_at_once, pay, settled, until
from tests.support.pictures import a_poster

RED, BLUE = "evt_red", "evt_blue"
DAY_US = 86_400_000_000
HEX_OF = """(name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(--${name})`;
  const parts = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
  probe.remove();
  return "#" + parts.map((one) => one.toString(16).padStart(2, "0")).join("");
}"""


@pytest.fixture(scope="module")
def season(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    async def put(platform: Platform) -> None:
        now_us = platform.clock()
        await put_hall(platform, starts_at_us=now_us + 3 * DAY_US)
        for event_id, colour in ((RED, "#c01818"), (BLUE, "#1840c0")):
            await put_hall(platform, id=event_id, name=f"The {event_id[4:]} show", starts_at_us=now_us + 90 * DAY_US)
            await platform.organiser.organise.put_picture(Editor("stf_1", "org_default"), event_id, a_poster(colour))
        await platform.box_office.openings.refresh()
        keys = WalletKeys("org_default", Wallet.APPLE, "pass.org.example", "A1B2C3D4E5", 0, "sealed", now_us)
        await platform.ledger.wallets.put(keys, Change(Editor("stf_1", "org_default"), "change_wallet", "", now_us))

    with Site(tmp_path_factory.mktemp("season"), put, room=PATIENT_ROOM) as running:
        yield running


def box(page: Page, selector: str) -> dict[str, float]:
    found: Any = page.locator(selector).first.bounding_box()
    assert found is not None, selector
    return dict(found)


def test_an_event_begins_with_its_picture_and_its_button_stays_in_view_on_a_phone(profile: Any, season: Site) -> None:
    page = profile(390, 844).new_page()
    page.goto(f"{season.url}/events/{EVENT_ID}")
    picture, title = box(page, ".show .pic"), box(page, "h1")
    assert abs(picture["width"] / picture["height"] - 16 / 9) < 0.02
    assert picture["width"] == 390
    assert picture["y"] < title["y"]
    expect(page.locator(".show .title .date b")).to_be_visible()
    map_link = page.get_by_role("link", name="Show on a map")
    expect(map_link).to_have_attribute("href", f"{MAPS}Small+Hall%2C+Vienna%2C+AT")
    button = page.get_by_role("button", name="Get tickets")
    expect(button).to_have_count(1)
    for at in ("0", "document.body.scrollHeight / 2"):
        page.evaluate(f"scrollTo(0, {at})")
        settled(page)
        expect(button).to_be_in_viewport(ratio=1)
        expect(page.locator(".stay .from")).to_contain_text("from €45")
    button.click()
    page.wait_for_url("**/seats")


MAPS = "https://www.openstreetmap.org/search?query="


def test_an_event_can_be_shared_without_scripts_by_mail_and_with_them_by_its_address(
    profile: Any, season: Site
) -> None:
    plain = profile(390, 844, java_script_enabled=False).new_page()
    plain.goto(f"{season.url}/events/{EVENT_ID}")
    assert str(plain.locator("a.share").get_attribute("href")).startswith("mailto:?subject=Aurora%20World%20Tour")
    context = profile(permissions=["clipboard-read", "clipboard-write"])
    context.add_init_script("delete Navigator.prototype.share")
    page = context.new_page()
    page.goto(f"{season.url}/events/{EVENT_ID}")
    page.get_by_role("link", name="Share").click()
    expect(page.get_by_role("link", name="Link copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{season.url}/events/{EVENT_ID}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_takes_its_colour_from_the_picture_and_it_can_be_read(profile: Any, season: Site, scheme: str) -> None:
    page = profile(color_scheme=scheme).new_page()
    found = {}
    for event_id in (RED, BLUE):
        page.goto(f"{season.url}/events/{event_id}")
        shades = {name: page.evaluate(HEX_OF, name) for name in ("brand", "brand-fill", "on-brand", "bg", "surface")}
        assert contrast(shades["brand"], shades["bg"]) >= 4.5
        assert contrast(shades["brand"], shades["surface"]) >= 4.5
        assert contrast(shades["on-brand"], shades["brand-fill"]) >= 4.5
        found[event_id] = shades["brand-fill"]
    red, blue = (tuple(int(found[one][at : at + 2], 16) for at in (1, 3, 5)) for one in (RED, BLUE))
    assert red[0] > 2 * red[2]
    assert blue[2] > 2 * blue[0]


def test_home_is_led_by_a_picture_and_grouped_by_date(fan: Page, season: Site) -> None:
    fan.goto(season.url)
    assert fan.locator("#found h2.when").all_inner_texts()[0] == "This week"
    expect(fan.locator("#found section")).to_have_count(2)
    first, others = box(fan, ".events .next .pic"), box(fan, "section:nth-of-type(2) .events .pic")
    assert first["width"] > 1.5 * others["width"]
    assert abs(first["width"] / first["height"] - 16 / 9) < 0.02


def test_typing_into_the_search_changes_the_list_at_once_and_loads_no_page(fan: Page, season: Site) -> None:
    fan.goto(season.url)
    fan.evaluate("window.stayed = true")
    fan.get_by_label("Artist, team, venue or city").press_sequentially("blue", delay=20)
    expect(fan.locator("#found .events > li:visible")).to_have_count(1)
    fan.wait_for_url("**/?q=blue")
    expect(fan.locator("#say")).to_have_text("1 event found")
    assert fan.evaluate("window.stayed")
    expect(fan.get_by_label("Artist, team, venue or city")).to_be_focused()
    fan.get_by_label("Artist, team, venue or city").fill("nothing is called so")
    expect(fan.get_by_text("No events match.")).to_be_visible()
    expect(fan.locator(".nothing svg .lit")).to_be_visible()  # an empty state is drawn


def test_nobody_who_pays_is_left_without_a_welcome_and_tickets_to_swipe(profile: Any, season: Site) -> None:
    context = profile(390, 844, has_touch=True)
    bring_axe(context)
    told = console_of(context)
    page = context.new_page()
    be_let_in(page, season.url, EVENT_ID)
    page.goto(f"{season.url}/checkout/{hold_at_once(page, season.url, EVENT_ID, 3)}")
    pay(page)
    expect(page.get_by_role("heading", name="You’re going!", level=1)).to_be_visible()
    wallet, calendar = page.get_by_role("link", name="Apple Wallet").first, page.get_by_role("link", name="calendar")
    assert wallet.bounding_box()["y"] < calendar.bounding_box()["y"]  # type: ignore[index]
    expect(page.get_by_role("link", name="Share")).to_be_visible()
    number = page.url.rpartition("/")[2][-8:]
    expect(page.locator(".ticket .code").first).to_have_text(number)
    tickets = page.locator("#gate")
    assert tickets.evaluate("(one) => one.scrollWidth > one.clientWidth")  # one beside the other
    page.get_by_role("link", name="Show full screen").click()
    until(page, "document.activeElement.classList.contains('leave')")
    assert box(page, "#gate") == {"x": 0, "y": 0, "width": 390, "height": 844}
    assert page.locator("#gate > li").first.bounding_box()["width"] == 390  # type: ignore[index]
    expect(page.locator(".ticket .qr img").first).to_be_in_viewport(ratio=1)
    tickets.evaluate("(one) => one.scrollTo({ left: 390, behavior: 'instant' })")
    expect(page.locator(".ticket .qr img").nth(1)).to_be_in_viewport(ratio=1)
    expect(page.locator(".ticket .qr img").first).not_to_be_in_viewport()
    assert axe(page, []) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="You’re going!")).to_be_in_viewport()
    assert told == []


def test_full_screen_tickets_need_no_scripts_and_show_the_whole_code_on_a_low_phone(profile: Any, season: Site) -> None:
    context = profile(390, 844)
    page = context.new_page()
    be_let_in(page, season.url, EVENT_ID)
    page.goto(f"{season.url}/checkout/{hold_at_once(page, season.url, EVENT_ID)}")
    pay(page)
    page.wait_for_url("**/bookings/**")
    plain = profile(390, 600, java_script_enabled=False)
    plain.add_cookies(context.cookies())
    quiet = plain.new_page()
    quiet.goto(page.url)
    quiet.get_by_role("link", name="Show full screen").click()
    assert box(quiet, "#gate") == {"x": 0, "y": 0, "width": 390, "height": 600}
    expect(quiet.locator(".ticket .qr img")).to_be_in_viewport(ratio=1)
    quiet.get_by_role("link", name="Close").click()
    expect(quiet.get_by_role("link", name="Close")).not_to_be_visible()


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "pt", "ja", "ar"])
def test_the_header_has_one_line_on_a_phone_in_every_language(profile: Any, season: Site, language: str) -> None:
    for width in (320, 390):
        page = profile(width, 700, locale=language).new_page()
        page.goto(season.url)
        tops = {round(one.bounding_box()["y"]) for one in page.locator(".top nav a").all()}
        assert len(tops) == 1, f"{language} at {width}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_first_visit_has_the_same_fonts_as_the_second(fan: Page, season: Site) -> None:
    fan.goto(f"{season.url}/events/{EVENT_ID}")
    expect(fan.locator("link[rel=preload][as=font]")).to_have_count(2)
    ready = "document.fonts.ready.then(() => [...document.fonts].filter((one) => one.status === 'loaded').length)"
    assert fan.evaluate(ready) >= 2
    widths = []
    for _ in range(2):
        fan.evaluate("document.fonts.ready")
        widths.append(fan.evaluate("document.querySelector('h1').getBoundingClientRect().width"))
        fan.reload()
    assert widths[0] == widths[1]


FALLBACKS = ("Arial Bold", "Liberation Sans Bold", "Arimo Bold", "Roboto Bold", "DejaVu Sans Bold")  # of tokens.css


def test_nothing_jumps_when_the_fonts_come_late(profile: Any, season: Site, not_checked: Callable[[str], None]) -> None:
    """Before: where neither Arial nor Liberation is installed, a title had two lines until its font came."""
    loads = "names.map((one) => new FontFace('x', `local('${one}')`).load())"
    has = profile().new_page().evaluate(f"names => Promise.any({loads}).then(() => 1, () => 0)", list(FALLBACKS))
    if not has:  # as on a machine without any font, where nobody reads a page
        not_checked(f"what jumps when fonts come late (none of {', '.join(FALLBACKS)} is installed)")
        return
    heights = []
    for late in (False, True):
        page = profile().new_page()
        page.set_viewport_size({"width": 390, "height": 844})
        if late:
            page.route("**/*.woff2", lambda route: route.abort())
        page.goto(season.url)
        page.evaluate("document.fonts.ready")
        heights.append([round(box(page, part)["height"]) for part in ("h1", ".hero", ".top")])
    assert heights[0] == pytest.approx(heights[1], abs=2)


def test_the_checkout_is_read_and_tabbed_from_the_start_of_the_line(fan: Page, season: Site) -> None:
    be_let_in(fan, season.url, EVENT_ID)
    fan.goto(f"{season.url}/checkout/{hold_at_once(fan, season.url, EVENT_ID)}")
    summary, form = box(fan, ".summary"), box(fan, "#pay")
    assert summary["x"] + summary["width"] <= form["x"]
    assert fan.evaluate(
        "document.querySelector('.summary').compareDocumentPosition(document.querySelector('#pay')) & 4"
    )  # the summary comes first in the document too


def test_nothing_moves_for_those_who_asked_for_rest(profile: Any, season: Site) -> None:
    page = profile(reduced_motion="reduce").new_page()
    be_let_in(page, season.url, EVENT_ID)
    page.goto(f"{season.url}/checkout/{hold_at_once(page, season.url, EVENT_ID)}")
    pay(page)
    page.wait_for_selector(".ticket")
    assert page.evaluate("document.getAnimations().length") == 0
