"""docs/tutorial.md works word for word: its commands run, and every label it names is pressed or filled, in order."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.gates import patient, scan
from tests.browser.steps import choose, pay, reload_until, until
from tests.journeys.mailbox import folder_mailbox
from tests.journeys.steps import read_code
from tests.web.api.support import room_keys

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
PROGRAM = "frontrow-tutorial/bin/frontrow "
ADDRESS = "http://127.0.0.1:8000"
WAIT_MS = 60_000


class Reader:
    """Somebody who does what the page says, label by label."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.labels = iter(" ".join(label.split()) for label in re.findall(r"\*\*(.+?)\*\*", PAGE, re.S))

    def next_label(self) -> str:
        return next(self.labels)

    def fill(self, text: str) -> None:
        self.page.get_by_label(self.next_label(), exact=True).fill(text)

    def press(self, url: str = "") -> None:
        label = self.next_label()
        role = "link" if label in ("New event", "I have saved them") else "button"
        pressed = self.page.get_by_role("main").get_by_role(role, name=label, exact=True).first
        expect(pressed, self.page.url).to_be_enabled(timeout=WAIT_MS)
        pressed.click()
        if url:
            self.page.wait_for_url(url)


def words_of(start: str) -> list[str]:
    """The command of the page that begins so."""
    [line] = [line for line in COMMANDS if line.startswith(PROGRAM + start)]
    return shlex.split(line.removeprefix(PROGRAM))


def frontrow(folder: Path, start: str) -> str:
    command = [sys.executable, "-m", "frontrow.cli.main", *words_of(start)]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The server of the first step; only its port is another."""
    (tmp_path / "frontrow-data" / "room").mkdir(parents=True)
    room_keys().save(tmp_path / "frontrow-data" / "room")  # an RSA key takes a second
    command = [sys.executable, "-m", "frontrow.cli.main", *words_of("serve"), "--port", "0"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FRONTROW_")}
    plain["FRONTROW_SERVER_PER_PERSON"] = "1000/second"  # a machine reads and presses faster than a person
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=plain, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert "http://" in line, (tmp_path / "server.log").read_text()
        yield line.split()[-1]
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 0


def test_the_tutorial_from_the_first_command_to_the_last(url: str, tmp_path: Path, browser: Browser) -> None:
    context, private = browser.new_context(), browser.new_context()
    for one in (context, private):
        one.set_default_timeout(WAIT_MS)
    try:
        page = context.new_page()
        patient(page)
        reader = Reader(page)
        become_organiser(reader, url, tmp_path)
        event = make_event(reader)
        fan = private.new_page()
        reader.page = fan
        fan.goto(url)
        heading = fan.get_by_role("heading", name="Harvest Moon").first
        reload_until(fan, heading)
        heading.click()
        fan.wait_for_url(f"**/events/{event}")
        reload_until(fan, fan.get_by_role("button", name="Get tickets"))
        reader.press("**/seats")
        until(fan, "window.frontrow")
        choose(fan)
        fan.locator("#go").click()
        pay(fan)
        fan.wait_for_url("**/bookings/**")
        code = read_code(fan, tmp_path)
        page.goto(f"{url}/organiser/events/{event}/live")
        expect(page.locator("[data-tile=waiting]")).to_be_visible(timeout=WAIT_MS)
        reader.page = page
        page.goto(f"{url}/door/{event}")
        reader.fill("North")
        reader.press()
        until(page, "window.frontrow?.gate.sync.gate && window.frontrow.gate.sync.counts")
        scan(page, code, "ok")
        scan(page, code, "duplicate")
        assert list(reader.labels) == [], "every label of the page was used"
    finally:
        context.close()
        private.close()
    assert "bookings" in frontrow(tmp_path, "ledger status")
    assert frontrow(tmp_path, "ledger verify").startswith("whole")
    assert "FAIL" not in frontrow(tmp_path, "doctor")
    assert folder_mailbox(tmp_path / "frontrow-data" / "outbox").wait_for("ada@example.org", "Harvest Moon")


def become_organiser(reader: Reader, url: str, folder: Path) -> None:
    told = frontrow(folder, "organiser create")
    assert told.split()[-1].startswith(url), "the link leads to the server that runs here"
    reader.page.goto(told.split()[-1])
    reader.fill("Olga")
    reader.fill("a sentence nobody guesses either")
    reader.press("**/second-factor")
    reader.page.get_by_text(reader.next_label()).click()
    secret = reader.page.locator(".secret").inner_text().replace(" ", "")
    reader.fill(pyotp.TOTP(secret).now())
    reader.press()
    reader.press("**/organiser")


def make_event(reader: Reader) -> str:
    """The steps of the third section; the event's id."""
    page = reader.page
    reader.press()
    reader.fill("Harvest Moon")
    reader.fill("2031-06-01T20:00")
    reader.press()
    reader.fill("City Park")
    reader.press("**/prices?done=draft")
    for number in range(page.locator("input[id^=price]").count()):
        page.locator(f"#price{number}").fill("40")
    reader.press("**/options?done=saved")
    reader.press("**/sale?done=saved")
    reader.fill("2020-01-01T10:00")
    reader.press("**/room?done=saved")
    reader.press("**/seats?done=saved")
    reader.press("**/preview?done=saved")
    reader.press("**?done=published")
    return page.url.split("/")[5].partition("?")[0]
