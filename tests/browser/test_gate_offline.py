"""B10: the gate without a network: it decides alone, hands in later, and conflicts are shown to both sides."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.gate.model.scans import Scan
from tests.browser.gates import (
    OTHER,
    SHOW,
    TOMORROW,
    TWO_ROUNDS,
    buy,
    comes_online,
    forged,
    goes_offline,
    inside,
    kept_offline,
    open_gate,
    patient,
    put_shows,
    refund,
    scan,
)
from tests.browser.served import Site
from tests.browser.staff import staff
from tests.browser.steps import until
from tests.support.cable import Cable


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("gate"), put_shows) as running:
        yield running


@pytest.fixture
def cable(site: Site) -> Iterator[Cable]:
    with Cable(site.port) as cable:
        yield cable


def test_b10_what_another_gate_took_back_may_come_in_here_without_a_network(gate_page: Page, site: Site) -> None:
    (ticket,) = buy(site)
    change = {"scan": "elsewhere", "ticket": ticket.id}

    async def let_in(platform: Platform) -> None:
        await platform.ledger.organiser.admit(Scan("elsewhere", SHOW, ticket.id, "South", platform.clock()))

    async def take_back(platform: Platform) -> None:
        noted = Change(Editor("somebody", "org"), "undo_scan", SHOW, platform.clock(), dict(change))
        assert await platform.ledger.organiser.undo_admission("elsewhere", ticket.id, noted)

    site.call(let_in)
    open_gate(gate_page, site)
    goes_offline(gate_page)
    scan(gate_page, ticket.code, "duplicate")
    expect(gate_page.locator("#verdict")).to_contain_text("gate South")
    gate_page.context.set_offline(False)
    expect(gate_page.locator("#state")).to_have_text("Online")
    site.call(take_back)
    gate_page.evaluate("window.frontrow.gate.sync._whole_ms = 0")
    gate_page.evaluate(TWO_ROUNDS)
    goes_offline(gate_page)
    scan(gate_page, ticket.code, "ok")


def test_b10_people_leave_and_come_back_with_and_without_a_network(gate_page: Page, site: Site) -> None:
    first, second = buy(site, 2, OTHER)
    open_gate(gate_page, site, event_id=OTHER)
    before = inside(site, OTHER)

    def way(name: str) -> None:
        gate_page.get_by_label(name, exact=True).check()

    scan(gate_page, first.code, "ok")
    way("Exit")
    scan(gate_page, first.code, "left")
    scan(gate_page, second.code, "not_inside")
    assert inside(site, OTHER) == before
    goes_offline(gate_page)
    way("Entry")
    scan(gate_page, first.code, "ok")  # left with a network, comes back without one
    expect(gate_page.locator("#verdict-detail")).to_have_text("Welcome back.")
    scan(gate_page, first.code, "duplicate")
    scan(gate_page, second.code, "ok")
    expect(gate_page.locator("#verdict-detail")).to_have_text("Adult")  # the bundle knows the ticket's type
    way("Exit")
    scan(gate_page, second.code, "left")
    scan(gate_page, second.code, "not_inside")
    way("Entry")
    scan(gate_page, second.code, "ok")
    expect(gate_page.locator("#waiting")).to_have_text("Waiting to be sent: 4")
    gate_page.context.set_offline(False)
    expect(gate_page.locator("#waiting")).to_be_hidden()
    gate_page.evaluate(TWO_ROUNDS)
    assert inside(site, OTHER) == before + 2
    expect(gate_page.locator("#conflicts li")).to_have_count(0)
    scan(gate_page, second.code, "duplicate")
    expect(gate_page.locator("#inside")).to_have_text(str(before + 2))
    way("Exit")
    _let_people_return(site, may=False)  # the organiser changes the rule during the show
    scan(gate_page, second.code, "unsure")
    expect(gate_page.locator("#verdict-detail")).to_have_text("People who leave this event cannot come back.")
    expect(gate_page.locator("#way")).to_be_hidden()
    scan(gate_page, second.code, "duplicate")
    _let_people_return(site, may=True)
    gate_page.evaluate(TWO_ROUNDS)
    goes_offline(gate_page)
    way("Exit")
    scan(gate_page, second.code, "left")


def test_b10_who_comes_back_offline_comes_after_the_exit_that_the_server_wrote_down(
    gate_page: Page, site: Site
) -> None:
    (ticket,) = buy(site, 1, OTHER)
    gate_page.add_init_script("{ const real = Date.now; Date.now = () => real() - 1200; }")  # within what is tolerated
    open_gate(gate_page, site, event_id=OTHER)
    before = inside(site, OTHER)
    scan(gate_page, ticket.code, "ok")
    gate_page.get_by_label("Exit", exact=True).check()
    scan(gate_page, ticket.code, "left")
    goes_offline(gate_page)
    gate_page.get_by_label("Entry", exact=True).check()
    scan(gate_page, ticket.code, "ok")
    gate_page.context.set_offline(False)
    expect(gate_page.locator("#waiting")).to_be_hidden()
    assert inside(site, OTHER) == before + 1


def _let_people_return(site: Site, *, may: bool) -> None:
    async def change(platform: Platform) -> None:
        event = await platform.ledger.catalogue.event(OTHER)
        assert event is not None
        await platform.ledger.catalogue.put_event(replace(event, reentry=may), platform.clock())

    site.call(change)


def test_b10_without_a_network_the_gate_decides_alone_and_hands_in_later(
    gate_page: Page, site: Site, cable: Cable
) -> None:
    tickets = buy(site, 4)
    refund(site, tickets[3])
    open_gate(gate_page, site, cable=cable)
    kept_offline(gate_page)
    before = inside(site)
    scan(gate_page, tickets[0].code, "ok")
    goes_offline(gate_page, cable)
    scan(gate_page, tickets[1].code, "ok")
    expect(gate_page.locator("#waiting")).to_have_text("Waiting to be sent: 1")
    for code, verdict in (
        (tickets[0].code, "duplicate"),
        (tickets[1].code, "duplicate"),
        (tickets[3].code, "revoked"),
        (forged(tickets[2].booking_id, tickets[2].seat_index), "forged"),
        (buy(site, 1, TOMORROW)[0].code, "wrong_day"),
        (tickets[2].id, "look_up"),  # found in the guest list; a person decides
    ):
        scan(gate_page, code, verdict)
    gate_page.reload()  # the service worker answers
    expect(gate_page.locator("#state")).to_contain_text("Offline since")
    until(gate_page, "window.frontrow?.gate.sync.gate")
    scan(gate_page, tickets[1].code, "duplicate")  # remembered
    scan(gate_page, tickets[2].code, "ok")
    expect(gate_page.locator("#waiting")).to_have_text("Waiting to be sent: 2")
    assert inside(site) == before + 1
    comes_online(gate_page, cable)
    expect(gate_page.locator("#waiting")).to_be_hidden()
    assert inside(site) == before + 3
    expect(gate_page.locator("#conflicts li")).to_have_count(0)


def test_b10_two_gates_offline_with_one_ticket_both_see_it_afterwards(profile: Any, site: Site) -> None:
    """East lets the person out and in again; a copy comes in at West. The event lets people come back."""
    (ticket,) = buy(site, 1, OTHER)
    gates: list[tuple[BrowserContext, Page]] = []
    for name in ("East", "West"):
        context = profile(390, 844)
        page = context.new_page()
        staff(page, site, role="door")
        open_gate(page, site, name, OTHER)
        gates.append((context, page))
    for _, page in gates:
        goes_offline(page)
        scan(page, ticket.code, "ok")
    east = gates[0][1]
    for name, verdict in (("Exit", "left"), ("Entry", "ok")):
        east.get_by_label(name, exact=True).check()
        scan(east, ticket.code, verdict)
    for context, page in gates:
        context.set_offline(False)
        expect(page.locator("#waiting")).to_be_hidden()
    for _, page in gates:
        page.evaluate(TWO_ROUNDS)
        expect(page.locator("#conflicts li")).to_have_count(1)
        expect(page.locator("#conflicts")).to_contain_text("Admitted twice:")
        for name in ("East", "West"):
            expect(page.locator("#conflicts")).to_contain_text(name)
    _, page = gates[0]
    page.get_by_role("button", name="Done").click()
    expect(page.locator("#conflicts li")).to_have_count(0)
    page.evaluate("window.frontrow.gate.sync._whole_ms = 0")  # the next round reads everything again
    page.evaluate(TWO_ROUNDS)
    expect(page.locator("#conflicts li")).to_have_count(0)


def test_b10_a_lost_answer_lets_nobody_in_twice_and_turns_nobody_away(gate_page: Page, site: Site) -> None:
    (ticket,) = buy(site)
    open_gate(gate_page, site)
    before = inside(site)

    def lose(route: Any) -> None:
        route.fetch()  # the server lets the ticket in; nobody hears of it
        route.abort("connectionreset")

    gate_page.route("**/scan", lose)
    scan(gate_page, ticket.code, "ok")
    gate_page.unroute("**/scan")
    gate_page.evaluate("window.frontrow.gate.sync.now()")
    expect(gate_page.locator("#waiting")).to_be_hidden()
    assert inside(site) == before + 1
    expect(gate_page.locator("#conflicts li")).to_have_count(0)
    found = site.call(lambda platform: platform.ledger.tickets.duplicate_scans(SHOW, 0, 1000))
    assert ticket.id not in {one.ticket_id for one in found}


def test_b10_what_the_server_has_not_heard_of_is_not_asked_again(gate_page: Page, site: Site) -> None:
    """A busy server answers 429, so the gate decides alone; the same ticket must not get the server's yes then."""
    (ticket,) = buy(site)
    open_gate(gate_page, site)
    gate_page.route("**/sync", lambda route: route.fulfill(status=429, json={}))
    gate_page.route("**/scan", lambda route: route.fulfill(status=429, json={}), times=1)
    scan(gate_page, ticket.code, "ok")
    scan(gate_page, ticket.code, "duplicate")
    scan(gate_page, ticket.id, "duplicate")
    gate_page.unroute("**/sync")
    gate_page.evaluate("window.frontrow.gate.sync.now()")
    expect(gate_page.locator("#waiting")).to_be_hidden()
    scan(gate_page, ticket.code, "duplicate")


