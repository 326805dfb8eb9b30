"""A sale that is hotter than its shop: by default the room asks for a proof of work, and who has no scripts joins."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.settings.room import RoomSettings
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import enter_shop

PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def stack_options() -> dict[str, Any]:
    return {"room": RoomSettings(capacity=1, window_size=100, interval_s=0.05)}


def joins(page: Page, stack: Stack, event_name: str) -> None:
    page.goto(stack.event_url(event_name))
    page.get_by_role("button", name="Get tickets").click()
    page.wait_for_url("**/room/")
    page.get_by_role("button", name="Join the queue").click()
    expect(page.get_by_role("heading", name="You’re in the queue")).to_be_visible(timeout=PATIENCE_MS)


def test_the_first_walks_in_and_those_behind_prove_to_be_people(stack: Stack, visitor: Visitor) -> None:
    event = stack.put_on_sale("Hot", seats=6)
    ada, bob, cleo = visitor(), visitor(), visitor(java_script_enabled=False)
    challenges: list[str] = []
    for page in (ada, bob):
        page.on("request", lambda sent: challenges.append(sent.url) if sent.url.endswith("/challenge") else None)
    enter_shop(ada, stack, "Hot")
    assert challenges == [], "nobody waits, so nobody is asked"
    joins(bob, stack, "Hot")
    assert len(challenges) == 1
    refused = cleo.request.post(f"{stack.url}/v1/events/{event.id}/room/join", data={})
    assert refused.json()["code"] == "human_check_failed"
    joins(cleo, stack, "Hot")
    expect(cleo.locator("#no")).to_have_text("3")


def test_in_quiet_hours_a_browser_without_scripts_walks_in(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Quiet", seats=6)
    ada = visitor(java_script_enabled=False)
    ada.goto(stack.event_url("Quiet"))
    ada.get_by_role("button", name="Get tickets").click()
    ada.wait_for_url("**/seats")
