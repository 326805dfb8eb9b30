"""J16: a new gatekeeper signs in with a second factor, scans by camera, loses the network, decides alone,
conflicts with another gate, hands in, takes an admission back, and refuses what belongs elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.boxoffice.people.support import CHEAP
from tests.browser.gates import (
    CAMERA,
    TWO_ROUNDS,
    WAIT_MS,
    comes_online,
    film,
    goes_offline,
    inside,
    kept_offline,
    open_gate,
    patient,
    scan,
)
from tests.browser.staff import staff
from tests.browser.steps import until
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, read_codes, scan_picture
from tests.support.cable import Cable
from tests.support.chromium import launch

NEXT = re.compile("Go on|Continue")
EMAIL, PASSWORD = "dora@example.org", "the gate opens at seven"


@pytest.fixture(scope="module")
def stack_options() -> dict[str, Any]:
    return {"people": CHEAP}


@pytest.fixture
def phone(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """`phone(code)`: a phone whose camera looks at a ticket with this code."""
    opened: list[Browser] = []

    def hold(code: str) -> Page:
        film(tmp_path / "ticket.y4m", code)
        seen = f"--use-file-for-fake-video-capture={tmp_path / 'ticket.y4m'}"
        opened.append(launch(browser.browser_type, args=[*CAMERA, seen]))
        context = opened[-1].new_context(viewport={"width": 390, "height": 844}, permissions=["camera"])
        context.set_default_timeout(WAIT_MS)
        return context.new_page()

    yield hold
    for one in opened:
        one.close()


@pytest.fixture
def cable(stack: Stack) -> Iterator[Cable]:
    """Between the north gate and the shop."""
    with Cable(stack.site.port) as cable:
        yield cable


def test_the_gate_from_the_invitation_to_the_last_guest(
    stack: Stack, visitor: Visitor, phone: Any, cable: Cable, tmp_path: Path
) -> None:
    event = stack.put_on_sale("Midnight Sun", seats=6)
    stack.put_on_sale("Early Matinee", seats=2)
    ada, bob = visitor(), visitor()
    buy(ada, stack, "Midnight Sun", "ada@example.org", count=3)
    first, second, third = read_codes(ada, tmp_path)
    buy(bob, stack, "Early Matinee", "bob@example.org")
    (elsewhere,) = read_codes(bob, tmp_path)

    app = _becomes_a_member(stack, visitor, tmp_path)
    stack.let_pass(60)  # an authenticator's code is good once
    north = phone(first)
    patient(north)
    north.goto(f"{cable.url}/door")
    _signs_in(north, stack, app)
    north.get_by_role("link", name="Midnight Sun").click()
    north.get_by_label("Gate name").fill("North")
    north.get_by_role("button", name="Start scanning").click()

    # The camera reads the ticket that was bought on the page; the page can be installed.
    expect(north.locator("#verdict")).to_have_attribute("data-verdict", "ok")
    manifest = north.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((one) => one.json())")
    assert (manifest["start_url"], manifest["display"]) == ("/door", "standalone")
    kept_offline(north)
    until(north, "window.frontrow?.gate.sync.gate && window.frontrow.gate.sync.counts")
    scan(north, elsewhere, "wrong_event")
    expect(north.locator("#verdict")).to_contain_text("Early Matinee")
    assert inside(stack.site, event.id) == 1

    # No network: the gate decides alone, also after a reload; another gate lets the same ticket in meanwhile.
    goes_offline(north, cable)
    scan(north, second, "ok")
    scan(north, first, "duplicate")
    scan(north, elsewhere, "wrong_event")
    north.reload()
    expect(north.locator("#state")).to_contain_text("Offline since")
    until(north, "window.frontrow?.gate.sync.gate && window.frontrow.gate.measured.scans")
    expect(north.locator("#verdict")).to_have_attribute("data-verdict", "duplicate")  # the camera still sees the first
    scan(north, second, "duplicate")
    scan(north, third, "ok")
    expect(north.locator("#waiting")).to_have_text("Waiting to be sent: 2")
    south = visitor(390, 844)
    other_site = stack.add_server() if stack.form == "clustered" else stack.site
    staff(south, other_site, role="door")
    open_gate(south, other_site, "South", event.id)
    scan(south, second, "ok")
    assert inside(stack.site, event.id) == 2

    # The network is back: everything is handed in, and both gates are told who came in twice.
    comes_online(north, cable)
    expect(north.locator("#waiting")).to_be_hidden()
    assert inside(stack.site, event.id) == 3
    for gate in (north, south):
        gate.evaluate(TWO_ROUNDS)
        expect(gate.locator("#conflicts li")).to_have_count(1)
        expect(gate.locator("#conflicts")).to_contain_text("Admitted twice:")
        for name in ("North", "South"):
            expect(gate.locator("#conflicts")).to_contain_text(name)

    # A mistaken admission is taken back; the guest comes in again, once, at whichever gate.
    north.once("dialog", lambda dialog: dialog.accept())
    north.locator("#recent li").filter(has=north.get_by_role("button", name="Undo")).first.get_by_role("button").click()
    expect(north.locator("#recent")).to_contain_text("Undone")
    assert inside(stack.site, event.id) == 2
    scan(south, third, "ok")
    scan(north, third, "duplicate")
    expect(north.locator("#verdict")).to_contain_text("South")
    assert inside(stack.site, event.id) == 3
    assert stack.book(), "the tickets were paid for"
    assert sum(intent.refunded_minor for intent in stack.book()) == 0


def _becomes_a_member(stack: Stack, visitor: Visitor, tmp_path: Path) -> pyotp.TOTP:
    """The owner invites, the mail leads to a password and a second factor; the authenticator app."""
    owner = visitor()
    staff(owner, stack.site, role="owner")
    owner.goto(f"{stack.url}/organiser/team")
    owner.locator("form[action$='/invite'] #email").fill(EMAIL)
    owner.locator("form[action$='/invite'] input[name=role][value=door]").check()
    owner.get_by_role("button", name="Invite", exact=True).click()
    (link,) = [one for one in stack.mailbox.wait_for(EMAIL).links() if "/invitation#" in one]
    dora = visitor()
    dora.goto(link)
    dora.get_by_label("Name").fill("Dora Keeper")
    dora.get_by_label("New password").fill(PASSWORD)
    dora.get_by_role("button", name=NEXT).click()
    dora.wait_for_url("**/organiser/second-factor")
    app = pyotp.parse_uri(scan_picture(dora.locator(".enrol img"), tmp_path))
    assert isinstance(app, pyotp.TOTP)
    dora.locator("#code").fill(_code(app, stack))
    dora.get_by_role("button", name=NEXT).click()
    expect(dora.locator(".codes li")).not_to_have_count(0)
    return app


def _signs_in(page: Page, stack: Stack, app: pyotp.TOTP) -> None:
    """Password, then the code of the authenticator app; back to the gate."""
    page.get_by_label("Email", exact=True).fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name=NEXT).click()
    page.locator("#code").fill(_code(app, stack))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/door")


def _code(app: pyotp.TOTP, stack: Stack) -> str:
    """What the app shows at the shop's time."""
    return app.at(stack.platform.clock() // 1_000_000)
