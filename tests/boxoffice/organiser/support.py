"""Organisers at work, for tests: services over a bare ledger, and an event with bookings made straight in it."""

from dataclasses import replace
from typing import Any

import msgspec

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.event_editing import EventEdit, OrganiserEvents
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.events import Event, PriceTier
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.organiser.model.sales_figures import RoomFigures
from frontrow.boxoffice.organiser.sales_figures import SalesFigures
from frontrow.boxoffice.seats.formats.plan_document import to_document
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.core.clock import US_PER_S
from frontrow.shared.ids import Ids
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from tests.boxoffice.plan_samples import small_plan

ADA = Editor("stf_ada", "org_hall")
BOB = Editor("stf_bob", "org_other")
NOW_US = 1_800_000_000 * US_PER_S
DAY_US = 86_400 * US_PER_S
KEYS = TicketKeys(bytes(32))
TIERS = (
    PriceTier("front", Money(5000, "EUR")),
    PriceTier("back", Money(2000, "EUR")),
    PriceTier("standing", Money(3000, "EUR")),
)
ROOM = RoomFigures("open", 900, 300, 600, 120, 12.5)


def a_clock() -> ManualClock:
    return ManualClock(NOW_US)


def an_office(ledger: SqlLedger, clock: ManualClock) -> OrganiserEvents:
    return OrganiserEvents(ledger, clock, Ids(clock))


def small_document() -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(to_document(small_plan())))


async def a_venue(office: OrganiserEvents, editor: Editor = ADA) -> str:
    edit = VenueEdit(name="Small Hall", city="Vienna", country="AT", plan=PlanSource(document=small_document()))
    return (await office.venues.create(editor, edit)).venue.id


def a_draft(venue: str, **changes: Any) -> EventEdit:
    edit = EventEdit(
        name="Aurora",
        venue_id=venue,
        currency="EUR",
        starts_at_us=NOW_US + 10 * DAY_US,
        sale_starts_at_us=NOW_US - DAY_US,
        sale_ends_at_us=NOW_US + 9 * DAY_US,
        tiers=TIERS,
        lonely_rule_until_percent=0,
    )
    return msgspec.structs.replace(edit, **changes)


async def on_sale(office: OrganiserEvents, editor: Editor = ADA, **changes: Any) -> Event:
    made = await office.create(editor, a_draft(await a_venue(office, editor), **changes))
    return (await office.publish(editor, made.event.id)).event


async def a_hold(
    ledger: SqlLedger, event: Event, seats: tuple[int, ...], *, number: int, at_us: int = NOW_US, price: int = 5000
) -> Booking:
    hold = NewHold(
        f"bkg_{number:026d}",
        event.id,
        f"fan_{number}",
        seats,
        at_us,
        at_us + 600 * US_PER_S,
        price * len(seats),
        prices_minor=(price,) * len(seats),
    )
    await ledger.place_hold(hold)
    booking = await ledger.booking(hold.booking_id)
    assert booking is not None
    return booking


async def a_purchase(
    ledger: SqlLedger, event: Event, seats: tuple[int, ...], *, number: int, at_us: int = NOW_US, took_us: int = 1
) -> Booking:
    """A confirmed booking with tickets, without money."""
    held = await a_hold(ledger, event, seats, number=number, at_us=at_us)
    await ledger.begin_payment(held.id, held.fence, at_us)
    tickets = Issuer(KEYS).issue(held)
    return await ledger.confirm(held.id, held.fence, at_us + took_us, tickets)


def moved(event: Event, **changes: Any) -> Event:
    return replace(event, **changes)


def some_figures(ledger: SqlLedger, office: OrganiserEvents, clock: ManualClock) -> SalesFigures:
    """The figures of events whose room is always as ROOM says."""
    return SalesFigures(ledger.figures, clock, office.venues.plan, lambda event: None, lambda event: ROOM)
