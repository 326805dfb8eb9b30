"""One event as the public sees it, for both doors: an `Ask` in, an `Answer` out, no framework.

What is free is counted once for everybody: an answer is kept until the map moves (a few times a second at most), the
event changes or a moment has passed (then the venue is read again). Who has it already hears 304.
"""

import asyncio
import hashlib
import time
from typing import Annotated, Any, Final, Protocol

import msgspec

from frontrow.boxoffice.catalogue.event_listing import Browse, Free, Listing
from frontrow.boxoffice.model.events import Event, EventNotFound, EventStatus
from frontrow.boxoffice.model.venues import Venue
from frontrow.boxoffice.seatmap.map_feed import MapFeed
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.door.door_limits import Entry
from frontrow.web.endpoints.json_values import MoneyView, Time, time_text
from frontrow.web.endpoints.messages import JSON, Answer, Ask, encode_json, problem_answer
from frontrow.web.endpoints.room_visitors import Result
from frontrow.web.platform.event_openings import Openings

KEPT_S: Final = 0.5
MAX_KEPT: Final = 1_000


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
    card_tries: int = 1
    map_url: str = ""
    free: int = 0
    seats: int = 0
    sections: list[FreeView] = []
    tiers: list[FreeView] = []


class ShownEvents(Protocol):
    """What is read here."""

    async def event(self, event_id: str) -> Event: ...

    async def venue(self, venue_id: str) -> Venue | None: ...


class _Kept(msgspec.Struct, frozen=True):
    event: Event
    position: tuple[int, int]
    until_s: float
    tag: bytes
    answer: Answer


class EventViews:
    """Every event's answer, made when it is asked for and kept for a moment."""

    def __init__(
        self, openings: Openings, browse: Browse, catalogue: ShownEvents, feeds: dict[str, MapFeed], entry: Entry
    ) -> None:
        self._openings, self._browse, self._catalogue = openings, browse, catalogue
        self._feeds, self._entry = feeds, entry
        self._kept: dict[str, _Kept] = {}
        self._making: dict[str, asyncio.Task[_Kept]] = {}
        self.made = 0

    def event(self, event_id: str, ask: Ask) -> Result:
        """GET event: kept, or made once for all who ask meanwhile."""
        try:
            self._entry.knock_ip(self._ip(ask))
        except FrontrowError as error:
            return problem_answer(error)
        kept = self._kept.get(event_id)
        if kept is not None and self._fresh(event_id, kept):
            return _told(kept, ask)
        return self._made(event_id, ask)

    def _fresh(self, event_id: str, kept: _Kept) -> bool:
        same = kept.event is self._openings.events.get(event_id) and kept.position == self._position(event_id)
        return same and time.monotonic() < kept.until_s

    async def _made(self, event_id: str, ask: Ask) -> Answer:
        making = self._making.get(event_id)
        if making is None:
            making = self._making[event_id] = asyncio.create_task(self._make(event_id), name=f"event {event_id[:60]}")
            making.add_done_callback(lambda done: self._over(event_id, done))
        try:
            return _told(await asyncio.shield(making), ask)
        except FrontrowError as error:
            return problem_answer(error)

    def _over(self, event_id: str, done: "asyncio.Task[_Kept]") -> None:
        self._making.pop(event_id, None)
        if not done.cancelled():
            done.exception()  # looked at: whoever asked may have left

    async def _make(self, event_id: str) -> _Kept:
        event = self._openings.events.get(event_id)
        sold_here = event is not None
        event = event or await self._catalogue.event(event_id)
        if event.status is EventStatus.DRAFT:
            raise EventNotFound(f"there is no event {event_id[:60]}", event=event_id[:60])
        venue = await self._catalogue.venue(event.venue_id)
        position = self._position(event_id)
        body = encode_json(self._view(event, venue))
        tag = b'"' + hashlib.blake2s(body, digest_size=9).hexdigest().encode() + b'"'
        answer = Answer(200, JSON + b"etag: " + tag + b"\r\n", body)
        kept = _Kept(event, position, time.monotonic() + KEPT_S, tag, answer)
        self.made += 1
        if sold_here:  # of others there are too many to keep, and nobody rushes to them
            if len(self._kept) >= MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[event_id] = kept
        return kept

    def forget(self, event_id: str) -> None:
        """The event is sold here no longer."""
        self._kept.pop(event_id, None)

    def _position(self, event_id: str) -> tuple[int, int]:
        feed = self._feeds.get(event_id)
        return (feed.ring.epoch, feed.ring.seq) if feed is not None else (0, 0)

    def _view(self, event: Event, venue: Venue | None) -> EventView:
        known = summary(Listing(event, venue))
        details: dict[str, Any] = {name: getattr(known, name) for name in known.__struct_fields__}
        drawn = self._openings.maps.get(event.id)
        if drawn is not None:
            details["map_url"] = f"/v1/events/{event.id}/map/{drawn.hash}.json"
        if event.id in self._openings:
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
        )

    def _ip(self, ask: Ask) -> str:
        if self._entry.trusts_nobody:
            return self._entry.ip_of(ask.peer)
        return self._entry.ip_of(ask.peer, [value.decode("latin-1") for value in ask.all(b"x-forwarded-for")])


def _told(kept: _Kept, ask: Ask) -> Answer:
    given = ask.header(b"if-none-match")
    if given is not None and kept.tag in given:
        return Answer(304, b"etag: " + kept.tag + b"\r\n")
    return kept.answer


def _tier(free: Free, currency: str) -> FreeView:
    return FreeView(free.name, free.free, free.size, MoneyView(free.price_minor, currency))


def summary(listing: Listing) -> EventSummary:
    """An event as a list shows it."""
    event = listing.event
    cheapest = min((tier.price.minor for tier in event.tiers), default=None)
    return EventSummary(
        event.id, event.name, event.status.value, time_text(event.starts_at_us), time_text(event.sale_starts_at_us),
        time_text(event.sale_ends_at_us), event.paused, _venue(listing.venue),
        None if cheapest is None else MoneyView(cheapest, event.currency),
        time_text(event.presale_starts_at_us) if event.presale_starts_at_us else None, listing.seats_left,
    )  # fmt: skip


def _venue(venue: Venue | None) -> VenueView | None:
    if venue is None:
        return None
    return VenueView(venue.id, venue.name, venue.city, venue.country, venue.time_zone)
