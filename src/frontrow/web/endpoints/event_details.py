"""The details of one event: an `EndpointRequest` in, an `EndpointResponse` out, no framework.

Free seats are counted once for everybody: a response is cached until the map moves (a few times per second at most),
the event changes or a moment has passed (then the venue is read again). A client that has it already gets 304.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Protocol

import msgspec

from frontrow.boxoffice.events.event_listing import EventBrowser, FreeSeats, Listing
from frontrow.boxoffice.events.model.events import USUAL_CARD_TRIES, Event, EventNotFound, EventStatus
from frontrow.boxoffice.pricing.model.booking_choices import offered_types, priced_types
from frontrow.boxoffice.pricing.model.prices import PriceList, cheapest_minor
from frontrow.boxoffice.pricing.model.sale_options import TicketType
from frontrow.boxoffice.seats.map.map_feed import MapFeed
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.errors import FrontrowError
from frontrow.shared.local_time import time_text
from frontrow.web.http.bodies.json_values import MoneyView, Time
from frontrow.web.http.messages import (
    JSON,
    SHARED_CACHE,
    EndpointRequest,
    EndpointResponse,
    Result,
    encode_json,
    problem_answer,
)

CACHE_S: Final = 0.5
MAX_CACHED: Final = 1_000


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
    presale_starts_at: Time | None
    seats_left: Annotated[int | None, msgspec.Meta(description="free seats at the last count")] = None


class FreeView(msgspec.Struct):
    """Free seats of a section or a price tier. A seat costs `price` plus `fee`; 0 if the price includes the fees."""

    name: str
    free: int
    seats: int
    price: MoneyView | None = None
    fee: MoneyView | None = None


class BookingFeeView(msgspec.Struct):
    """A fee that is paid once per booking."""

    name: str
    amount: MoneyView


class TicketTypeView(msgspec.Struct):
    """A ticket type with its price per tier, chosen per seat at checkout. The first is the usual one."""

    key: str
    name: str
    note: str
    prices: dict[str, MoneyView]
    min_per_booking: int
    max_per_booking: int


class AddOnView(msgspec.Struct):
    """Something without a seat that can be added at checkout."""

    key: str
    name: str
    price: MoneyView
    max_per_booking: int


class EventView(EventSummary):
    """One event with its rules and what is free now."""

    description: str = ""
    max_per_person: int = 0
    hold_s: int = 0
    card_tries: int = USUAL_CARD_TRIES
    map_url: str = ""
    free: int = 0
    seats: int = 0
    sections: list[FreeView] = []
    tiers: list[FreeView] = []
    fees_shown: Annotated[
        str,
        msgspec.Meta(examples=["included"], description="`included` in every price, or `beside` every price"),
    ] = "included"
    booking_fees: list[BookingFeeView] = []
    show: Annotated[str, msgspec.Meta(description="shared by the dates of one show; empty: it has one date")] = ""
    ticket_types: list[TicketTypeView] = []
    add_ons: list[AddOnView] = []
    takes_codes: Annotated[bool, msgspec.Meta(description="codes can be given at checkout")] = False


class ShownEvents(Protocol):
    """What is read here."""

    async def event(self, event_id: str) -> Event: ...

    async def venue(self, venue_id: str) -> Venue | None: ...


class CachedEvent(msgspec.Struct, frozen=True):
    event: Event
    position: tuple[int, int]
    until_s: float
    tag: bytes
    answer: EndpointResponse


class MapFile(msgspec.Struct, frozen=True):
    """The geometry viewers get, named by its hash."""

    hash: str
    body: bytes


class EventViews:
    """The response for every event, built on request and cached for a moment. `events` are those sold here, with their
    drawn `maps`."""

    def __init__(
        self,
        events: Mapping[str, Event],
        maps: Mapping[str, MapFile],
        browse: EventBrowser,
        catalogue: ShownEvents,
        feeds: dict[str, MapFeed],
        count: Callable[[EndpointRequest], None],
    ) -> None:
        """`count` counts a request by its visit or its address."""
        self._events, self._maps, self._browse, self._catalogue = events, maps, browse, catalogue
        self._feeds, self._count = feeds, count
        self._cached: dict[str, CachedEvent] = {}
        self._building: dict[str, asyncio.Task[CachedEvent]] = {}
        self.built = 0

    def event(self, event_id: str, request: EndpointRequest) -> Result:
        """GET event: cached, or built once for all concurrent requests."""
        try:
            self._count(request)
        except FrontrowError as error:
            return problem_answer(error)
        cached = self._cached.get(event_id)
        if cached is not None and self._is_fresh(event_id, cached):
            return _respond(cached, request)
        return self._build_response(event_id, request)

    def _is_fresh(self, event_id: str, cached: CachedEvent) -> bool:
        same = cached.event is self._events.get(event_id) and cached.position == self._position(event_id)
        return same and time.monotonic() < cached.until_s

    async def _build_response(self, event_id: str, request: EndpointRequest) -> EndpointResponse:
        building = self._building.get(event_id)
        if building is None:
            building = self._building[event_id] = asyncio.create_task(
                self._build(event_id), name=f"event {event_id[:60]}"
            )
            building.add_done_callback(lambda done: self._forget_task(event_id, done))
        try:
            return _respond(await asyncio.shield(building), request)
        except FrontrowError as error:
            return problem_answer(error)

    def _forget_task(self, event_id: str, done: "asyncio.Task[CachedEvent]") -> None:
        self._building.pop(event_id, None)
        if not done.cancelled():
            done.exception()  # retrieved, because the callers may have left

    async def _build(self, event_id: str) -> CachedEvent:
        event = self._events.get(event_id)
        sold_here = event is not None
        event = event or await self._catalogue.event(event_id)
        if event.status is EventStatus.DRAFT:
            raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
        venue = await self._catalogue.venue(event.venue_id)
        position = self._position(event_id)
        body = encode_json(self._view(event, venue))
        tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
        answer = EndpointResponse(200, JSON + SHARED_CACHE + b"etag: " + tag + b"\r\n", body)
        cached = CachedEvent(event, position, time.monotonic() + CACHE_S, tag, answer)
        self.built += 1
        if sold_here:  # other events are too many to cache, and rarely requested
            if len(self._cached) >= MAX_CACHED:
                self._cached.pop(next(iter(self._cached)))
            self._cached[event_id] = cached
        return cached

    def forget(self, event_id: str) -> None:
        """Drop the cached response of an event that is no longer sold here."""
        self._cached.pop(event_id, None)

    def _position(self, event_id: str) -> tuple[int, int]:
        feed = self._feeds.get(event_id)
        return (feed.ring.epoch, feed.ring.seq) if feed is not None else (0, 0)

    def _view(self, event: Event, venue: Venue | None) -> EventView:
        listed = summary(Listing(event, venue))
        details: dict[str, Any] = {name: getattr(listed, name) for name in listed.__struct_fields__}
        drawn = self._maps.get(event.id)
        if drawn is not None:
            details["map_url"] = f"/v1/events/{event.id}/map/{drawn.hash}.json"
        if event.id in self._events:
            now = self._browse.availability(event.id)
            sections = [FreeView(one.name, one.free, one.size) for one in now.sections]
            tiers = [_tier(one, event.currency) for one in now.tiers]
            details |= {"free": now.free, "seats": now.size, "sections": sections, "tiers": tiers}
            details["seats_left"] = now.free
        return EventView(
            **details,
            description=event.description,
            max_per_person=event.max_per_person,
            hold_s=event.hold_ttl_s,
            card_tries=event.card_tries,
            fees_shown=event.fees_shown.value,
            booking_fees=[
                BookingFeeView(fee.name, MoneyView(fee.amount_minor, event.currency))
                for fee in PriceList(event).booking_fees
            ],
            show=event.show_id,
            ticket_types=type_views(event, offered_types(event)),
            add_ons=[
                AddOnView(one.key, one.name, MoneyView(one.price_minor, event.currency), one.max_per_booking)
                for one in event.add_ons
            ],
            takes_codes=bool(event.discounts),
        )


def _respond(cached: CachedEvent, request: EndpointRequest) -> EndpointResponse:
    given = request.header(b"if-none-match")
    if given is not None and cached.tag in given:
        return EndpointResponse(304, SHARED_CACHE + b"etag: " + cached.tag + b"\r\n")
    return cached.answer


def _tier(free: FreeSeats, currency: str) -> FreeView:
    price, fee = MoneyView(free.price_minor, currency), MoneyView(free.fee_minor, currency)
    return FreeView(free.name, free.free, free.size, price, fee)


def type_views(event: Event, types: Sequence[TicketType]) -> list[TicketTypeView]:
    """These ticket types with their prices."""
    return [
        TicketTypeView(
            one.type.key,
            one.type.name,
            one.type.note,
            {tier: MoneyView(minor, one.currency) for tier, minor in one.shown_minor.items()},
            one.type.min_per_booking,
            one.type.max_per_booking,
        )
        for one in priced_types(event, types)
    ]


def summary(listing: Listing) -> EventSummary:
    """An event as a list shows it."""
    event = listing.event
    cheapest = cheapest_minor(event)
    return EventSummary(
        event.id,
        event.name,
        event.status.value,
        time_text(event.starts_at_us),
        time_text(event.sale_starts_at_us),
        time_text(event.sale_ends_at_us),
        event.paused,
        _venue(listing.venue),
        None if cheapest is None else MoneyView(cheapest, event.currency),
        time_text(event.presale_starts_at_us) if event.presale_starts_at_us else None,
        listing.seats_left,
    )


def _venue(venue: Venue | None) -> VenueView | None:
    if venue is None:
        return None
    return VenueView(venue.id, venue.name, venue.city, venue.country, venue.time_zone)
