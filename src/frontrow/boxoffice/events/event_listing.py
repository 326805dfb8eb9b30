"""The event list (B1): events found by a search, and their free seats by section and by price tier.

Events come from the ledger's index (events.model.event_search). Free seats are counted in the states that this server
already has (the map or the seat cache), so a page of figures asks no store.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.show_dates import MAX_DATES
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.seats.model.venues import Plan, Venue


class Listing(msgspec.Struct, frozen=True):
    """An event in a list, with its venue and the number of free seats at the last count."""

    event: Event
    venue: Venue | None
    seats_left: int | None = None


class ListingPage(msgspec.Struct, frozen=True):
    """Listings in order of their start. `after` is the start of the next page; None: this is the last."""

    listings: tuple[Listing, ...]
    after: tuple[int, str] | None


class FreeSeats(msgspec.Struct, frozen=True):
    """Free seats of a section or a price tier, with the price as it is shown and the fee beside it (0 for sections)."""

    name: str
    free: int
    size: int
    price_minor: int = 0
    fee_minor: int = 0


class EventAvailability(msgspec.Struct, frozen=True):
    event_id: str
    free: int
    size: int
    sections: tuple[FreeSeats, ...]
    tiers: tuple[FreeSeats, ...]


class EventBrowser:
    """Searches events and counts their free seats."""

    def __init__(
        self, catalogue: Catalogue, sales: Sales, states: Callable[[str], bytes | bytearray] | None = None
    ) -> None:
        self._catalogue, self._sales = catalogue, sales
        self._states = states or (lambda event_id: sales.get(event_id).seats.states)
        self._tier_ranges: dict[str, tuple[Plan, dict[str, list[tuple[int, int]]]]] = {}

    async def search(self, search: EventSearch) -> ListingPage:
        """One page of the events that a search finds."""
        shown, more = await self._catalogue.find_events(search)
        listings = await self._listings(shown)
        return ListingPage(listings, (shown[-1].starts_at_us, shown[-1].id) if more else None)

    async def dates_of(self, event: Event, now_us: int) -> tuple[Listing, ...]:
        """The public dates of the event's show that have not started, the event itself included."""
        if not event.show_id:
            return await self._listings([event])
        found = await self._catalogue.dates_of_show(event.show_id, now_us, MAX_DATES)
        return await self._listings([one for one in found if one.status is not EventStatus.DRAFT])

    async def _listings(self, shown: Sequence[Event]) -> tuple[Listing, ...]:
        venue_ids = sorted({event.venue_id for event in shown})
        venues, left = await asyncio.gather(
            asyncio.gather(*(self._catalogue.venue(venue_id) for venue_id in venue_ids)),
            self._catalogue.seats_left([event.id for event in shown]),
        )
        by_id = dict(zip(venue_ids, venues, strict=True))
        return tuple(Listing(event, by_id[event.venue_id], left.get(event.id)) for event in shown)

    def forget(self, event_id: str) -> None:
        """Drop what is cached for an event that is no longer sold here."""
        self._tier_ranges.pop(event_id, None)

    def availability(self, event_id: str) -> EventAvailability:
        """The number of free seats: in total, by section and by price tier."""
        sale = self._sales.get(event_id)
        plan, states = sale.plan, self._states(event_id)
        sections = tuple(
            FreeSeats(section.id, states.count(0, base, base + section.size), section.size)
            for base, section in zip(plan.bases, plan.sections, strict=True)
        )
        prices = sale.prices.tiers
        tiers = tuple(
            FreeSeats(
                key,
                sum(states.count(0, *ends) for ends in own),
                sum(b - a for a, b in own),
                prices[key].shown_minor,
                prices[key].beside_minor,
            )
            for key, own in self._ranges_by_tier(event_id, plan).items()
        )
        return EventAvailability(event_id, states.count(0), plan.size, sections, tiers)

    def _ranges_by_tier(self, event_id: str, plan: Plan) -> dict[str, list[tuple[int, int]]]:
        """The seats of each tier as ranges of indexes; computed once per plan."""
        cached = self._tier_ranges.get(event_id)
        if cached is None or cached[0] is not plan:
            ranges: dict[str, list[tuple[int, int]]] = {}
            begin = 0
            for index in range(1, plan.size + 1):
                if index == plan.size or plan.seats[index].tier != plan.seats[begin].tier:
                    ranges.setdefault(plan.seats[begin].tier, []).append((begin, index))
                    begin = index
            cached = self._tier_ranges[event_id] = (plan, ranges)
        return cached[1]
