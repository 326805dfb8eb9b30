"""The organiser's pages in a browser (B12, B13): refund, other seats, team, webhooks; all for everybody."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.buyer_messages import Audience, AudienceKind
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.pricing.model.sale_options import TicketType
from frontrow.core.clock import US_PER_S
from tests.boxoffice.people.support import PASSWORD, mailed
from tests.browser.looks import MOST_MOVED, SHIFTS, bring_axe, read_booking_view
from tests.browser.served import WAIT_S, Site, put_hall
from tests.browser.staff import staff
from tests.browser.steps import EVENT_ID, click_seat, settled, until
from tests.support.eventually import eventually
from tests.support.wallet_files import PASS_TYPE_ID, TEAM_ID, authority, der, p12, pass_certificate

BASE = f"/organiser/events/{EVENT_ID}"


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("organiser"), put_hall) as running:
        yield running


def sold(site: Site, *seats: str, fan: str, pay: bool = True) -> Booking:
    """A purchase by the services themselves."""

    async def bought(platform: Platform) -> Booking:
        await platform.ledger.messages.put_contact(Contact(fan, f"{fan}@example.org"), platform.clock())
        visit = ShopPass(EVENT_ID, fan, platform.clock() + 900 * US_PER_S, fan)
        hold = await platform.box_office.holds.place(EVENT_ID, visit, list(seats))
        if pay:
            paid = await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")
            await eventually(  # the worker takes the money
                lambda: platform.ledger.payments.payments_of(hold.booking_id),
                WAIT_S,
                until=lambda payments: payments[-1].state is PaymentState.CAPTURED,
            )
            return paid.booking
        held = await platform.ledger.booking(hold.booking_id)
        assert held is not None
        return held

    found: Booking = site.call(bought)
    return found


MIDDLE_OF_TEXT = """(cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const { top, bottom } = text.getBoundingClientRect();
  return (top + bottom) / 2;
}"""


@pytest.fixture
def staff_page(profile: Any, hall: Site) -> Page:
    page: Page = profile().new_page()
    staff(page, hall)
    return page


def test_b12_a_refund_asked_for_on_the_page_is_in_the_ledger(staff_page: Page, hall: Site) -> None:
    booking = sold(hall, "101-A-1", "101-A-2", fan="eve")
    staff_page.goto(f"{hall.url}{BASE}/bookings")
    staff_page.get_by_label("Name, email, booking number or seat").fill("eve@example.org")
    staff_page.get_by_role("button", name="Search").click()
    staff_page.get_by_role("link", name=booking.id[-8:]).click()
    row = staff_page.get_by_role("row").filter(has=staff_page.get_by_label("101, Row A, Seat 2"))
    box, price = row.get_by_role("checkbox").bounding_box(), row.locator("td").last.evaluate(MIDDLE_OF_TEXT)
    assert box is not None
    assert abs(box["y"] + box["height"] / 2 - price) < 3, "the price is on the line of its checkbox"
    staff_page.get_by_label("101, Row A, Seat 2").uncheck()
    staff_page.get_by_role("button", name="Refund", exact=True).click()
    dialog = staff_page.get_by_role("dialog", name="Refund", exact=True)
    expect(dialog).to_contain_text("€")
    dialog.get_by_label("in full, regardless of the refund policy").check()
    dialog.get_by_label("Reason (needed for a refund in full)").fill("ill")
    dialog.get_by_role("button", name="Refund now").click()
    expect(staff_page.get_by_role("status").first).to_contain_text("The refund is in progress")

    async def refunds(platform: Platform) -> Any:
        return [(len(one.seats), one.reason) for one in await platform.ledger.payments.refunds_of(booking.id)]

    assert hall.call(refunds) == [(1, "organiser:ill")]
    expect(staff_page.get_by_text("Refund for 101, Row A, Seat 1")).to_be_visible()


def test_b13_seats_are_withheld_on_the_map_by_seat_row_and_section(staff_page: Page, hall: Site) -> None:
    sold(hall, "104-A-1", fan="gus")
    staff_page.goto(f"{hall.url}{BASE}/seats")
    until(staff_page, "document.querySelector('fr-seatmap').model")
    text = staff_page.locator("#withheld")
    for seat in ("104-A-3", "104-A-4", "104-A-5", "104-A-1"):  # the last one is sold
        click_seat(staff_page, seat)
    expect(text).to_have_value("104-A-3…5")
    expect(staff_page.locator("#withheld-count")).to_have_text("3 seats are withheld.")
    staff_page.get_by_label("a row").check()
    click_seat(staff_page, "104-B-2")
    expect(text).to_have_value("104-A-3…5\n104-B")
    click_seat(staff_page, "104-B-2")
    text.press_sequentially("\n104-C-1\nnowhere")
    expect(staff_page.locator("#withheld-count")).to_have_text("4 seats are withheld.")
    staff_page.get_by_label("one seat").check()
    click_seat(staff_page, "104-A-4")
    expect(text).to_have_value("104-A-3\n104-A-5\n104-C-1\nnowhere")
    text.fill("104-A-3\n104-A-5")
    staff_page.get_by_role("button", name="Save").click()
    expect(staff_page.get_by_role("status").first).to_contain_text("Saved.")
    expect(staff_page.get_by_text("2 of")).to_be_visible()

    # the box office sells a withheld seat to a child: each picked seat has its ticket type, and the total follows
    async def add_types(platform: Platform) -> None:
        event = await platform.ledger.catalogue.event(EVENT_ID)
        types = (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000))
        await platform.ledger.catalogue.put_event(replace(event, ticket_types=types), platform.clock())

    hall.call(add_types)
    staff_page.goto(f"{hall.url}{BASE}/sell")
    until(staff_page, "document.querySelector('fr-seatmap').model")
    for seat in ("104-A-3", "104-A-6", "104-A-7", "104-A-7"):  # the last one is put back
        click_seat(staff_page, seat)
    expect(staff_page.get_by_label("104, Row A, Seat 7")).to_have_count(0)
    total = staff_page.locator("#total")
    expect(total).to_contain_text("€")
    full = total.inner_text()
    staff_page.get_by_label("104, Row A, Seat 3").select_option("Child")
    expect(total).not_to_have_text(full)
    staff_page.get_by_role("button", name="Sell", exact=True).click()
    expect(staff_page.get_by_role("status").first).to_contain_text("Sold.")
    expect(staff_page.get_by_text("· Child")).to_be_visible()


def test_b13_a_booking_moves_to_seats_chosen_on_the_map(staff_page: Page, hall: Site) -> None:
    booking = sold(hall, "102-A-1", fan="bob")
    staff_page.goto(f"{hall.url}{BASE}/bookings/{booking.id}")
    staff_page.get_by_role("button", name="Change seats").click()
    until(staff_page, "document.querySelector('fr-seatmap').model")
    expect(staff_page.locator("#move")).to_be_disabled()
    click_seat(staff_page, "102-A-1")  # theirs
    expect(staff_page.locator("#picked")).to_have_text("–")
    click_seat(staff_page, "102-B-2")
    click_seat(staff_page, "102-B-3")  # one seat is wanted: the second choice replaces the first
    expect(staff_page.locator("#picked")).to_have_text("102, Row B, Seat 3")
    staff_page.locator("#move").click()
    dialog = staff_page.get_by_role("dialog", name="Move seats?")
    expect(dialog).to_contain_text("102, Row A, Seat 1 → 102, Row B, Seat 3")
    dialog.get_by_role("button", name="Move seats").click()
    expect(staff_page.get_by_role("status").first).to_contain_text("Moved.")
    expect(staff_page.get_by_label("102, Row B, Seat 3")).to_be_visible()


def test_b13_who_is_invited_becomes_a_member(staff_page: Page, hall: Site) -> None:
    staff_page.goto(f"{hall.url}/organiser/team")
    staff_page.get_by_label("Email", exact=True).fill("grace@example.org")
    expect(staff_page.get_by_text("Scans tickets at the gate and finds bookings there.").first).to_be_visible()
    staff_page.get_by_role("radio", name="Manager").first.check()
    staff_page.get_by_role("button", name="Invite", exact=True).click()
    expect(staff_page.get_by_role("status").first).to_contain_text("Invited.")

    async def accept(platform: Platform) -> None:
        await platform.people.team.accept(await mailed(platform, "grace@example.org"), "Grace Hopper", PASSWORD)

    hall.call(accept)
    staff_page.reload()
    row = staff_page.get_by_role("row", name=re.compile("Grace Hopper"))
    expect(row).to_contain_text("Manager")
    row.get_by_role("button", name="Change Grace Hopper").click()
    dialog = staff_page.get_by_role("dialog", name="Grace Hopper")
    dialog.get_by_role("button", name="Remove from the team").click()
    expect(staff_page.get_by_role("status").first).to_contain_text("Removed.")
    expect(staff_page.get_by_text("Grace Hopper")).to_have_count(0)


def test_a_webhook_is_made_and_its_secret_told_once(staff_page: Page, hall: Site) -> None:
    staff_page.goto(f"{hall.url}/organiser/webhooks")
    staff_page.get_by_label("Address").fill("https://hooks.example.org/frontrow")
    staff_page.get_by_role("button", name="Create").click()
    expect(staff_page.locator("#secret")).to_contain_text("whsec_")
    staff_page.get_by_role("link", name="https://hooks.example.org/frontrow").click()
    expect(staff_page.locator("#secret")).to_have_count(0)
    staff_page.get_by_role("button", name="Send a test").click()
    expect(staff_page.get_by_text("fct_test-")).to_be_visible()


async def a_draft(platform: Platform, booking: Booking) -> str:
    """A message to this booking's buyer, ready to be sent."""
    event = await platform.ledger.catalogue.event(booking.event_id)
    to_one = Audience(AudienceKind.BOOKING, booking.id)
    messages = platform.organiser.messages
    draft = await messages.write(Editor("stf_ada", event.organiser_id), event, to_one, "Gate B", "Use **gate B**.")
    await messages.keep_draft(draft)
    return draft.id


