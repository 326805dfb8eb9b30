"""Waiting (W9, B18): one number, an honest band, progress, getting ready, a call at one's turn; in any language."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from tests.browser.served import Site, put_hall
from tests.browser.steps import EVENT_ID

SPY = """window.calls = []; window.Notification = class { static permission = "granted"; static async requestPermission() { return "granted"; } constructor(text) { window.calls.push(text); sessionStorage.called = text; } };"""  # noqa: E501


@pytest.fixture
def held_site(tmp_path: Any) -> Iterator[Site]:
    """A room that lets nobody in until the test says so."""

    async def put(platform: Platform) -> None:
        await put_hall(platform)

    with Site(tmp_path, put) as running:
        running.call(lambda platform: platform.room.service.control.pause(EVENT_ID))
        yield running


def join(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/v1/events/{EVENT_ID}/room/")
    page.locator("#join button").click()
    page.wait_for_selector("#wait:not([hidden])")


def test_w9_who_waits_sees_a_number_why_and_what_to_do_and_is_called_and_taken_in(
    profile: Any, held_site: Site
) -> None:
    first, second = profile(), profile()
    second.add_init_script(SPY)
    pages = [first.new_page(), second.new_page()]
    for page in pages:
        join(page, held_site)
    page = pages[1]
    expect(page.locator("#ahead")).to_have_text("1")
    expect(page.locator("#no")).to_have_text("2")
    expect(page.locator("#why")).to_contain_text("paused")
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("link", name="Add name and email")).to_be_visible()
    page.reload()
    expect(page.locator("#no")).to_have_text("2")
    held_site.call(lambda platform: platform.room.service.control.resume(EVENT_ID))
    page.wait_for_url("**/seats")
    assert page.evaluate("sessionStorage.called") == "It’s your turn"


def test_the_room_waits_in_the_visitors_language_and_keeps_it_while_it_changes(profile: Any, held_site: Site) -> None:
    page = profile(locale="de").new_page()
    join(page, held_site)
    expect(page.get_by_role("heading", name="Sie sind in der Warteschlange")).to_be_visible()
    expect(page.locator("#why")).to_have_text("Die Warteschlange ist angehalten. Niemand verliert die eigene Position.")
    expect(page.locator("#eta")).to_have_text("Angehalten")
    page.get_by_role("link", name="Name und E-Mail eintragen").click()
    page.get_by_role("button", name="Speichern und zurück zur Warteschlange").click()
    expect(page.get_by_role("heading", name="Sie sind in der Warteschlange")).to_be_visible()


@pytest.mark.parametrize("height", [844, 1080])
def test_the_light_behind_the_room_fills_the_screen_once(profile: Any, held_site: Site, height: int) -> None:
    """Before: below a short page the light began anew, with an edge across the screen."""
    page = profile(390, height).new_page()
    page.goto(f"{held_site.url}/v1/events/{EVENT_ID}/room/")
    assert page.evaluate("document.documentElement.getBoundingClientRect().height") >= height
