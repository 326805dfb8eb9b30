"""J1: a guest finds an event, waits, picks seats, pays, gets the mail with ticket and calendar entry, and gets in."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.doors import open_gate, scan
from tests.browser.staff import staff
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, read_code


def test_a_guest_buys_two_seats_and_gets_in(stack: Stack, visitor: Visitor, tmp_path: Path) -> None:
    event = stack.put_on_sale("Northern Lights", seats=6)
    ada = visitor()
    booking_id = buy(ada, stack, "Northern Lights", "ada@example.org", count=2, from_home=True)
    expect(ada.get_by_role("heading", name="Northern Lights")).to_have_count(2)

    assert stack.paid(booking_id) == 100_00
    assert stack.authorised(booking_id) == 0
    mail = stack.mailbox.wait_for("ada@example.org", "Northern Lights")
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
