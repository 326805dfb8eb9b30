"""The ports of events. The docstrings are the contract; tests/contracts checks it over every adapter."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.event_changes import Cancellation, Change
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.event_status import EventStatusChange
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.seats.ports.venues import PlanBook, VenueBook, VenueReads


class EventReads(VenueReads, Protocol):
    """What is sold, as everybody may read it (`ledger.catalogue`)."""

    async def event(self, event_id: str) -> Event:
        """The event, or `EventNotFound`."""
        ...

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """Events ordered by (starts_at_us, id), from after that pair on."""
        ...

    async def events_of_organiser(
        self, organiser_id: str, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """An organiser's events of any status, in the same order."""
        ...

    async def dates_of_show(self, show_id: str, from_us: int, limit: int) -> list[Event]:
        """The dates of one show that start at `from_us` or later, drafts included, in order of their start."""
        ...

    async def find_events(self, search: EventSearch) -> tuple[list[Event], bool]:
        """A page of search results in the same order, and whether there are more."""
        ...

    async def listed_currencies(self) -> list[str]:
        """The currencies of events on sale."""
        ...

    async def seats_left(self, event_ids: Sequence[str]) -> dict[str, int]:
        """The free seats of these events at their last count."""
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

    async def ended_events(self, now_us: int, limit: int) -> list[str]:
        """Events on sale or sold out that are over."""
        ...

    async def stale_counts(self, before_us: int, limit: int) -> list[str]:
        """Events on sale or sold out whose seats were last counted before `before_us`, oldest count first."""
        ...


class Catalogue(EventReads, PlanBook, Protocol):
    """What is sold: plans, venues, and events with their price tiers (`ledger.catalogue`)."""

    async def put_event(self, event: Event, now_us: int) -> None:
        """Create or change an event with its price tiers, in one transaction."""
        ...

    async def update_event_status(self, event_id: str, now_us: int) -> EventStatusChange | None:
        """Count the event's free seats and move its status if that is due, in one transaction."""
        ...


class OwnEventReads(Protocol):
    """Events of organisers, as everybody may read them (`ledger.organiser`)."""

    async def event_document(self, event_id: str) -> str | None:
        """The event's document exactly as stored, for `swap_event`."""
        ...

    async def taken_seats(self, event_id: str, seats: Sequence[int], now_us: int) -> list[int]:
        """The seats among these that are sold or held."""
        ...

    async def cancellation(self, event_id: str) -> Cancellation | None:
        """How far the refunds of a cancelled event are."""
        ...


class EventBook(OwnEventReads, VenueBook, Protocol):
    """Events and venues of organisers (`ledger.organiser`). Every change is written with the note of who made it."""

    async def add_event(self, event: Event, change: Change) -> bool:
        """False when an event with this id exists."""
        ...

    async def add_dates(self, was: str, event: Event, dates: Sequence[Event], change: Change) -> int | None:
        """Add further dates of the event's show; returns how many. Dates the show has already are left out.

        None when somebody else changed the event since `was`. `event` has its `show_id`.
        """
        ...

    async def swap_event(
        self,
        was: str,
        event: Event,
        change: Change,
        *,
        tax_rates: tuple[int, int] | None = None,
        left_picture: str = "",
        starts_refunds: bool = False,
    ) -> bool:
        """Change the event from the document `was`. False when somebody else changed it first.

        In the same transaction: `tax_rates` are kept as the rate until now and from now on, `left_picture` is checked
        later and deleted if nothing shows it, and `starts_refunds` makes the job that refunds everyone.
        """
        ...

    async def begin_cancellation(self, change: Change) -> None:
        """Make the job that refunds everyone for the event of the change. Safe to repeat."""
        ...

    async def seller(self, organiser_id: str) -> Seller | None:
        """An organiser's seller details, if there are any."""
        ...


class PictureBook(Protocol):
    """Pictures and logos by their hash (`ledger.pictures`). A picture never changes, because its hash is its name."""

    async def add(self, picture_hash: str, organiser_id: str, body: bytes, now_us: int) -> None:
        """Keep a picture. A known one stays as it is; whether it is used is checked some time later."""
        ...

    async def find(self, picture_hash: str) -> bytes | None: ...

    async def to_check(self, now_us: int, limit: int) -> list[tuple[str, int]]:
        """Pictures that may be used no more, each with the time at which that was to be checked."""
        ...

    async def drop_unused(self, picture_hash: str, check_at_us: int, now_us: int) -> bool:
        """Delete the picture if no event and no brand shows it. False if one does, or it was uploaded again."""
        ...


class EventLedger(Protocol):
    """The books that events use."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def organiser(self) -> EventBook: ...

    @property
    def pictures(self) -> PictureBook: ...