def test_the_keys_of_a_wallet_are_uploaded_from_files(staff_page: Page, hall: Site) -> None:
    """Issue 15: wallet passes. A refused file says why, and nothing typed is lost."""
    staff_page.goto(f"{hall.url}/organiser/wallets")
    form = staff_page.locator("form[action$='/apple']")
    for password, told in (("guess", "The password does not open this file."), ("secret", "Saved.")):
        files = {"certificate": p12(pass_certificate()), "intermediate": der(authority()[0])}
        for name, body in files.items():
            given: Any = {"name": f"{name}.p12", "mimeType": "application/x-pkcs12", "buffer": body}
            form.locator(f"#{name}-file").set_input_files(given)
        form.get_by_label("Team identifier").fill(TEAM_ID)
        form.get_by_label("Password of the file").fill(password)
        form.get_by_role("button", name="Save").click()
        expect(staff_page.get_by_text(told)).to_be_visible()
        expect(form.get_by_label("Team identifier")).to_have_value(TEAM_ID if password == "guess" else "")
    expect(staff_page.get_by_text(PASS_TYPE_ID)).to_be_visible()


def pages_of_an_event(site: Site) -> list[tuple[str, str, str]]:
    """Name, path and the dialog to open."""
    booking = sold(site, "103-A-1", "103-A-2", fan="ada")
    held = sold(site, "103-B-1", fan="hal", pay=False)
    site.call(lambda platform: platform.box_office.invoices.issue(booking))
    draft = site.call(lambda platform: a_draft(platform, booking))
    return [
        ("live", f"{BASE}/live", "pause"),
        ("bookings", f"{BASE}/bookings", ""),
        ("booking", f"{BASE}/bookings/{booking.id}", ""),
        ("invoices", "/organiser/invoices", ""),
        ("messages", f"{BASE}/messages?booking={booking.id}", ""),
        ("message", f"{BASE}/messages/{draft}", ""),
        ("refund", f"{BASE}/bookings/{booking.id}?do=refund", ""),
        ("reseat", f"{BASE}/bookings/{booking.id}?do=reseat", ""),
        ("held booking", f"{BASE}/bookings/{held.id}", "cancel"),
    ]


