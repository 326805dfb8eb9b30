"""J1: a guest finds an event, waits, picks seats, pays, gets the mail with ticket and calendar entry, and gets in.

On the way the price is the price: the same numbers on the event's page, the map, the basket, the checkout, the booking,
the receipt, the mail and the organiser's pages (issue 15).
"""

from pathlib import Path

from playwright.sync_api import expect

from frontrow.boxoffice.events.model.events import Fee
from tests.browser.gates import open_gate, scan
from tests.browser.staff import staff
from tests.browser.steps import choose, until
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import enter_shop, fill_buyer, fill_card, find_event, read_code

SEAT, TOTAL, TAX = "€52.50", "€106.99", "€12.31"  # 50.00 and a fee of 2.50; two of them and 1.99; 13 % inside


def test_a_guest_buys_two_seats_and_gets_in(stack: Stack, visitor: Visitor, tmp_path: Path) -> None:
    fees = (Fee("Service fee", per_seat_minor=250), Fee("Order fee", per_booking_minor=199))
    event = stack.put_on_sale("Northern Lights", seats=6, fees=fees, tax_basis_points=1300)
    ada = visitor()
    find_event(ada, stack, "Northern Lights")
    expect(ada.locator("main")).to_contain_text(SEAT)
    expect(ada.locator("main")).to_contain_text("Order fee: €1.99 per booking")
    expect(ada.locator("main")).not_to_contain_text("€50")
    enter_shop(ada, stack, "Northern Lights")
    until(ada, "window.frontrow")
    expect(ada.locator(".legend")).to_contain_text(SEAT)
    choose(ada, 2)
    assert ada.locator("#picked .num").all_inner_texts() == [SEAT, SEAT]
    expect(ada.locator("#basket")).to_contain_text("Order fee")
    expect(ada.locator("#total")).to_have_text(TOTAL)
    ada.locator("#go").click()
    ada.wait_for_url("**/checkout/**")
    booking_id = ada.url.rpartition("/")[2].partition("?")[0]
    order = ada.get_by_role("table", name="Your booking")
    assert order.locator("tr td:last-child").all_inner_texts() == [SEAT, SEAT, "€1.99", TOTAL, "€5", TAX]
    expect(ada.locator("#go")).to_have_text(f"Pay {TOTAL}")
    fill_card(ada, stack)
    fill_buyer(ada, "Ada Lovelace", "ada@example.org")
    ada.locator("#go").click()
    ada.wait_for_url("**/bookings/**")
    expect(ada.get_by_role("heading", name="Northern Lights")).to_have_count(2)
    expect(ada.locator("main")).to_contain_text(TOTAL)

    assert stack.paid(booking_id) == 106_99
    assert stack.authorised(booking_id) == 0
    mail = stack.mailbox.wait_for("ada@example.org", "Northern Lights")
    for part in (f"2 × {SEAT}: €105.00", "Order fee: €1.99", f"Total: {TOTAL}", "including Service fee: €5.00", TAX):
        assert part in mail.text, part
    ada.get_by_role("link", name="Receipt").click()
    for part in (f"2 × {SEAT}", "€105.00", "€1.99", TOTAL, "€5.00", TAX):
        expect(ada.locator("article")).to_contain_text(part)
    ada.go_back()
    files = mail.attachments()
    assert any(name.endswith(".pdf") and body.startswith(b"%PDF") for name, body in files.items()), list(files)
    assert any(name.endswith(".ics") and b"BEGIN:VEVENT" in body for name, body in files.items()), list(files)
    assert len(stack.mailbox.mails("ada@example.org")) == 1

    code = read_code(ada, tmp_path)
    gate = visitor(390, 844)
    staff(gate, stack.site, role="door")
    open_gate(gate, stack.site, event_id=event.id)
    scan(gate, code, "ok")
    scan(gate, code, "duplicate")

    staff_page = visitor()
    staff(staff_page, stack.site)
    staff_page.goto(f"{stack.url}/organiser/events/{event.id}/bookings/{booking_id}")
    rows = staff_page.get_by_role("table", name="Price").locator("tr td:last-child").all_inner_texts()
    assert rows == ["€105", "€1.99", TOTAL, "€5", TAX]
    expect(staff_page.get_by_role("table", name="Seats and tickets")).to_contain_text(SEAT)
