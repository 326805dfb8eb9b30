"""J14: a fan finds an event among thousands on a phone and buys the last seat; a seat comes back and is on sale."""

from dataclasses import replace

from playwright.sync_api import expect

from bench.events import load_events, many_events
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.web.platform.platform import Platform
from tests.browser.steps import get_tickets, reload_until
from tests.journeys.conftest import WAIT_MS, Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import fill_buyer, hold_seats, pay_by_card
from tests.support.booking_moves import refund_booking
from tests.support.eventually import eventually_sync

CROWD = 3_000


def test_a_fan_finds_an_event_buys_the_last_seat_and_a_returned_one_is_on_sale_again(
    stack: Stack, visitor: Visitor
) -> None:
    event = stack.put_on_sale("Café Noir Trio", seats=1)

    async def fill(platform: Platform) -> None:
        """Thousands of other events, most of them drafts or over, and a city for ours."""
        now_us = platform.clock()
        crowd = (replace(one, status=_quiet(one.status)) for one in many_events(CROWD, now_us=now_us))
        await load_events(platform.ledger, crowd, now_us=now_us)
        known = await platform.ledger.catalogue.venue(event.venue_id)
        assert known is not None
        await platform.ledger.catalogue.put_venue(
            Venue(known.id, "Jazzkeller", known.plan_hash, "Zürich", "CH", "Europe/Zurich"), now_us
        )

    stack.call(fill)
    fan = visitor(390, 844)
    fan.goto(stack.url)
    fan.get_by_label("Artist, team, venue or city").fill("cafe trio")
    fan.get_by_text("Filters", exact=True).click()
    fan.get_by_label("City", exact=True).fill("zurich")
    fan.get_by_role("button", name="Search").click()
    fan.get_by_role("heading", name="Café Noir Trio").click()
    get_tickets(fan)
    booking_id = hold_seats(fan)
    fill_buyer(fan, "Ada Lovelace", "ada@example.org")
    pay_by_card(fan)
    fan.wait_for_url("**/bookings/**")
    assert stack.paid(booking_id) == 50_00
    _wait_for(stack, event.id, EventStatus.SOLD_OUT)

    late = visitor(390, 844)
    late.goto(f"{stack.url}/?q=trio&show=sold_out")
    reload_until(late, late.get_by_role("heading", name="Café Noir Trio"))
    late.get_by_role("heading", name="Café Noir Trio").click()
    expect(late.get_by_role("heading", name="Sold out")).to_be_visible()
    expect(late.get_by_role("link", name="Join the waitlist")).to_be_visible()

    async def refund(platform: Platform) -> None:
        booking = await platform.ledger.booking(booking_id)
        assert booking is not None
        await refund_booking(platform.ledger, booking.id, booking.fence, platform.clock())
        await platform.box_office.holds.held.freed(event.id, booking.seats, booking.id)

    stack.call(refund)
    _wait_for(stack, event.id, EventStatus.ON_SALE)
    late.goto(f"{stack.url}/?city=Z%C3%BCrich&seats=1")
    reload_until(late, late.get_by_role("heading", name="Café Noir Trio"))
    late.get_by_role("heading", name="Café Noir Trio").click()
    expect(late.get_by_role("button", name="Get tickets")).to_be_visible()


def _quiet(status: EventStatus) -> EventStatus:
    """Nobody sells the others: they only stand around."""
    return EventStatus.DRAFT if status is EventStatus.ON_SALE else status


def _wait_for(stack: Stack, event_id: str, status: EventStatus) -> None:
    """Until this server sells the event as it is in the catalogue."""
    openings = stack.platform.box_office.openings
    eventually_sync(lambda: openings.events[event_id].status, WAIT_MS / 1000, until=lambda now: now is status)