def other_pages(site: Site) -> list[tuple[str, str, str]]:
    return [
        ("box office", f"{BASE}/sell", ""),
        ("no bookings", f"{BASE}/bookings?q=nobody@example.org", ""),
        ("waitlist", f"{BASE}/waitlist", "rules"),
        ("team", "/organiser/team", "m1"),
        ("audit", "/organiser/audit", ""),
        ("webhooks", "/organiser/webhooks", ""),
        ("seller", "/organiser/seller", ""),
        ("payouts", "/organiser/payouts", ""),
        ("wallets", "/organiser/wallets", ""),
        ("exports", f"{BASE}/exports", ""),
        ("reports", f"{BASE}/reports", ""),
        ("feeds", "/organiser/feeds", ""),
    ]


def walked(page: Page, site: Site, pages: list[tuple[str, str, str]]) -> Iterator[str]:
    """Each page when it is ready, and again with its dialog open."""
    for name, path, dialog in pages:
        page.goto(site.url + path)
        if name == "live":
            until(page, "document.querySelector('.heat path') && window.live?.charts.points.length > 0")
        yield name
        if dialog:
            page.locator(f"[data-opens={dialog}]").click()
            yield f"{name}, dialog"


@pytest.mark.parametrize("listed", [pages_of_an_event, other_pages])
def test_axe_finds_nothing_text_reflows_and_the_console_is_clean(profile: Any, hall: Site, listed: Any) -> None:
    context = profile(bypass_csp=True, reduced_motion="reduce")
    bring_axe(context)
    page: Page = context.new_page()
    staff(page, hall)
    said: list[str] = []
    page.on("console", lambda one: said.append(f"{one.type}: {one.text}") if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda one: said.append(str(one)))
    found = list[str]()
    for name in walked(page, hall, listed(hall)):
        found += read_booking_view(page, name)
    assert not found, "\n".join(found)
    assert said == []


