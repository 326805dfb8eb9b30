"""Venues of an organiser, and their plans: from our document, pretix JSON, a CSV table or the generator."""

import asyncio
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change, ChangedMeanwhile, Editor, check_tag, describe_changes
from frontrow.boxoffice.people.model.people import checked_name
from frontrow.boxoffice.seats.formats.csv_plans import from_csv
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan, plan_from_document
from frontrow.boxoffice.seats.formats.pretix_format import from_pretix
from frontrow.boxoffice.seats.model.venues import OwnVenue, Plan, Venue, VenueNotFound
from frontrow.boxoffice.seats.ports.venues import VenueLedger
from frontrow.boxoffice.seats.time_zones import checked_zone
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.shared.ids import Ids

MAX_PLANS: Final = 8  # parsed plans kept in memory
READ_WITHIN_S: Final = 30.0  # a plan of 182,000 seats takes two to three seconds


class PlanSource(msgspec.Struct, frozen=True):
    """Where a plan comes from: exactly one of these fields. `csv` is the table's text, the documents are JSON."""

    generate: str = ""
    seats: int = 0
    csv: str = ""
    pretix: dict[str, Any] | None = None
    document: dict[str, Any] | None = None


class VenueEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a venue. None leaves a field as it is."""

    name: str | None = None
    city: str | None = None
    country: str | None = None
    time_zone: str | None = None
    plan: PlanSource | None = None


class Venues:
    """Creates and changes venues; reads plans."""

    def __init__(self, ledger: VenueLedger, clock: Clock, ids: Ids, work: HeavyWork | None = None) -> None:
        self._ledger, self._clock, self._ids = ledger, clock, ids
        self._work = work or HeavyWork()
        self._plans: dict[str, Plan] = {}

    async def plan(self, plan_hash: str) -> Plan:
        """The plan with this hash."""
        plan = self._plans.get(plan_hash)
        if plan is None:
            document = await self._ledger.catalogue.plan_document(plan_hash)
            if document is None:
                raise NotFound(f"there is no plan {plan_hash[:12]}")
            plan = await asyncio.to_thread(decode_plan, document.encode())
            self._cache(plan_hash, plan)
        return plan

    def _cache(self, plan_hash: str, plan: Plan) -> None:
        if len(self._plans) >= MAX_PLANS:
            self._plans.pop(next(iter(self._plans)))
        self._plans[plan_hash] = plan

    async def get(self, editor: Editor, venue_id: str) -> OwnVenue:
        found = await self._ledger.organiser.own_venue(editor.organiser_id, venue_id)
        if found is None:
            raise VenueNotFound(f"there is no venue {venue_id[:60]}", venue=venue_id[:60])
        return found

    async def page(self, editor: Editor, after: str, limit: int) -> list[OwnVenue]:
        return await self._ledger.organiser.own_venues(editor.organiser_id, after, limit)

    async def create(self, editor: Editor, edit: VenueEdit) -> OwnVenue:
        """Create a venue. Its name and its plan are required."""
        if edit.plan is None:
            raise InvalidInput("a venue needs a plan", param="plan")
        empty = Venue(self._ids.new("ven"), "", "")
        venue = await self._apply_edit(empty, edit)
        change = Change(editor, "create_venue", "", self._clock(), {"venue": venue.id, "plan": venue.plan_hash})
        await self._ledger.organiser.add_venue(venue, change)
        return await self.get(editor, venue.id)

    async def change(self, editor: Editor, venue_id: str, edit: VenueEdit, tag: str | None = None) -> OwnVenue:
        """Change some fields of the venue. Existing events keep their plan."""
        current = await self.get(editor, venue_id)
        check_tag(tag, current.tag)
        venue = await self._apply_edit(current.venue, edit)
        fields = [name for name in edit.__struct_fields__ if getattr(edit, name) is not None]
        detail = {"venue": venue.id, "fields": fields, "changes": describe_changes(current.venue, venue, fields)}
        change = Change(editor, "change_venue", "", self._clock(), detail)
        if not await self._ledger.organiser.swap_venue(current, venue, change):
            raise ChangedMeanwhile("somebody else changed this venue; read it again", param="If-Match")
        return await self.get(editor, venue_id)

    async def _apply_edit(self, venue: Venue, edit: VenueEdit) -> Venue:
        name = venue.name if edit.name is None and venue.name else checked_name(edit.name or "")
        country = venue.country if edit.country is None else _country(edit.country)
        city = venue.city if edit.city is None else _text(edit.city, "city")
        zone = venue.time_zone if edit.time_zone is None else checked_zone(edit.time_zone, city)
        plan_hash = venue.plan_hash if edit.plan is None else await self._save_plan(edit.plan, name)
        return Venue(venue.id, name, plan_hash, city, country, zone)

    async def preview_plan(self, source: PlanSource, name: str) -> tuple[Plan, list[str]]:
        """The plan of a source without saving it, and notes on what was left out or renamed."""
        _, plan, notes = await self._read_source(source, name)
        return plan, notes

    async def _read_source(self, source: PlanSource, name: str) -> tuple[bytes, Plan, list[str]]:
        """The plan as our document and as an object, and notes. Reading is killed at its deadline. The document comes
        back from the other process, because a plan's objects take longer to send than to read again."""
        body, notes = await self._work.run(Urgency.IMPORT, READ_WITHIN_S, read_source, source, name)
        return body, await asyncio.to_thread(decode_plan, body), notes

    async def _save_plan(self, source: PlanSource, name: str) -> str:
        """Save the plan of this source in the ledger and return its hash."""
        body, plan, _ = await self._read_source(source, name)
        plan_hash = digest(body)
        await self._ledger.catalogue.put_plan(plan_hash, plan, body.decode(), self._clock())
        self._cache(plan_hash, plan)
        return plan_hash


def read_source(source: PlanSource, name: str) -> tuple[bytes, list[str]]:
    """The document of a source's plan, and notes on what was left out or renamed. Runs in another process."""
    plan, notes = _read(source, name)
    return plan_bytes(plan), notes


def _read(source: PlanSource, name: str) -> tuple[Plan, list[str]]:
    given = (bool(source.generate), bool(source.csv), source.pretix is not None, source.document is not None)
    if sum(given) != 1:
        raise InvalidInput("give the plan as exactly one of generate, csv, pretix, document", param="plan")
    if source.generate:
        return generate(source.generate, source.seats), []
    if source.csv:
        return from_csv(source.csv, name), []
    if source.pretix is not None:
        plan, notes = from_pretix(source.pretix)
        return plan, list(notes)
    return plan_from_document(source.document), []


def _country(code: str) -> str:
    if code and not (len(code) == 2 and code.isascii() and code.isupper() and code.isalpha()):
        raise InvalidInput(f"{code[:10]!r} is not a country code such as AT", param="country")
    return code


def _text(text: str, param: str) -> str:
    return checked_name(text, param) if text.strip() else ""
