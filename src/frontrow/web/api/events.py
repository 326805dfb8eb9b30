"""Browsing (B1): the events, found by words, in cursor pages; one event with what is free, and where its map is."""

import re
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter

from frontrow.boxoffice.ledger.catalogue import EventNotFound
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.venues import Venue
from frontrow.boxoffice.services.browse import MAX_PAGE, Free, Listing
from frontrow.core.errors import InvalidInput
from frontrow.web.api import FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.platform import Platform
from frontrow.web.shapes import MoneyView, Time, time_text

MAX_WORDS_CHARS = 200
CURSOR = r"^([0-9]{1,16}\.[A-Za-z0-9_.-]{1,40})?$"


class ShownStatus(StrEnum):
    """What the public sees of `EventStatus`: everything but drafts."""

    ON_SALE = "on_sale"
    SOLD_OUT = "sold_out"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class VenueView(msgspec.Struct):
    id: str
    name: str
    city: str
    country: str
    time_zone: Annotated[str, msgspec.Meta(examples=["Europe/Vienna"])]


class EventSummary(msgspec.Struct):
    """An event as a list shows it."""

    id: Annotated[str, msgspec.Meta(examples=["evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
    name: str
    status: str
    starts_at: Time
    sale_starts_at: Time
    sale_ends_at: Time
    paused: bool
    venue: VenueView | None
    from_price: MoneyView | None


class EventPage(msgspec.Struct):
    """Some events in order of their start; `next` is the cursor of the following page."""

    events: list[EventSummary]
    next: str | None = None


class FreeView(msgspec.Struct):
    """Free seats of a section or a price tier."""

    name: str
    free: int
    seats: int
    price: MoneyView | None = None


class EventView(EventSummary):
    """One event with its rules and what is free now."""

    description: str = ""
    max_per_person: int = 0
    hold_s: int = 0
    map_url: str = ""
    free: int = 0
    seats: int = 0
    sections: list[FreeView] = []
    tiers: list[FreeView] = []


@get(
    "/v1/events",
    operation_id="list_events",
    summary="Events, found by words, in order of their start",
    opt={"access": Access.PUBLIC},
)
async def list_events(
    platform: FromPlatform,
    q: Annotated[str, QueryParameter(max_length=MAX_WORDS_CHARS, description="all of these words")] = "",
    status: Annotated[ShownStatus | None, QueryParameter(description="only events that are so")] = None,
    cursor: Annotated[str, QueryParameter(max_length=60, pattern=CURSOR, description="`next` of the page before")] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 20,
) -> EventPage:
    wanted = EventStatus(status or EventStatus.ON_SALE)
    page = await platform.browse.search(q, status=wanted, after=_after(cursor), limit=limit)
    return EventPage([_summary(one) for one in page.listings], _cursor(page.after))


@get(
    "/v1/events/{event_id:str}",
    operation_id="get_event",
    summary="One event with what is free now",
    opt={"access": Access.PUBLIC},
)
async def get_event(platform: FromPlatform, event_id: FromPath[str]) -> EventView:
    event = await shown_event(platform, event_id)
    venue = await platform.ledger.venue(event.venue_id)
    known = _summary(Listing(event, venue))
    fields = {name: getattr(known, name) for name in known.__struct_fields__}
    return EventView(**fields, **_details(platform, event))


async def shown_event(platform: Platform, event_id: str) -> Event:
    """The event, unless it is a draft or does not exist."""
    event = platform.openings.events.get(event_id) or await platform.ledger.event(event_id)
    if event.status is EventStatus.DRAFT:
        raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
    return event


def _details(platform: Platform, event: Event) -> dict[str, Any]:
    details: dict[str, Any] = {
        "description": event.description,
        "max_per_person": event.max_per_person,
        "hold_s": event.hold_ttl_s,
    }
    drawn = platform.openings.maps.get(event.id)
    if drawn is not None:
        details["map_url"] = f"/v1/events/{event.id}/map/{drawn.hash}.json"
    if event.id in platform.openings:
        now = platform.browse.availability(event.id)
        sections = [FreeView(one.name, one.free, one.size) for one in now.sections]
        tiers = [_tier(one, event.currency) for one in now.tiers]
        details |= {"free": now.free, "seats": now.size, "sections": sections, "tiers": tiers}
    return details


def _tier(free: Free, currency: str) -> FreeView:
    return FreeView(free.name, free.free, free.size, MoneyView(free.price_minor, currency))


def _summary(listing: Listing) -> EventSummary:
    event = listing.event
    cheapest = min((tier.price.minor for tier in event.tiers), default=None)
    return EventSummary(
        event.id, event.name, event.status.value, time_text(event.starts_at_us), time_text(event.sale_starts_at_us),
        time_text(event.sale_ends_at_us), event.paused, _venue(listing.venue),
        None if cheapest is None else MoneyView(cheapest, event.currency),
    )  # fmt: skip


def _venue(venue: Venue | None) -> VenueView | None:
    if venue is None:
        return None
    return VenueView(venue.id, venue.name, venue.city, venue.country, venue.time_zone)


def _cursor(after: tuple[int, str] | None) -> str | None:
    return None if after is None else f"{after[0]}.{after[1]}"


def _after(cursor: str) -> tuple[int, str]:
    if not cursor:
        return (-1, "")
    if not re.match(CURSOR, cursor):
        raise InvalidInput("this cursor is not one of ours; begin without one", param="cursor")
    at_us, _, event_id = cursor.partition(".")
    return (int(at_us), event_id)


ROUTES: list[HTTPRouteHandler] = [list_events, get_event]
