"""J13: an organiser comes from nothing (an invitation by the command line, password, second factor), sets a sale up
with two ticket types, a discount code, a picture and a waiting room of its own, puts it on sale, and steers it while
fans come."""

import json
import subprocess
import sys

import pyotp
from playwright.sync_api import Page, expect

from frontrow.core.clock import US_PER_S
from tests.browser.looks import read_booking_view
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import hold_seats
from tests.support.pictures import a_picture

SENTENCE = "a sentence nobody guesses either"


def invite(stack: Stack, email: str) -> str:
    """The link that the command line prints for a new organiser's owner."""
    command = [
        sys.executable,
        "-m",
        "frontrow.cli",
        "organiser",
        "create",
        "Open Air",
        "--email",
        email,
        "--invite",
        "--json",
        "--ledger",
        stack.platform.settings.ledger_url,
        "--url",
        stack.url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return str(json.loads(done.stdout)["link"])


def go_on(page: Page, name: str, url: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_url(url)


def test_an_organiser_from_the_invitation_to_a_running_sale(stack: Stack, visitor: Visitor) -> None:
    staff_page = visitor()
    staff_page.goto(invite(stack, f"owner-{stack.form}@example.org"))
    staff_page.get_by_label("Name").fill("Olga")
    staff_page.get_by_label("New password").fill(SENTENCE)
    go_on(staff_page, "Continue", "**/second-factor")
    staff_page.get_by_text("I cannot scan it").click()
    secret = staff_page.locator(".secret").inner_text().replace(" ", "")
    code = pyotp.TOTP(secret).generate_otp(stack.platform.clock() // (30 * US_PER_S))
    staff_page.get_by_label("Code", exact=True).fill(code)
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    staff_page.get_by_role("link", name="I have saved them").click()
    staff_page.wait_for_url("**/organiser")

    # the event: what, where, prices, sale
    staff_page.get_by_role("main").get_by_role("link", name="New event").click()
    staff_page.get_by_label("Name of the event").fill("Harvest Moon")
    staff_page.get_by_label("The show starts").fill("2031-06-01T20:00")
    staff_page.get_by_role("button", name="Continue", exact=True).click()
    staff_page.get_by_label("Name of the venue").fill("City Park")
    go_on(staff_page, "Save draft and continue", "**/prices?done=draft")
    for number in range(staff_page.locator("input[id^=price]").count()):
        staff_page.locator(f"#price{number}").fill("40")
    go_on(staff_page, "Save and continue", "**/options?done=saved")
    staff_page.get_by_role("button", name="Another ticket type").click()
    types = [staff_page.get_by_role("group", name=f"Ticket type {number}") for number in (1, 2)]
    for group, name in zip(types, ("Adult", "Child"), strict=True):
        group.get_by_label("Name").fill(name)
    types[1].get_by_label("Percent of the price").fill("50")
    code = staff_page.get_by_role("group", name="Code 1", exact=True)
    code.get_by_label("Code", exact=True).fill("EARLY-10")
    code.get_by_label("Percent", exact=True).fill("10")
    go_on(staff_page, "Save and continue", "**/sale?done=saved")
    staff_page.get_by_label("The sale opens").fill("2020-01-01T10:00")
    go_on(staff_page, "Save and continue", "**/room?done=saved")

    # the waiting room of this event
    assert read_booking_view(staff_page, "waiting room") == []
    staff_page.get_by_label("Name of a lane for people with a code").fill("general")
    staff_page.get_by_role("button", name="Save and continue").click()
    expect(staff_page.get_by_role("alert")).to_be_visible()
    expect(staff_page.locator("#code_lane-err")).to_be_visible()
    staff_page.get_by_label("Name of a lane for people with a code").fill("fans")
    staff_page.get_by_label("Its share").fill("3")
    staff_page.get_by_label("Maximum number of people waiting").fill("500")
    staff_page.get_by_label("Tickets show a code that changes").check()
    go_on(staff_page, "Save and continue", "**/seats?done=saved")
    go_on(staff_page, "Save and continue", "**/preview?done=saved")
    staff_page.get_by_role("link", name="Choose a picture").click()
    staff_page.set_input_files("#picture-file", {"name": "show.png", "mimeType": "image/png", "buffer": a_picture()})
    expect(staff_page.locator("#picture img.art")).to_be_visible()
    staff_page.get_by_role("link", name="Preview").click()
    go_on(staff_page, "Publish now", "**?done=published")
    event_id = staff_page.url.split("/")[5].partition("?")[0]
    config = stack.platform.room.service.control.view(event_id).state.config
    assert [(lane.name, lane.weight) for lane in config.lanes] == [("general", 1), ("fans", 3)]
    assert config.depth_cap == 500
    staff_page.goto(f"{stack.url}/organiser/events/{event_id}/room")
    expect(staff_page.get_by_label("Tickets show a code that changes")).to_be_disabled()
    staff_page.get_by_label("Maximum number of people waiting").fill("400")
    go_on(staff_page, "Save", "**?done=saved")
    assert stack.platform.room.service.control.view(event_id).state.config.depth_cap == 400

    # the sale as it happens: the organiser pauses the line, says why, changes the rate, and goes on
    staff_page.goto(f"{stack.url}/organiser/events/{event_id}/live")
    staff_page.get_by_role("button", name="Pause", exact=True).click()
    staff_page.get_by_role("dialog").get_by_role("button", name="Pause now").click()
    expect(staff_page.get_by_role("button", name="Resume", exact=True)).to_be_visible()
    fan = visitor(390, 844)
    fan.goto(f"{stack.url}/v1/events/{event_id}/room/")
    fan.get_by_role("button", name="Join the queue").click()
    expect(fan.locator("#why")).to_contain_text("The queue is paused.")
    expect(staff_page.locator("[data-tile=waiting]")).to_have_text("1")
    _set(
        staff_page, "Message to the queue", "Shown to everyone who is waiting", "Doors open in a moment", "Show message"
    )
    expect(fan.locator("#words")).to_have_text("Doors open in a moment")
    _set(staff_page, "Rate", "People per second, at most", "77", "Set the rate")
    expect(staff_page.locator("[data-below=admitted]")).to_have_text("0 per second now, at most 77")
    staff_page.get_by_role("button", name="Resume", exact=True).click()
    staff_page.get_by_role("dialog").get_by_role("button", name="Resume now").click()
    fan.wait_for_url("**/seats")
    hold_seats(fan)
    fan.locator("#choice select").select_option("child")  # a choice is sent at once
    expect(fan.locator("#go")).to_have_text("Pay €20")
    fan.get_by_label("Discount code").fill("early-10")
    fan.get_by_role("button", name="Update the price").click()
    expect(fan.locator("#go")).to_have_text("Pay €18")  # half of 40, less a tenth
    fan.goto(f"{stack.url}/events/{event_id}")
    expect(fan.locator("img.art").first).to_be_visible()
    steered = stack.platform.room.service.control.view(event_id).state.config
    assert (steered.rate_per_s, steered.message, steered.depth_cap) == (77, "Doors open in a moment", 400)


def _set(page: Page, lever: str, label: str, value: str, button: str) -> None:
    page.get_by_role("button", name=lever, exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(label).fill(value)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_have_count(0)