def test_the_policy_is_kept_on_every_page(staff_page: Page, hall: Site) -> None:
    said: list[str] = []
    staff_page.on(
        "console", lambda one: said.append(f"{one.type}: {one.text}") if one.type in ("error", "warning") else None
    )
    staff_page.on("pageerror", lambda one: said.append(str(one)))
    for path in (f"{BASE}/live", f"{BASE}/bookings", "/organiser/team", "/organiser/audit", "/organiser/webhooks"):
        staff_page.goto(hall.url + path)
        if path.endswith("/live"):
            expect(staff_page.locator("#link")).to_have_text("Live", timeout=60_000)
            until(staff_page, "document.querySelectorAll('.chart canvas').length === 4")
    assert said == []


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_jumps_while_a_page_comes(profile: Any, hall: Site, width: int) -> None:
    context = profile(width, 844)
    context.add_init_script(SHIFTS)
    page: Page = context.new_page()
    staff(page, hall)
    jumped = {}
    for path in ("/organiser", f"{BASE}/live", f"{BASE}/bookings", "/organiser/team", "/organiser/venues", "/door"):
        page.goto(hall.url + path)
        if path.endswith("/live"):
            expect(page.locator("#link")).to_have_text("Live", timeout=60_000)
            until(
                page, "document.querySelectorAll('.chart canvas').length === 4 && document.querySelector('.heat path')"
            )
        settled(page)
        jumped[path] = page.evaluate("window.moved || 0")
    assert not {path: moved for path, moved in jumped.items() if moved > MOST_MOVED}
