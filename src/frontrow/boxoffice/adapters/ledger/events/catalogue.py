"""The ledger's catalogue: plans, venues and events with their price tiers. Written rarely, read often.

An event and a plan are stored whole as documents, beside the columns and rows that lists, reports and constraints need.
Every change is noted in the audit log.
"""

import asyncio
import functools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerReader, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.statements import WORD_SLOTS
from frontrow.boxoffice.adapters.ledger.events.event_index import index_events, index_venue
from frontrow.boxoffice.adapters.ledger.events.event_status import update_event_status
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.events.model.event_search import EventSearch, term_bounds
from frontrow.boxoffice.events.model.event_status import EventStatusChange
from frontrow.boxoffice.events.model.events import Event, EventNotFound, EventStatus
from frontrow.boxoffice.facts.model import Fact
from frontrow.boxoffice.seats.model.venues import Plan, Venue

MAX_CURRENCIES: Final = 50
NO_BOUND: Final = -(2**62)  # lower bound of free seats; an outdated count may be negative
LISTING_GROUPS: Final = {
    EventStatus.DRAFT: 0,
    None: 1,
    EventStatus.ON_SALE: 1,
    EventStatus.SOLD_OUT: 1,
    EventStatus.COMPLETED: 2,
    EventStatus.CANCELLED: 3,
}
# A search starts from a condition that few events meet. Otherwise it scans events in order until a page is full.
RARE: Final = 2_000
MAX_FIRST: Final = 20_000  # for several words: a scan of all events could run long without finding anything


