"""A developer opens /docs, enters an API key and tries an operation on the running server, with the keyboard alone."""

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.people import DEFAULT_ORGANISER
from frontrow.boxoffice.people.model.roles import Role
from tests.boxoffice.people.support import api_key, member
from tests.browser.looks import COLOURS, axe, bring_axe, console_of
from tests.browser.served import Site
from tests.browser.steps import settled

# What the viewer's own markup breaks, and it is not serious: its title is outside a landmark.
ALLOWED = ("region",)
DIALOG = ["button-name", "label", "label-content-name-mismatch", "color-contrast"]  # what its dialog could break


def test_an_operation_can_be_tried_with_an_api_key(profile: Any, site: Site) -> None:
    async def make_key(platform: Platform) -> str:
        return await api_key(platform, await member(platform, Role.OWNER, DEFAULT_ORGANISER, "ada"), ["team:read"])

    context = profile(color_scheme="light")
    bring_axe(context)
    told, foreign = console_of(context), list[str]()
    context.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(site.url) else None)
    context.add_cookies([{"name": "any", "value": "cookie", "url": site.url}])
    page = context.new_page()
    page.goto(f"{site.url}/docs#list_team")
    operation = page.locator(".opblock.is-open")
    expect(operation).to_contain_text("The members of the team and open invitations")
    expect(page.get_by_role("heading", name="Waiting room Join the line")).to_be_visible()

    page.get_by_role("button", name="Authorize").press("Enter")
    session = page.locator(".auth-container", has_text="an API key")
    session.get_by_role("textbox").fill(site.call(make_key))
    settled(page)
    assert not axe(page, DIALOG)
    session.get_by_role("textbox").press("Enter")
    session.get_by_role("button", name="Close").press("Enter")
    operation.get_by_role("button", name="Try it out").press("Enter")
    with page.expect_response("**/v1/organiser/team") as answered:
        operation.get_by_role("button", name="Execute").press("Enter")
    assert answered.value.status == 200
    assert "cookie" not in answered.value.request.all_headers(), "only what was typed is sent"
    shown = operation.locator(".live-responses-table")
    expect(shown).to_contain_text("200")
    expect(shown).to_contain_text(json.loads(answered.value.text())["members"][0]["email"])

    settled(page)  # the button comes back slowly
    assert not [one for one in axe(page, []) if not one.startswith(ALLOWED)]
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html.dark-mode")).to_be_attached()
    settled(page)
    assert not axe(page, COLOURS)
    assert told == []
    assert foreign == []


@pytest.mark.parametrize("name", ["script-src", "style-src"])
def test_the_viewer_needs_neither_inline_code_nor_eval(site: Site, profile: Any, name: str) -> None:
    answer = profile().request.get(f"{site.url}/docs")
    policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
    assert policy[name] == "'self'"
