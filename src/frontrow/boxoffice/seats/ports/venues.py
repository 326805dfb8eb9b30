"""The ports of venues: plans and venues that events refer to, and venues as their organiser writes them."""

from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.seats.model.venues import OwnVenue, Plan, Venue


class VenueReads(Protocol):
    """Plans and venues, as everybody may read them (`ledger.catalogue`)."""

    async def plan_document(self, plan_hash: str) -> str | None:
        """The document stored under this hash."""
        ...

    async def venue(self, venue_id: str) -> Venue | None: ...


class PlanBook(VenueReads, Protocol):
    """Plans and venues (`ledger.catalogue`)."""

    async def put_plan(self, plan_hash: str, plan: Plan, document: str, now_us: int) -> None:
        """Store a plan, its document and its seats under its hash. A known hash is the same plan."""
        ...

    async def put_venue(self, venue: Venue, now_us: int) -> None:
        """Create or change a venue. Its events are found by its new name from then on."""
        ...


class VenueBook(Protocol):
    """Venues of organisers (`ledger.organiser`). Every change is written with the note of who made it."""

    async def add_venue(self, venue: Venue, change: Change) -> None: ...

    async def own_venue(self, organiser_id: str, venue_id: str) -> OwnVenue | None: ...

    async def own_venues(self, organiser_id: str, after: str, limit: int) -> list[OwnVenue]:
        """The organiser's venues by id, from after `after` on."""
        ...

    async def swap_venue(self, was: OwnVenue, venue: Venue, change: Change) -> bool:
        """Change the venue from `was`. False when somebody else changed it first."""
        ...


class VenueLedger(Protocol):
    """The books that venues use."""

    @property
    def catalogue(self) -> PlanBook: ...

    @property
    def organiser(self) -> VenueBook: ...
