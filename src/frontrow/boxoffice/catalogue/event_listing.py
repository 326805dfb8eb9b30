"""Browsing (B1): which events there are, found by words, and how many seats are free by section and by price tier.

Events come from the ledger's index (model.event_search). Free seats are counted in the states this server already has
(the map's, or its own belief), so a page of figures costs no store a question.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.model.event_search import EventSearch
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.venues import Plan, Venue


class Catalogue(Protocol):
    """What browsing needs of the ledger."""

    async def find_events(self, search: EventSearch) -> tuple[list[Event], bool]: ...

    async def seats_left(self, event_ids: Sequence[str]) -> dict[str, int]: ...

    async def venue(self, venue_id: str) -> Venue | None: ...


class Listing(msgspec.Struct, frozen=True):
    """An event with its venue and how many seats were free at the last count, as a list shows it."""

    event: Event
    venue: Venue | None
    seats_left: int | None = None


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

    async def search(self, search: EventSearch) -> Page:
        """One page of the events that a search finds."""
        shown, more = await self._catalogue.find_events(search)
        venue_ids = sorted({event.venue_id for event in shown})
        venues, left = await asyncio.gather(
            asyncio.gather(*(self._catalogue.venue(venue_id) for venue_id in venue_ids)),
            self._catalogue.seats_left([event.id for event in shown]),
        )
        by_id = dict(zip(venue_ids, venues, strict=True))
        listings = tuple(Listing(event, by_id[event.venue_id], left.get(event.id)) for event in shown)
        return Page(listings, (shown[-1].starts_at_us, shown[-1].id) if more else None)

    def forget(self, event_id: str) -> None:
        """The event is sold here no longer."""
        self._stretches.pop(event_id, None)

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
