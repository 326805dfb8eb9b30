"""A site with shows to let people in to, tickets really bought, and a camera that shows one of them."""

from pathlib import Path
from typing import Any

import zxingcpp
from playwright.sync_api import Page, expect

from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.pricing.model.sale_options import TicketType
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.core.clock import US_PER_S
from tests.browser.served import Site, put_hall
from tests.browser.steps import until
from tests.support.cable import Cable
from tests.support.signed_tickets import signed_tickets

SHOW = "evt_show"
TOMORROW = "evt_tomorrow"  # the same show, a day later
OTHER = "evt_other"  # people may leave and come back; adults and children
DAY_US = 86_400 * US_PER_S
WIDE, HIGH = 480, 360  # of the camera's picture
CAMERA = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]
TWO_ROUNDS = "async () => { for (const _ of [1, 2]) await window.frontrow.gate.sync.now(); }"  # one may be under way

WAIT_MS = 60_000  # a busy machine may take its time, and its server too: the gate's own deadlines are stretched
PATIENT = "{ const real = AbortSignal.timeout.bind(AbortSignal); AbortSignal.timeout = (ms) => real(ms * 20); }"

expect.set_options(timeout=WAIT_MS)


async def put_shows(platform: Platform) -> None:
    now_us = platform.clock()
    plan = generate("arena", 400)
    for number, (event_id, name) in enumerate(((SHOW, "Aurora"), (TOMORROW, "Aurora"), (OTHER, "Late Night Comedy"))):
        starts_us = now_us + 3600 * US_PER_S + number * DAY_US
        times = {"starts_at_us": starts_us, "sale_ends_at_us": starts_us}
        types = (TicketType("adult", "Adult"), TicketType("child", "Child", 5_000)) if event_id == OTHER else ()
        await put_hall(platform, plan, id=event_id, name=name, reentry=event_id == OTHER, ticket_types=types, **times)


def buy(site: Site, count: int = 1, event_id: str = SHOW) -> list[Ticket]:
    """Seats side by side, held and paid by the services; their tickets."""

    async def bought(platform: Platform) -> list[Ticket]:
        booking = await _book(platform, event_id, count)
        return await signed_tickets(platform, booking.id)

    found: list[Ticket] = site.call(bought)
    assert len(found) == count
    return found


async def _book(platform: Platform, event_id: str, count: int) -> Booking:
    states = platform.box_office.feeds[event_id].ring.states
    ids = platform.box_office.sales.get(event_id).plan.seat_ids
    free = [ids[index] for index in range(len(ids)) if states[index] == 0][:count]
    visit = ShopPass(event_id, platform.ids.new("fan"), platform.clock() + 900 * US_PER_S)
    hold = await platform.box_office.holds.place(event_id, visit, free)
    return (await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")).booking


def refund(site: Site, ticket: Ticket) -> None:
    site.call(lambda platform: platform.box_office.refunds.override(ticket.booking_id, [ticket.seat_index]))


def open_gate(page: Page, site: Site, name: str = "North", event_id: str = SHOW, *, cable: Cable | None = None) -> None:
    """The scanner's page, named and ready, with everything it needs offline; through a cable, if one is given."""
    patient(page)
    page.goto(f"{cable.url if cable else site.url}/door/{event_id}")
    page.get_by_label("Gate name").fill(name)
    page.get_by_role("button", name="Start scanning").click()
    expect(page.locator("#state")).to_have_text("Online")
    until(page, "window.frontrow?.gate.sync.gate && window.frontrow.gate.sync.counts")


def patient(page: Page) -> None:
    page.context.set_default_timeout(WAIT_MS)
    page.context.add_init_script(PATIENT)


def scan(page: Page, code: str, verdict: str) -> None:
    """Type a code and wait for what the gate says about it."""
    before = page.evaluate("window.frontrow.gate.measured.scans")
    page.locator("#code").fill(code)
    page.locator("#code").press("Enter")
    until(page, "(before) => window.frontrow.gate.measured.scans > before", before)
    expect(page.locator("#verdict")).to_have_attribute("data-verdict", verdict)


def film(path: Path, code: str) -> None:
    """A few frames of video (Y4M) that show the code of a ticket on a grey table."""
    barcode = zxingcpp.create_barcode(code, zxingcpp.BarcodeFormat.QRCode, ec_level="M")
    picture: Any = memoryview(barcode.to_image(scale=5))  # type: ignore[arg-type]
    high, wide = picture.shape
    rows = [bytearray(b"\x80" * WIDE) for _ in range(HIGH)]
    left, top = (WIDE - wide) // 2, (HIGH - high) // 2
    flat = picture.tobytes()
    for y in range(high):
        rows[top + y][left : left + wide] = flat[y * wide : (y + 1) * wide]
    frame = b"FRAME\n" + b"".join(rows) + b"\x80" * (WIDE * HIGH // 2)
    path.write_bytes(f"YUV4MPEG2 W{WIDE} H{HIGH} F10:1 Ip A1:1 C420jpeg\n".encode() + frame * 2)


def forged(booking_id: str, seat: int) -> str:
    """A ticket in the right form, signed by somebody else."""
    booking = Booking(booking_id, SHOW, "fan_x", BookingState.PAYING, 9, (seat,), 1, "EUR", "", 1, 1, 1)
    return Issuer(TicketKeys.fresh()).issue(booking)[0].code


def inside(site: Site, event_id: str = SHOW) -> int:
    """How many the ledger knows to be in."""
    return int(site.call(lambda platform: platform.ledger.organiser.gate_totals(event_id))[1])


def kept_offline(page: Page) -> None:
    """Wait until the service worker has the page and its files."""
    until(page, "async () => Boolean(await caches.match(location.pathname))")


def goes_offline(page: Page, cable: Cable | None = None) -> None:
    """Cut the page's network. A page that is reloaded meanwhile needs a cable: see there."""
    if cable is not None:
        cable.cut()
    page.context.set_offline(True)
    expect(page.locator("#state")).to_contain_text("Offline since")


def comes_online(page: Page, cable: Cable) -> None:
    cable.mend()
    page.context.set_offline(False)
    expect(page.locator("#state")).to_have_text("Online")
