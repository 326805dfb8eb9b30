"""Browsing (B1): which events there are, found by words, and how many seats are free by section and by price tier.

Events come from the ledger's catalogue. Free seats are counted in the states this server already has (the map's, or its
own belief), so a page of figures costs no store a question.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.venues import Plan, Venue
from frontrow.boxoffice.services.sales import Sales
from frontrow.core.errors import InvalidInput

MAX_PAGE = 100
MAX_PAGES_SEARCHED = 20
MAX_WORDS = 10


class Catalogue(Protocol):
    """What browsing needs of the ledger."""

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]: ...

    async def venue(self, venue_id: str) -> Venue | None: ...


class Listing(msgspec.Struct, frozen=True):
    """An event with its venue, as a list shows it."""

    event: Event
    venue: Venue | None


class Page(msgspec.Struct, frozen=True):
    """Some listings in order of their start; `after` continues, None: that was all."""

    listings: tuple[Listing, ...]
    after: tuple[int, str] | None


class Free(msgspec.Struct, frozen=True):
    """Free seats of a section or a price tier. `price_minor` is 0 for sections."""

    name: str
    free: int
    size: int
    price_minor: int = 0


class EventAvailability(msgspec.Struct, frozen=True):
    event_id: str
    free: int
    size: int
    sections: tuple[Free, ...]
    tiers: tuple[Free, ...]


class Browse:
    """Lists, searches and counts."""

    def __init__(
        self, catalogue: Catalogue, sales: Sales, states: Callable[[str], bytes | bytearray] | None = None
    ) -> None:
        self._catalogue, self._sales = catalogue, sales
        self._states = states or (lambda event_id: sales.get(event_id).seats.states)
        self._stretches: dict[str, tuple[Plan, dict[str, list[tuple[int, int]]]]] = {}

    async def search(
        self,
        words: str = "",
        *,
        status: EventStatus | None = EventStatus.ON_SALE,
        after: tuple[int, str] = (-1, ""),
        limit: int = 20,
    ) -> Page:
        """Events whose name, description, venue or city has all the words; looks through a bounded number."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"limit must be 1 to {MAX_PAGE}, not {limit}", param="limit")
        wanted = words.casefold().split()[:MAX_WORDS]
        found: list[Listing] = []
        venues: dict[str, Venue | None] = {}
        for _ in range(MAX_PAGES_SEARCHED):
            events = await self._catalogue.events(status, after, MAX_PAGE)
            for event in events:
                after = (event.starts_at_us, event.id)
                if event.venue_id not in venues:
                    venues[event.venue_id] = await self._catalogue.venue(event.venue_id)
                listing = Listing(event, venues[event.venue_id])
                if _matches(listing, wanted):
                    found.append(listing)
                    if len(found) == limit:
                        return Page(tuple(found), after)
            if len(events) < MAX_PAGE:
                return Page(tuple(found), None)
        return Page(tuple(found), after)

    def availability(self, event_id: str) -> EventAvailability:
        """How many seats are free, in all, by section and by price tier."""
        sale = self._sales.get(event_id)
        plan, states = sale.plan, self._states(event_id)
        sections = tuple(
            Free(section.id, states.count(0, base, base + section.size), section.size)
            for base, section in zip(plan.bases, plan.sections, strict=True)
        )
        prices = {tier.key: tier.price.minor for tier in sale.event.tiers}
        tiers = tuple(
            Free(key, sum(states.count(0, *ends) for ends in own), sum(b - a for a, b in own), prices.get(key, 0))
            for key, own in self._tier_stretches(event_id, plan).items()
        )
        return EventAvailability(event_id, states.count(0), plan.size, sections, tiers)

    def _tier_stretches(self, event_id: str, plan: Plan) -> dict[str, list[tuple[int, int]]]:
        """Each tier's seats as stretches of indexes; found once a plan."""
        known = self._stretches.get(event_id)
        if known is None or known[0] is not plan:
            stretches: dict[str, list[tuple[int, int]]] = {}
            begin = 0
            for index in range(1, plan.size + 1):
                if index == plan.size or plan.seats[index].tier != plan.seats[begin].tier:
                    stretches.setdefault(plan.seats[begin].tier, []).append((begin, index))
                    begin = index
            known = self._stretches[event_id] = (plan, stretches)
        return known[1]


def _matches(listing: Listing, words: list[str]) -> bool:
    event, venue = listing.event, listing.venue
    parts = [event.name, event.description, *((venue.name, venue.city, venue.country) if venue else ())]
    text = " ".join(parts).casefold()
    return all(word in text for word in words)
