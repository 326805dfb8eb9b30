"""The console in a real browser: from the printed link to a protected shop, and every page looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.looks import bring_axe, console_of, read_booking_view
from tests.web.room.console_session import EMAIL, PASSWORD, printed_secret
from tests.web.room.room_process import Served

OF_ROOM = ("", "/schedule", "/rules", "/page", "/connect", "/figures")
PAGES = ("", "people", "keys", "log", *(f"rooms/aurora{path}" for path in OF_ROOM))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    room = Served(tmp_path_factory.mktemp("console") / "room", capacity=100)
    yield room
    room.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    """A server that nobody has an account of."""
    room = Served(tmp_path / "room", capacity=100)
    yield room
    room.close()


def begin(page: Page, served: Served) -> None:
    """Become the owner by the printed link, with the keyboard alone."""
    page.goto(f"http://127.0.0.1:{served.port}/console/begin#{printed_secret(served)}")
    expect(page.locator("#linkbox")).to_be_hidden()  # the link filled itself in
    page.locator("#email").focus()
    for text in (EMAIL, "Ada", PASSWORD):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Rooms")


def signed_in(browser: Browser, served: Served, locale: str = "en-GB") -> Page:
    """A page of a browser that the owner has signed in with."""
    context = browser.new_context(locale=locale)
    bring_axe(context)
    given = {"email": EMAIL, "password": PASSWORD}
    address = f"http://127.0.0.1:{served.port}/console"
    if not context.request.post(f"{address}/sign-in", form=given).ok:
        link = {"link": printed_secret(served), "name": "Ada"}
        assert context.request.post(f"{address}/begin", form=given | link).ok
    return context.new_page()


def test_an_owner_comes_from_the_printed_link_to_a_room_that_people_see(browser: Browser, fresh: Served) -> None:
    context = browser.new_context()
    told = console_of(context)
    page = context.new_page()
    begin(page, fresh)
    page.fill("#name", "spring")
    page.fill("#title", "Spring sale")
    page.fill("#capacity", "5")
    page.click("text=Create the room")
    expect(page.locator(".done")).to_contain_text("Connect your shop")
    expect(page.locator("pre").first).to_contain_text("/v1/events/spring/room/pass")

    page.goto(f"http://127.0.0.1:{fresh.port}/console/rooms/spring/page")
    page.fill("#colour", "#0b6b45")
    page.fill("#text-en", "<script>alert(1)</script> Doors at eight.")
    page.locator("summary", has_text="Deutsch").click()
    page.fill("#title-de", "Frühlingsverkauf")
    page.click("main button:has-text('Save')")
    expect(page.locator(".done")).to_be_visible()

    visitor = browser.new_context(locale="de-DE").new_page()
    visitor.goto(f"http://127.0.0.1:{fresh.port}/v1/events/spring/room/")
    expect(visitor.locator("main > div p").first).to_have_text("Frühlingsverkauf")
    expect(visitor.locator(".own")).to_have_text("<script>alert(1)</script> Doors at eight.")
    expect(visitor.locator("#join button")).to_have_text("In die Warteschlange")
    visitor.context.close()
    context.close()
    assert not told, told


@pytest.mark.parametrize("path", PAGES)
def test_every_page_reads_well_in_both_schemes_and_at_every_width(browser: Browser, served: Served, path: str) -> None:
    page = signed_in(browser, served, "ar-EG" if path == "rooms/aurora/schedule" else "en-GB")
    page.goto(f"http://127.0.0.1:{served.port}/console/{path}")
    wrong = read_booking_view(page, path or "rooms")
    assert not wrong, "\n".join(wrong)
    page.context.close()


def test_the_way_in_reads_well_and_arabic_runs_from_the_right(browser: Browser, served: Served) -> None:
    page = browser.new_context(locale="ar-EG").new_page()
    page.goto(f"http://127.0.0.1:{served.port}/console/sign-in")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    wrong = read_booking_view(page, "sign-in")
    assert not wrong, "\n".join(wrong)
    page.context.close()


def test_a_room_is_run_while_its_figures_renew_themselves(browser: Browser, served: Served) -> None:
    page = signed_in(browser, served)
    page.goto(f"http://127.0.0.1:{served.port}/console/rooms/aurora")
    page.click("text=Pause: let nobody new in")
    expect(page.locator("#phase")).to_have_text("Paused")
    for _ in range(3):
        served.join()
    expect(page.locator("[data-now=waiting]")).to_have_text("3", timeout=15_000)
    page.click("text=Go on")
    expect(page.locator("[data-now=waiting]")).to_have_text("0", timeout=15_000)
    page.context.close()


def test_settings_that_few_change_are_folded_until_one_of_them_is_wrong(browser: Browser, served: Served) -> None:
    """Before: eleven numbers with the names of their settings stood open on the page from which a room is run."""
    page = signed_in(browser, served)
    page.goto(f"http://127.0.0.1:{served.port}/console/rooms/aurora")
    expect(page.locator("#f-capacity")).to_be_visible()
    window = page.locator("#f-window_size")
    expect(window).to_be_hidden()
    page.get_by_text("More settings").click()
    window.fill("0")
    window.evaluate("(one) => (one.form.noValidate = true)")  # as without scripts or with an older browser
    window.press("Enter")
    expect(page.locator("#problem")).to_be_visible()
    expect(window).to_be_visible()
    expect(window).to_have_attribute("aria-invalid", "true")
    page.context.close()


def test_who_is_signed_in_stands_on_the_line_of_signing_out(browser: Browser, served: Served) -> None:
    page = signed_in(browser, served)
    page.goto(f"http://127.0.0.1:{served.port}/console/")
    middles = page.evaluate(
        """() => [".top .who bdi", ".top nav form button"].map((one) => {
          const { top, height } = document.querySelector(one).getBoundingClientRect();
          return top + height / 2;
        })"""
    )
    assert abs(middles[0] - middles[1]) < 1.5, middles
    page.context.close()
