"""Which events the pages show."""

from frontrow.boxoffice.ledger.catalogue import EventNotFound
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.web.platform import Platform


async def shown_event(platform: Platform, event_id: str) -> Event:
    """The event, unless it is a draft or does not exist."""
    event = platform.openings.events.get(event_id) or await platform.ledger.event(event_id)
    if event.status is EventStatus.DRAFT:
        raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
    return event
