"""The ports of events. The docstrings are the contract; tests/contracts checks it over every adapter."""

from typing import Protocol

from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.seats.model.venues import Plan, Venue


class Catalogue(Protocol):
    """What is sold: plans, venues, and events with their price tiers (`ledger.catalogue`)."""

    async def put_plan(self, plan_hash: str, plan: Plan, document: str, now_us: int) -> None:
        """Store a plan, its document and its seats under its hash. A known hash is the same plan."""
        ...

    async def plan_document(self, plan_hash: str) -> str | None:
        """The document stored under this hash."""
        ...

    async def put_venue(self, venue: Venue, now_us: int) -> None:
        """Create or change a venue."""
        ...

    async def venue(self, venue_id: str) -> Venue | None: ...

    async def put_event(self, event: Event, now_us: int) -> None:
        """Create or change an event with its price tiers, in one transaction."""
        ...

    async def event(self, event_id: str) -> Event:
        """The event, or `EventNotFound`."""
        ...

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """Events ordered by (starts_at_us, id), from after that pair on."""
        ...

    async def dates_of_show(self, show_id: str, from_us: int, limit: int) -> list[Event]:
        """The dates of one show that start at `from_us` or later, drafts included, in order of their start."""
        ...

    async def find_events(self, search: EventSearch) -> tuple[list[Event], bool]:
        """A page of search results in the same order, and whether there are more."""
        ...

    async def newest_change(self) -> int:
        """The number of the newest change of any event. Numbers become visible in their order."""
        ...

    async def live_events(self, after: tuple[int, str], limit: int) -> list[Event]:
        """Events on sale or sold out, ordered by (starts_at_us, id)."""
        ...

    async def changed_events(self, after: tuple[int, str], limit: int) -> list[tuple[int, str, Event | None]]:
        """Changes after that pair in order, as (number, id, event). The event is None if it is not for sale."""
        ...
