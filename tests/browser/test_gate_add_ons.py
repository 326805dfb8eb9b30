"""The gate hands out add-ons, says who comes, and finds people without a network; and the light of its camera."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.gate.model.redemptions import Redemption
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice
from frontrow.boxoffice.pricing.model.sale_options import AddOn
from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.core.clock import US_PER_S
from tests.browser.gates import CAMERA, WAIT_MS, goes_offline, inside, open_gate, scan
from tests.browser.looks import bring_axe, read_booking_view
from tests.browser.served import Site, put_hall
from tests.browser.staff import staff
from tests.support.chromium import launch
from tests.support.signed_tickets import signed_tickets

SHOW, NAMED = "evt_add_ons", "evt_named"  # gates may keep names of the second one
NEXT_SEAT = itertools.count()
LIGHT = """
MediaStreamTrack.prototype.getCapabilities = () => ({ torch: true });
window.lights = [];
MediaStreamTrack.prototype.applyConstraints = async function (how) {
  if (window.dark) throw new Error("no light");
  window.lights.push(how.advanced[0].torch);
};
"""


async def put_shows(platform: Platform) -> None:
    starts_us = platform.clock() + 3600 * US_PER_S
    times = {"starts_at_us": starts_us, "sale_ends_at_us": starts_us}
    add_ons = (AddOn("parking", "Parking", 800), AddOn("dinner", "Dinner", 20_000))
    for event_id, named in ((SHOW, False), (NAMED, True)):
        await put_hall(platform, id=event_id, name="Aurora", add_ons=add_ons, names_at_gates=named, **times)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("add-ons"), put_shows) as running:
        yield running


def buy(site: Site, event_id: str = SHOW, name: str = "Ada Lovelace", **add_ons: int) -> Ticket:
    """One seat with add-ons, bought by somebody with a name."""

    async def bought(platform: Platform) -> Ticket:
        box_office, fan = platform.box_office, platform.ids.new("fan")
        sale = box_office.sales.get(event_id)
        seat = sale.plan.seat_ids[next(NEXT_SEAT)]
        visit = ShopPass(event_id, fan, platform.clock() + 900 * US_PER_S)
        hold = await box_office.holds.place(event_id, visit, [seat])
        held = await platform.ledger.booking(hold.booking_id)
        assert held is not None
        await box_office.checkout.choose(held, BookingChoice({}, add_ons), sale.event, sale.plan)
        await platform.ledger.messages.keep_buyer(
            Contact(fan, "ada@example.org", name=name), event_id, platform.clock()
        )
        paid: Booking = (await box_office.checkout.pay(held.id, held.fence, "pm_card_visa")).booking
        (ticket,) = await signed_tickets(platform, paid.id)
        return ticket

    found: Ticket = site.call(bought)
    return found


def add_on(page: Page, name: str) -> Any:
    return page.locator("#verdict-add-ons li").filter(has_text=name)


def test_the_verdict_names_who_comes_and_their_add_ons_are_handed_out_once(gate_page: Page, site: Site) -> None:
    ticket = buy(site, parking=1, dinner=2)
    open_gate(gate_page, site, event_id=SHOW)
    scan(gate_page, ticket.code, "ok")
    expect(gate_page.locator("#verdict-name")).to_have_text("Ada Lovelace")
    expect(add_on(gate_page, "Parking")).to_contain_text("Parking · 1, not yet used")
    add_on(gate_page, "Parking").get_by_role("button", name="Hand out 1").click()
    expect(add_on(gate_page, "Parking")).to_contain_text("Parking · 1, used")
    expect(add_on(gate_page, "Parking").get_by_role("button", name="Hand out 1")).to_have_count(0)
    add_on(gate_page, "Dinner").get_by_role("button", name="Hand out 1").click()
    expect(add_on(gate_page, "Dinner")).to_contain_text("Dinner · 1 of 2 used")
    add_on(gate_page, "Dinner").get_by_role("button", name="Undo").click()
    expect(add_on(gate_page, "Dinner")).to_contain_text("Dinner · 2, not yet used")
    scan(gate_page, ticket.code, "duplicate")  # who comes back for the dinner shows the ticket again
    expect(add_on(gate_page, "Parking")).to_contain_text("Parking · 1, used")
    expect(add_on(gate_page, "Dinner")).to_contain_text("Dinner · 2, not yet used")
    fresh = buy(site)
    scan(gate_page, fresh.code, "ok")
    expect(gate_page.locator("#verdict-add-ons")).to_be_hidden()


def test_add_ons_are_on_the_ticket_page_and_in_its_refund(profile: Any, site: Site) -> None:
    """What was used is not offered for a refund, and the page says so."""
    ticket = buy(site, parking=1, dinner=1)
    page = profile().new_page()
    staff(page, site)

    async def use(platform: Platform) -> None:
        asked = Redemption("r-1", SHOW, ticket.booking_id, "parking", 1, "north", "stf_1", platform.clock())
        await platform.box_office.gates.redeem(asked)

    site.call(use)
    page.goto(f"{site.url}/organiser/events/{SHOW}/bookings/{ticket.booking_id}")
    expect(page.get_by_label("Dinner")).to_be_visible()
    expect(page.get_by_label("Parking")).to_have_count(0)
    page.get_by_role("button", name="Refund", exact=True).click()
    row = page.get_by_role("dialog").get_by_role("row").filter(has_text="Parking")
    expect(row).to_contain_text("Already used")


def test_without_a_network_add_ons_are_handed_out_and_a_conflict_is_shown_later(profile: Any, site: Site) -> None:
    """Two gates offline hand out the only parking place; both are told when they are back."""
    ticket = buy(site, parking=1)
    gates = []
    for name in ("North", "South"):
        page = profile().new_page()
        staff(page, site)
        open_gate(page, site, name, SHOW)
        goes_offline(page)
        gates.append(page)
    for page in gates:
        scan(page, ticket.code, "ok")
        add_on(page, "Parking").get_by_role("button", name="Hand out 1").click()
        expect(add_on(page, "Parking")).to_contain_text("Parking · 1, used")
        expect(page.locator("#waiting")).to_have_text("Waiting to be sent: 2")
    for page in gates:
        page.context.set_offline(False)
        expect(page.locator("#waiting")).to_be_hidden()
    expect(gates[1].locator("#conflicts")).to_contain_text("Handed out, but already used or refunded: Parking")
    expect(gates[1].locator("#conflicts")).to_contain_text("North")


@pytest.mark.parametrize("event_id", [SHOW, NAMED])
def test_without_a_network_a_number_is_found_and_a_name_only_if_the_organiser_allows_it(
    gate_page: Page, site: Site, event_id: str
) -> None:
    ticket = buy(site, event_id, "Grace Hopper")
    open_gate(gate_page, site, event_id=event_id)
    goes_offline(gate_page)
    scan(gate_page, ticket.id, "look_up")
    expect(gate_page.locator("#found li")).to_have_count(1)
    gate_page.get_by_role("button", name="Check in 1 person").click()
    expect(gate_page.locator("#found-none")).to_have_text("1 person admitted.")
    who = gate_page.get_by_label("Name, email, booking number or seat")
    who.fill("hopper")
    who.press("Enter")
    said = "Offline: found on this device." if event_id == NAMED else "No booking matches on this device."
    expect(gate_page.locator("#found-none")).to_have_text(said)
    scan(gate_page, ticket.code, "duplicate")
    expect(gate_page.locator("#verdict-name")).to_have_text("Grace Hopper" if event_id == NAMED else "")
    before = inside(site, event_id)
    gate_page.context.set_offline(False)
    expect(gate_page.locator("#waiting")).to_be_hidden()
    assert inside(site, event_id) == before + 1


def test_the_light_is_only_said_to_be_on_when_the_camera_switched_it_on(browser: Browser, site: Site) -> None:
    with launch(browser.browser_type, args=CAMERA) as watching:
        context = watching.new_context(permissions=["camera"])
        page = context.new_page()
        page.add_init_script(LIGHT)
        staff(page, site)
        open_gate(page, site, event_id=SHOW)
        light = page.get_by_role("button", name="Light")
        expect(light).to_be_visible(timeout=WAIT_MS)
        light.click()
        expect(light).to_have_attribute("aria-pressed", "true")
        assert page.evaluate("window.lights") == [True]
        light.click()
        expect(light).to_have_attribute("aria-pressed", "false")
        page.evaluate("window.dark = true")
        light.click()
        expect(
            page.locator("[aria-live], [role=status]").filter(has_text="The light does not work").first
        ).to_be_attached()
        expect(light).to_have_attribute("aria-pressed", "false")


def test_the_gate_with_add_ons_is_for_everybody(profile: Any, site: Site) -> None:
    ticket = buy(site, name="Wilhelmina Konstantinopoulou-Featherstonehaugh", parking=1, dinner=1)
    page = profile(390, 844).new_page()
    bring_axe(page.context)
    staff(page, site)
    open_gate(page, site, event_id=SHOW)
    scan(page, ticket.code, "ok")
    expect(add_on(page, "Parking")).to_be_visible()
    assert read_booking_view(page, "the gate with add-ons") == []