class SqlCatalogue:
    """What is sold (`events.ports.Catalogue`)."""

    def __init__(self, store: LedgerReader, line: CommitLine, reads: ReadsByKey) -> None:
        self._store, self._line, self._reads = store, line, reads
        self.version = 0  # counts this process's changes; other processes' changes are found by reading again

    async def put_plan(self, plan_hash: str, plan: Plan, document: str, now_us: int) -> None:
        """Store a plan, its document and its seats under its hash. A known hash is the same plan."""
        seats = [
            (plan_hash, index, seat_id, seat.tier, int(seat.flags))
            for index, (seat_id, seat) in enumerate(zip(plan.seat_ids, plan.seats, strict=True))
        ]
        queries = (
            Query("put_plans", [(plan_hash, plan.name, plan.size, document, now_us)]),
            Query("put_seats", seats),
        )
        await self._write(queries, {"act": "put_plan", "plan": plan_hash, "seats": plan.size}, now_us)

    async def plan_document(self, plan_hash: str) -> str | None:
        """The document stored under this hash."""
        rows: list[Row] = await self._store.read(Query("plan_document", params=(plan_hash,)))
        return str(rows[0][0]) if rows else None

    async def put_venue(self, venue: Venue, now_us: int) -> None:
        """Create or change a venue. Its events are found by its new name from then on."""
        row = (venue.id, venue.name, venue.plan_hash, venue.city, venue.country, venue.time_zone, now_us)

        def program(facts: list[Fact]) -> Program[bool]:
            yield Query("put_venues", [row])
            yield from index_venue(venue)
            return True

        await self._change(program, {"act": "put_venue", "venue": venue.id}, now_us)

    async def venue(self, venue_id: str) -> Venue | None:
        rows = await self._reads["venues_by_id"].read(venue_id)
        return Venue(*rows[0]) if rows else None

    async def put_event(self, event: Event, now_us: int) -> None:
        """Create or change an event with its price tiers, in one transaction."""
        await self.put_events([event], now_us)

    async def put_events(self, events: Sequence[Event], now_us: int) -> None:
        """Create or change several events in one transaction."""
        rows = [_row(event, now_us) for event in events]
        tiers = [(event.id, t.key, t.name, t.price.minor, t.price.currency) for event in events for t in event.tiers]

        def program(facts: list[Fact]) -> Program[bool]:
            yield Query("put_events", rows)
            yield Query("drop_tiers", [(event.id,) for event in events])
            if tiers:
                yield Query("put_tiers", tiers)
            yield from index_events(events)
            return True

        one = {"event": events[0].id, "status": events[0].status} if len(events) == 1 else {"events": len(events)}
        await self._change(program, {"act": "put_event", **one, "at_us": now_us}, now_us)

    async def event(self, event_id: str) -> Event:
        """The event, or EventNotFound."""
        rows = await self._reads["events_by_id"].read(event_id)
        if not rows:
            raise EventNotFound(f"there is no event {event_id}", event=event_id)
        return msgspec.json.decode(rows[0][1], type=Event)

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """Events ordered by (starts_at_us, id), from after that pair on."""
        params = (status or "", after[0], after[1], max(1, min(limit, 1_000)))
        rows: list[Row] = await self._store.read(Query("events_page", params=params))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def events_of_organiser(
        self, organiser_id: str, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """An organiser's events of any status, in the same order."""
        params = (organiser_id, after[0], after[1], max(1, min(limit, 1_000)))
        rows: list[Row] = await self._store.read(Query("events_of_organiser", params=params))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def dates_of_show(self, show_id: str, from_us: int, limit: int) -> list[Event]:
        """The dates of one show that start at `from_us` or later, drafts included, in order of their start."""
        rows: list[Row] = await self._store.read(Query("dates_of_show", params=(show_id, from_us, limit)))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def find_events(self, search: EventSearch) -> tuple[list[Event], bool]:
        """A page of search results ordered by (starts_at_us, id), and whether there are more. Reads by index only."""
        search.check()
        terms = [term_bounds(term) for term in search.terms()][:WORD_SLOTS]
        slots = [*terms, *[("", "")] * (WORD_SLOTS - len(terms))]
        given = (
            LISTING_GROUPS[search.status],
            search.status.value if search.status is not None else "",
            max(search.from_us, search.after[0]),
            search.before_us,
            search.local_from_us,
            search.local_before_us,
            search.sale_from_us,
            search.sale_before_us,
            search.sale_ends_after_us,
            *search.after,
            search.currency,
            search.min_price_minor,
            search.max_price_minor,
            search.free or NO_BOUND,
            *(bound for slot in slots for bound in slot),
        )
        statement, first = await self._choose_statement(search, terms)
        skip = (search.page - 1) * search.limit
        rows = await self._store.read(Query(statement, params=(*given, *first, search.limit + 1, skip)))
        found = await asyncio.gather(*(self._reads["events_by_id"].read(row[0]) for row in rows[: search.limit]))
        events = [msgspec.json.decode(each[0][1], type=Event) for each in found if each]
        return events, len(rows) > search.limit

    async def _choose_statement(
        self, search: EventSearch, terms: Sequence[tuple[str, str]]
    ) -> tuple[str, tuple[str, ...]]:
        """The statement that reads the fewest events, with its own parameters."""
        if terms:
            most = MAX_FIRST if len(terms) > 1 else RARE
            counts = {row[0]: int(row[1]) for row in await self._store.read(Query("count_words", terms, (most,)))}
            rarest = min(terms, key=lambda term: counts[term[0]])
            if counts[rarest[0]] < most:
                return "find_by_word", rarest
        if search.max_price_minor >= 0:
            asked = (LISTING_GROUPS[search.status], search.max_price_minor, RARE)
            if int((await self._store.read(Query("count_cheap", params=asked)))[0][0]) < RARE:
                return "find_by_price", ()
        return "find_by_start", ()

    async def listed_currencies(self) -> list[str]:
        """The currencies of events on sale."""
        return [str(row[0]) for row in await self._store.read(Query("listed_currencies", params=(MAX_CURRENCIES,)))]

    async def seats_left(self, event_ids: Sequence[str]) -> dict[str, int]:
        """The free seats of these events at their last count."""
        if not event_ids:
            return {}
        rows = await self._store.read(Query("seats_left_of", [(event_id,) for event_id in event_ids]))
        return {row[0]: int(row[1]) for row in rows}

    # seats and status

    async def update_event_status(self, event_id: str, now_us: int) -> EventStatusChange | None:
        """Count the event's free seats and move its status if that is due, in one transaction."""
        run = RunProgram(functools.partial(update_event_status, event_id, now_us), now_us)
        change: EventStatusChange | None = await self._line.submit(run)
        if change is not None and change.move is not None:
            self.version += 1
        return change

    async def ended_events(self, now_us: int, limit: int) -> list[str]:
        """Events on sale or sold out that are over."""
        return [str(row[0]) for row in await self._store.read(Query("ended_events", params=(now_us, limit)))]

    async def stale_counts(self, before_us: int, limit: int) -> list[str]:
        """Events on sale or sold out whose seats were last counted before `before_us`, oldest count first."""
        return [str(row[0]) for row in await self._store.read(Query("stale_counts", params=(before_us, limit)))]

    # following changes

    async def newest_change(self) -> int:
        """The number of the newest change of any event. One row: all that is read while nothing changes."""
        return int((await self._store.read(Query("catalogue_version")))[0][0])

    async def live_events(self, after: tuple[int, str], limit: int) -> list[Event]:
        """Events on sale or sold out, ordered by (starts_at_us, id)."""
        rows = await self._store.read(Query("live_events", params=(*after, limit)))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def public_events(self, after: tuple[int, str], limit: int) -> tuple[list[tuple[str, int]], tuple[int, str]]:
        """Events on sale or sold out with the time of their last change, and where the next page begins."""
        rows = await self._store.read(Query("public_events", params=(*after, limit)))
        return [(row[1], row[2]) for row in rows], (rows[-1][0], rows[-1][1]) if rows else after

    async def changed_events(self, after: tuple[int, str], limit: int) -> list[tuple[int, str, Event | None]]:
        """Changes after that pair in order, as (number, id, event). The event is None if it is not for sale."""
        rows = await self._store.read(Query("changed_events", params=(*after, limit)))
        return [(int(row[0]), row[1], msgspec.json.decode(row[2], type=Event) if row[2] else None) for row in rows]

    async def _change(self, program: Any, note: dict[str, Any], now_us: int) -> None:
        await self._line.submit(RunProgram(program, now_us, note=msgspec.json.encode(note).decode()))
        self.version += 1

    async def _write(self, queries: Sequence[Query], note: dict[str, Any], now_us: int) -> None:
        await self._line.submit(RunStatements(tuple(queries), msgspec.json.encode(note).decode(), now_us))
        self.version += 1


def _row(event: Event, now_us: int) -> Row:
    """The columns of `put_events`."""
    return (
        event.id,
        event.venue_id,
        event.plan_hash,
        event.name,
        event.status,
        event.currency,
        event.starts_at_us,
        event.sale_starts_at_us,
        event.sale_ends_at_us,
        event.max_per_person,
        msgspec.json.encode(event).decode(),
        now_us,
        event.organiser_id,
    )
