"""Several dates of one show (B13): drafts like one event, made at once, and published at once.

The dates know each other by their `show_id`. A repeated request adds nothing: dates that the show has are left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from frontrow.boxoffice.events.event_editing import OrganiserEvents, check_draft
from frontrow.boxoffice.events.model.event_changes import Change, ChangedMeanwhile, Editor
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.published_changes import FINAL, FixedOncePublished
from frontrow.boxoffice.events.model.show_dates import MAX_DATES, SaleOpening, further_dates, moments_of
from frontrow.boxoffice.events.ports import EventLedger
from frontrow.core.clock import Clock
from frontrow.shared.ids import Ids

MAX_TRIES: Final = 20


class AddedDates(msgspec.Struct, frozen=True):
    """All dates of a show in order, and how many of them were added just now."""

    events: tuple[Event, ...]
    added: int


class ShowDates:
    """Makes and publishes the dates of a show."""

    def __init__(self, ledger: EventLedger, events: OrganiserEvents, clock: Clock, ids: Ids) -> None:
        self._ledger, self._events, self._clock, self._ids = ledger, events, clock, ids

    async def of(self, editor: Editor, event_id: str) -> tuple[Event, ...]:
        """All dates of the event's show, drafts included; only the event itself if it has one date."""
        event, _ = await self._events.read(editor, event_id)
        return await self._dates(event)

    async def plan(self, editor: Editor, event_id: str, dates: Sequence[datetime], opening: SaleOpening) -> list[Event]:
        """The drafts that `add` would make, without those the show has; nothing is written."""
        event, _ = await self._events.read(editor, event_id)
        known = {one.starts_at_us for one in await self._dates(event)}
        return [one for one in await self._drafts(event, dates, opening) if one.starts_at_us not in known]

    async def add(self, editor: Editor, event_id: str, dates: Sequence[datetime], opening: SaleOpening) -> AddedDates:
        """Make a draft per date, all or none, like the event in everything but its times."""
        for _ in range(MAX_TRIES):
            event, document = await self._events.read(editor, event_id)
            if event.status in FINAL:
                raise FixedOncePublished(f"an event that is {event.status.value} gets no further dates")
            first = replace(event, show_id=event.show_id or self._ids.new("shw"))
            drafts = await self._drafts(first, dates, opening)
            detail = {"dates": len(drafts), "opening": opening.value}
            change = Change(editor, "add_dates", event_id, self._clock(), detail)
            added = await self._ledger.organiser.add_dates(document, first, drafts, change)
            if added is not None:
                return AddedDates(await self._dates(first), added)
        raise ChangedMeanwhile("this event is being changed by others; try again", param="If-Match")

    async def publish(self, editor: Editor, event_id: str) -> tuple[Event, ...]:
        """Publish every draft of the show, in order of their start. The first that cannot be published says why."""
        for event in await self.of(editor, event_id):
            if event.status is EventStatus.DRAFT:
                await self._events.publish(editor, event.id)
        return await self.of(editor, event_id)

    async def _drafts(self, event: Event, dates: Sequence[datetime], opening: SaleOpening) -> list[Event]:
        venue = await self._ledger.catalogue.venue(event.venue_id)
        zone = venue.time_zone if venue else "UTC"
        starts = moments_of(dates, zone)
        drafts = further_dates(event, [self._ids.new("evt") for _ in starts], starts, zone, opening)
        plan = await self._events.venues.plan(event.plan_hash)
        for draft in drafts:
            check_draft(draft, plan)
        return drafts

    async def _dates(self, event: Event) -> tuple[Event, ...]:
        if not event.show_id:
            return (event,)
        found = await self._ledger.catalogue.dates_of_show(event.show_id, 0, MAX_DATES)
        return tuple(one for one in found if one.organiser_id == event.organiser_id)