def test_b10_who_is_signed_out_keeps_checking_and_is_told(gate_page: Page, site: Site) -> None:
    first, _ = buy(site, 2)
    open_gate(gate_page, site)
    gate_page.context.clear_cookies()
    scan(gate_page, first.code, "ok")
    expect(gate_page.locator("#state")).to_have_text("Signed out")
    expect(gate_page.locator("#waiting")).to_have_text("Waiting to be sent: 1")
    expect(gate_page.locator("#again").get_by_role("link", name="Sign in")).to_be_visible()


def test_b10_a_browser_without_ed25519_says_so_and_admits_nobody_by_itself(profile: Any, site: Site) -> None:
    (ticket,) = buy(site)
    context = profile(390, 844)
    context.add_init_script(
        "const real = crypto.subtle.importKey.bind(crypto.subtle);"
        "crypto.subtle.importKey = (form, key, how, ...rest) =>"
        " how.name === 'Ed25519' ? Promise.reject(new DOMException('no', 'NotSupportedError'))"
        " : real(form, key, how, ...rest)"
    )
    page = context.new_page()
    patient(page)
    staff(page, site, role="door")
    page.goto(f"{site.url}/door/{SHOW}")
    page.get_by_label("Gate name").fill("Old phone")
    page.get_by_role("button", name="Start scanning").click()
    expect(page.locator("#able")).to_be_visible()
    expect(page.locator("#state")).to_have_text("Online")
    goes_offline(page)
    scan(page, ticket.code, "unsure")
    context.set_offline(False)
    expect(page.locator("#state")).to_have_text("Online")
    scan(page, ticket.code, "ok")
