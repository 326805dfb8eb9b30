"""Events and seats as pages show them: what state a sale is in, and seats by their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from frontrow.boxoffice.events.event_listing import EventAvailability
from frontrow.boxoffice.events.model.event_status import is_nearly_sold_out
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.pricing.model.booking_choices import PricedType, offered_types, priced_types
from frontrow.boxoffice.pricing.model.prices import PriceList, TierPrice
from frontrow.boxoffice.seats.model.venues import Plan, Section, Venue
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_

# state of a sale -> (kind of chip, label)
CHIPS: Final = {
    "draft": ("", N_("Draft")),
    "open": ("ok", N_("On sale now")),
    "few": ("warn", N_("Few left")),
    "soon": ("brand", N_("Sale opens soon")),
    "presale": ("brand", N_("Presale")),
    "paused": ("warn", N_("Paused for a moment")),
    "sold_out": ("bad", N_("Sold out")),
    "over": ("", N_("Sale has ended")),
    "completed": ("", N_("Ended")),
    "cancelled": ("bad", N_("Cancelled")),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One event, ready for a template."""

    event: Event
    venue: Venue | None
    state: str
    free: EventAvailability | None

    @property
    def zone(self) -> str:
        return self.venue.time_zone if self.venue and self.venue.time_zone else "UTC"

    @property
    def place(self) -> str:
        return ", ".join(part for part in (self.venue.name, self.venue.city) if part) if self.venue else ""

    @property
    def city(self) -> str:
        return self.venue.city if self.venue else ""

    @property
    def map_url(self) -> str:
        """Where a map of the place is shown; empty if there is no place."""
        if not self.place:
            return ""
        query = urlencode({"query": ", ".join(filter(None, (self.place, self.venue.country if self.venue else "")))})
        return f"https://www.openstreetmap.org/search?{query}"

    @property
    def chip(self) -> tuple[str, str]:
        return CHIPS[self.state]

    @property
    def cheapest(self) -> TierPrice | None:
        """What a seat of the cheapest price tier costs, if the event has prices."""
        return min(self.prices.tiers.values(), key=lambda tier: tier.shown_minor, default=None)

    @property
    def ticket_types(self) -> list[PricedType]:
        """The ticket types that everybody may choose, with their prices; none before there are prices."""
        return priced_types(self.event, offered_types(self.event)) if self.event.tiers else []

    @property
    def prices(self) -> PriceList:
        """What its seats cost, as pages show it."""
        return PriceList(self.event)


def shown(platform: Platform, event: Event, venue: Venue | None) -> Shown:
    """The event with the state of its sale at this moment."""
    free = platform.box_office.browse.availability(event.id) if event.id in platform.box_office.openings else None
    return Shown(event, venue, sale_state(event, platform.clock(), free), free)


def sale_state(event: Event, now_us: int, free: EventAvailability | None) -> str:
    """One of the keys of CHIPS."""
    if event.status is not EventStatus.ON_SALE:
        return event.status.value
    if now_us < event.opens_at_us:
        return "soon"
    if now_us >= event.sale_ends_at_us:
        return "over"
    if event.paused:
        return "paused"
    if now_us < event.sale_starts_at_us:
        return "presale"
    if free is not None and free.free == 0:
        return "sold_out"
    if free is not None and is_nearly_sold_out(free.free, free.size):
        return "few"
    return "open"


def section_of(plan: Plan, section_id: str) -> tuple[int, Section] | None:
    """A section and the index of its first seat."""
    for base, section in zip(plan.bases, plan.sections, strict=True):
        if section.id == section_id:
            return base, section
    return None


async def seat_places(platform: Platform, event_id: str, seat_ids: Sequence[str]) -> list[tuple[str, str, str]]:
    """Section, row and number of seats, by the names that the organiser gave them."""
    labels = await platform.box_office.renderer.seat_labels(await platform.ledger.catalogue.event(event_id))
    return [labels.parts(one) for one in seat_ids]
