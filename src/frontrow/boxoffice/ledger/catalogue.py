"""The ledger's catalogue: plans, venues and events with their price tiers. Written rarely, read by everybody.

An event and a plan are kept whole as documents; beside them stand the columns and rows that lists, reports and
constraints ask for. Every change leaves a note in the audit log.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from frontrow.boxoffice.ledger.batch import Operation, Store, Written
from frontrow.boxoffice.ledger.looks import Looks
from frontrow.boxoffice.ledger.statements import Query, Row
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.venues import Plan, Venue
from frontrow.core.coalescer import Coalescer
from frontrow.core.errors import NotFound


class EventNotFound(NotFound):
    code = "event_not_found"


class Catalogue:
    """The part of the ledger that knows what is sold."""

    store: Store
    line: Coalescer[Operation, Any]
    looks: Mapping[str, Looks]
    catalogue_version: int = 0  # grows with what this process changes; others' changes are seen by looking again

    async def put_plan(self, plan_hash: str, plan: Plan, document: str, now_us: int) -> None:
        """Keep a plan, its document and its seats under its hash; a hash that is known is the same plan."""
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
        """The document kept under this hash."""
        rows: list[Row] = await self.store.read(Query("plan_document", params=(plan_hash,)))
        return str(rows[0][0]) if rows else None

    async def put_venue(self, venue: Venue, now_us: int) -> None:
        """Create or change a venue."""
        row = (venue.id, venue.name, venue.plan_hash, venue.city, venue.country, venue.time_zone, now_us)
        await self._write((Query("put_venues", [row]),), {"act": "put_venue", "venue": venue.id}, now_us)

    async def venue(self, venue_id: str) -> Venue | None:
        rows = await self.looks["venues_by_id"].of(venue_id)
        return Venue(*rows[0]) if rows else None

    async def put_event(self, event: Event, now_us: int) -> None:
        """Create or change an event with its price tiers; all of it or nothing."""
        document = msgspec.json.encode(event).decode()
        row = (
            event.id, event.venue_id, event.plan_hash, event.name, event.status, event.currency, event.starts_at_us,
            event.sale_starts_at_us, event.sale_ends_at_us, event.max_per_person, document, now_us,
            event.organiser_id,
        )  # fmt: skip
        tiers = [(event.id, t.key, t.name, t.price.minor, t.price.currency) for t in event.tiers]
        queries = [Query("put_events", [row]), Query("drop_tiers", [(event.id,)])]
        queries += [Query("put_tiers", tiers)] if tiers else []
        await self._write(
            tuple(queries), {"act": "put_event", "event": event.id, "status": event.status, "at_us": now_us}, now_us
        )

    async def event(self, event_id: str) -> Event:
        """The event, or EventNotFound."""
        rows = await self.looks["events_by_id"].of(event_id)
        if not rows:
            raise EventNotFound(f"there is no event {event_id}", event=event_id)
        return msgspec.json.decode(rows[0][1], type=Event)

    async def events(
        self, status: EventStatus | None = None, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """Events in order of (starts_at_us, id), from after that pair on."""
        params = (status or "", after[0], after[1], max(1, min(limit, 1_000)))
        rows: list[Row] = await self.store.read(Query("events_page", params=params))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def events_of_organiser(
        self, organiser_id: str, after: tuple[int, str] = (-1, ""), limit: int = 100
    ) -> list[Event]:
        """An organiser's events, whatever their status, in the same order."""
        params = (organiser_id, after[0], after[1], max(1, min(limit, 1_000)))
        rows: list[Row] = await self.store.read(Query("events_of_organiser", params=params))
        return [msgspec.json.decode(row[0], type=Event) for row in rows]

    async def _write(self, queries: Sequence[Query], note: dict[str, Any], now_us: int) -> None:
        await self.line.submit(Written(tuple(queries), msgspec.json.encode(note).decode(), now_us))
        self.catalogue_version += 1
