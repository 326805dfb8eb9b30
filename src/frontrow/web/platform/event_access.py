"""Events as callers may see them: all but drafts, and those of the caller's own organiser. All others answer 404."""

from frontrow.boxoffice.events.model.events import Event, EventNotFound, EventStatus
from frontrow.boxoffice.events.ports import EventReads
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.web.http.access import Caller
from frontrow.web.platform.platform import Platform


async def shown_event(platform: Platform, event_id: str, catalogue: EventReads | None = None) -> Event:
    """The event, unless it is a draft or does not exist. `catalogue`: where to look for one that is not sold here."""
    catalogue = catalogue or platform.ledger.catalogue
    event = platform.box_office.openings.events.get(event_id) or await catalogue.event(event_id)
    if event.status is EventStatus.DRAFT:
        raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
    await platform.box_office.renderer.art.colour(event)  # once per picture: its pages are in that colour
    return event


async def own_event(platform: Platform, caller: Caller, event_id: str) -> Event:
    """The event, if it belongs to the caller's organiser. Any other event answers 404."""
    event = await platform.ledger.catalogue.event(event_id)
    if not caller.organiser_id or event.organiser_id != caller.organiser_id:
        raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
    return event


async def zone_of(platform: Platform, event: Event) -> str:
    """The time zone of the event's venue."""
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    return (venue.time_zone if venue else "") or "UTC"


async def own_event_booking(
    platform: Platform, caller: Caller, event_id: str, booking_id: str
) -> tuple[Event, Booking]:
    """An event of the caller's organiser and one of its bookings; any other booking answers 404."""
    event = await own_event(platform, caller, event_id)
    booking = await platform.ledger.booking(booking_id)
    if booking is None or booking.event_id != event.id:
        raise BookingNotFound(booking_id[:60])
    return event, booking
