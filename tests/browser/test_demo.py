"""What the two demos print can be followed: the organiser's link, the live sale, a purchase without a wait, a wait."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pyotp
import pytest
from playwright.sync_api import Page, expect

from frontrow.web.site.demo_pages import TOUR
from tests.browser.steps import choose, get_tickets, pay, until
from tests.support.eventually import eventually_sync
from tests.web.api.support import room_keys

PASSWORD = "a sentence nobody guesses either"


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    """A demo of its own, and what it says to open, by name; ended as Ctrl-C does."""
    (folder / "frontrow-data" / "room").mkdir(parents=True, exist_ok=True)
    room_keys().save(folder / "frontrow-data" / "room")  # an RSA key takes a second
    command = [sys.executable, "-m", "frontrow.cli.main", *words]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=folder, env=plain, start_new_session=True, **pipes) as process:
        try:
            assert process.stdout is not None
            shown = list(itertools.takewhile(lambda line: not line.startswith("  mails"), process.stdout))
            ways = dict(re.findall(r"^  (.+?) +(https?://\S+)(?: .*)?$", "".join(shown), re.MULTILINE))
            assert ways, shown
            yield process, ways
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=60)


def become_organiser(page: Page, link: str) -> None:
    """Follow the link: name, password, second factor."""
    page.goto(link)
    page.locator("form[action='/invitation'] input[name=name]").fill("Olga")
    page.locator("form[action='/invitation'] input[type=password]").first.fill(PASSWORD)
    page.locator("form[action='/invitation'] button").click()
    page.wait_for_url("**/second-factor")
    page.locator("summary").first.click()
    secret = page.locator(".secret").inner_text().replace(" ", "")
    page.locator("input[name=code]").fill(pyotp.TOTP(secret).now())
    page.get_by_role("main").locator("form button").first.click()


def test_the_link_of_the_demo_makes_an_organiser_who_sees_the_crowd_wait(fan: Page, tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--seats", "2000", "--people", "60") as (process, ways):
        become_organiser(fan, ways["become the organiser"])
        fan.goto(ways["its live sale"])
        expect(fan.locator("[data-tier] th").first).to_have_text(re.compile("[A-Z]"))
        names = fan.locator("[data-tier] th").all_inner_texts()
        assert all(names), "every price tier has a name"
        expect(fan.locator("[data-tile=waiting]")).to_contain_text(re.compile("[1-9]"))
        os.killpg(process.pid, signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    waited = re.search(r"([\d,]+) of ([\d,]+) fans waited and were let in: .*; ([\d,]+) waited at the end", told)
    assert waited is not None, told
    let_in, joined, still_waiting = (int(one.replace(",", "")) for one in waited.groups())
    assert let_in > 0
    assert let_in + still_waiting <= joined, "everybody who joined is counted once"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with running(tmp_path_factory.mktemp("demo"), "serve", "--demo", "--port", "0") as (_, ways):
        yield ways


def buys_a_ticket(fan: Page, served: dict[str, str]) -> None:
    fan.goto(served["a fan's page"])
    get_tickets(fan)
    until(fan, "window.frontrow")
    choose(fan)
    fan.locator("#go").click()
    pay(fan)
    fan.wait_for_url("**/bookings/**")


def test_a_fan_of_the_example_event_buys_without_a_wait(fan: Page, served: dict[str, str]) -> None:
    buys_a_ticket(fan, served)


def look_again(fan: Page) -> bool:
    """Reload as a person would: everybody may have ten pages a second, and a refused one cannot stand in a frame."""
    fan.wait_for_timeout(500)
    fan.reload()
    return False


def test_the_demo_says_what_to_look_at_and_shows_its_mails(fan: Page, served: dict[str, str]) -> None:
    buys_a_ticket(fan, served)
    fan.goto(served["what to look at"])
    for name in ("Aurora: the one night", "Solstice: everybody wants in", "My tickets", "API"):
        expect(fan.get_by_role("main").get_by_role("link", name=name)).to_be_visible()
    tour = fan.locator(".tour a")
    expect(tour).to_have_count(len(TOUR))
    assert "Harbour Ground" in tour.nth(list(TOUR).index("evt_match")).inner_text()
    mail = fan.get_by_role("link", name=re.compile("Your tickets for Aurora")).first
    fan.get_by_role("link", name="Read the mail").click()
    eventually_sync(lambda: mail.is_visible() or look_again(fan), 60)
    mail.click()
    expect(fan.locator("iframe.mail")).to_be_visible()
    shown = fan.request.get(urljoin(fan.url, fan.locator("iframe.mail").get_attribute("src")))
    assert "Aurora: the one night" in shown.text()
    assert "; sandbox allow-popups" in shown.headers["content-security-policy"]
    with fan.expect_download() as download:
        fan.get_by_role("link", name=re.compile(r"\.pdf$")).click()
    assert Path(download.value.path()).read_bytes().startswith(b"%PDF")
    fan.locator("ul[aria-label=Links] a").first.click()
    fan.wait_for_url("**/bookings/**")


def test_every_kind_of_event_of_the_demo_shows_what_its_fans_do(fan: Page, served: dict[str, str]) -> None:
    home = served["what to look at"].removesuffix("/demo")
    buttons = {
        "evt_match": "Get tickets",
        "evt_late": "Get tickets",
        "evt_philharmonic": "Join the waitlist",
        "evt_night_garden": "Enter the waiting room",
    }
    for event_id, name in buttons.items():
        fan.goto(f"{home}/events/{event_id}")
        expect(fan.locator(".buy .act")).to_have_text(name)
    fan.goto(home)
    expect(fan.get_by_role("link", name="The Quick and the Slow")).to_contain_text("and 2 more dates")
    posters = {fan.request.get(f"{home}/events/evt_play_{number}/poster.png").body() for number in (1, 2, 3)}
    assert len(posters) == 1, "all dates of a show look alike"
    fan.goto(f"{home}/events/evt_late")
    expect(fan.locator(".buy h2")).to_have_text("700 standing places free")
    fan.goto(f"{home}/events/evt_play_1")
    expect(fan.locator(".days li")).to_have_count(2)
    fan.goto(f"{home}/events/evt_rehearsal")
    get_tickets(fan)
    until(fan, "window.frontrow")
    choose(fan)
    fan.locator("#go").click()
    expect(fan.locator("#email")).to_be_visible()
    expect(fan.locator("#card")).to_be_hidden()


def test_a_fan_of_the_busy_event_sees_the_line_move_and_gets_in(fan: Page, served: dict[str, str]) -> None:
    fan.goto(served["a waiting room"])
    fan.get_by_role("button", name="Get tickets").click()
    fan.wait_for_selector("#wait:not([hidden])")
    expect(fan.locator("#ahead")).to_have_text(re.compile(r"^[1-9]"))
    expect(fan.get_by_role("progressbar")).to_be_visible()
    expect(fan.get_by_text("The people before you are simulated.")).to_be_visible()
    before = int(fan.locator("#ahead").inner_text())
    until(fan, "(before) => parseInt(document.querySelector('#ahead').textContent) < before", before)
    fan.wait_for_url("**/seats", timeout=180_000)
