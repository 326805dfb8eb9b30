"""One venue: where it is, its plan on the map, and a simple editor; every change is a new plan kept by the service.

Each change is a small form, so the editor works by keyboard alone and without scripts. Events keep the plan they were
made on.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.event_changes import ChangedMeanwhile
from frontrow.boxoffice.seats import plan_editing as editing
from frontrow.boxoffice.seats.formats.plan_document import to_document
from frontrow.boxoffice.seats.model.venues import OwnVenue, Plan, SeatFlag, Section
from frontrow.boxoffice.seats.seat_ranges import parse_seat_ranges
from frontrow.boxoffice.seats.time_zones import zones
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.errors import FrontrowError, InvalidInput, Unavailable
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.new_event import SHAPES
from frontrow.web.site.organiser.form_fields import Errors, Reading, Typed
from frontrow.web.site.organiser.refusal_sentences import sentence_of
from frontrow.web.site.organiser.venues.venue_list import (
    DONE,
    MOST_BYTES,
    READS,
    WRITES,
    map_of,
    refused,
    source_of,
)
from frontrow.web.site.render import PRIVATE, render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
ONE: Final = "/organiser/venues/{venue_id:str}"
MEANWHILE: Final = N_("Someone else changed this venue in the meantime. Review it, then change it.")
MARKS: Final = {
    "step_free": N_("Step-free"),
    "companion": N_("Companion seat"),
    "restricted": N_("Restricted view"),
}
WAYS: Final = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
MAX_SEATS_CHARS: Final = 20_000


@page(ONE, "venue", READS)
async def venue(request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str]) -> Response[bytes]:
    """The venue, and the section that is being edited."""
    own = await platform.organiser.organise.venues.get(editor_of(caller), venue_id)
    return await _shown(request, platform, caller, own, request.query_params.get("section", ""))


async def _shown(
    request: Asked,
    platform: Platform,
    caller: Caller,
    own: OwnVenue,
    section_id: str = "",
    *,
    typed: dict[str, str] | None = None,
    errors: Errors | None = None,
    wrong: list[str] | None = None,
) -> Response[bytes]:
    plan = await platform.organiser.organise.venues.plan(own.venue.plan_hash)
    section = next((one for one in plan.sections if one.id == section_id), None)
    place = {name: getattr(own.venue, name) for name in ("name", "city", "country", "time_zone")}
    first = {"source": "template", "shape": "theatre", "seats": "500", "rows": "10", "in_row": "20", "capacity": "200"}
    return render(
        request,
        "organiser/venue.html",
        status=422 if errors else 200,
        script="js/organiser/venue.js",
        own=own,
        plan=plan,
        section=section,
        v=Typed(first | place | (typed or {})),
        errors=errors or Errors(),
        wrong=wrong or [],
        shapes=SHAPES,
        zones=zones(),
        marks=MARKS,
        marked=_marked(section),
        can_write="events:write" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _marked(section: Section | None) -> dict[str, int]:
    """The number of seats of a section per mark."""
    flags = [seat.flags for row in section.rows for seat in row.seats] if section else []
    return {name: sum(bool(one & SeatFlag(bit)) for one in flags) for name, bit in editing.MARKS.items()}


@page(f"{ONE}/map.json", "venue_map", READS)
async def venue_map(platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str]) -> Response[bytes]:
    """The plan for the seat map."""
    own = await platform.organiser.organise.venues.get(editor_of(caller), venue_id)
    plan = await platform.organiser.organise.venues.plan(own.venue.plan_hash)
    body = msgspec.json.encode({"map": map_of(plan), "kept": []})
    return Response(body, headers={"cache-control": PRIVATE}, media_type="application/json")


@action(ONE, "change_place", WRITES)
async def change_place(
    request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Name, city, country and time zone."""
    reading = Reading(form)
    edit = VenueEdit(
        name=reading.text("name"),
        city=form.one("city", 200),
        country=form.one("country", 2).upper(),
        time_zone=form.one("time_zone", 64),
    )
    return await _changed(request, platform, caller, venue_id, form, reading, edit)


@action(f"{ONE}/plan", "replace_plan", WRITES, most_bytes=MOST_BYTES)
async def replace_plan(
    request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Replace the plan of this venue, for events created from now on."""
    reading, edit = Reading(form), VenueEdit()
    try:
        edit = VenueEdit(plan=await asyncio.to_thread(source_of, reading))
    except InvalidInput as error:
        own = await platform.organiser.organise.venues.get(editor_of(caller), venue_id)
        wrong = refused(reading.errors, error)
        return await _shown(request, platform, caller, own, typed=form.first(), errors=reading.errors, wrong=wrong)
    return await _changed(request, platform, caller, venue_id, form, reading, edit)


@action(f"{ONE}/edit", "edit_plan", WRITES)
async def edit_plan(
    request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """One change of the plan."""
    venues, reading, edit = platform.organiser.organise.venues, Reading(form), VenueEdit()
    own = await venues.get(editor_of(caller), venue_id)
    change = CHANGES.get(form.one("do", 20))
    plan = await venues.plan(own.venue.plan_hash)
    try:
        if change is not None:
            changed = await asyncio.to_thread(change, plan, form)
            edit = VenueEdit(plan=PlanSource(document=to_document(changed)))
    except FrontrowError as error:
        reading.errors["edit"] = sentence_of(error)
    return await _changed(request, platform, caller, venue_id, form, reading, edit)


async def _changed(
    request: Asked,
    platform: Platform,
    caller: Caller,
    venue_id: str,
    form: Form,
    reading: Reading,
    edit: VenueEdit,
) -> Response[bytes]:
    """Save the change if the venue is still at the version the form was made from, or show what is wrong."""
    venues, section, wrong = platform.organiser.organise.venues, form.one("section", 60), []
    if not reading.errors:
        try:
            await venues.change(editor_of(caller), venue_id, edit, form.one("tag", 60) or None)
            stays = form.one("do") not in ("remove", "")
            where = f"?section={quote(section)}&done=saved#edit" if stays and section else "?done=saved"
            return go_to(f"/organiser/venues/{venue_id}{where}")
        except ChangedMeanwhile:
            reading.errors["form"] = MEANWHILE
        except Unavailable:
            raise
        except InvalidInput as error:
            wrong = refused(reading.errors, error)
    own = await venues.get(editor_of(caller), venue_id)
    return await _shown(request, platform, caller, own, section, typed=form.first(), errors=reading.errors, wrong=wrong)


def _add_rows(plan: Plan, form: Form) -> Plan:
    return editing.add_rows(
        plan,
        form.one("section", 40),
        form.one("label", 100),
        form.number("rows", 0, 10_000, 0),
        form.number("in_row", 0, 10_000, 0),
        form.one("tier", 60) or "standard",
    )


def _add_area(plan: Plan, form: Form) -> Plan:
    return editing.add_area(
        plan,
        form.one("section", 40),
        form.one("label", 100),
        form.number("capacity", 0, 10**8, 0),
        form.one("tier", 60) or "standing",
    )


def _rename(plan: Plan, form: Form) -> Plan:
    return editing.rename_section(plan, form.one("section", 40), form.one("label", 100), form.one("tier", 60))


def _mark(plan: Plan, form: Form) -> Plan:
    """Rows and seats of the section, one per line, as `A`, `A-4` or `A-4…9`."""
    section, lines = form.one("section", 40), form.one("which", MAX_SEATS_CHARS).splitlines()
    seats = parse_seat_ranges(plan, "\n".join(f"{section}-{line.strip()}" if line.strip() else "" for line in lines))
    if not seats:
        raise InvalidInput("say which seats, such as A-1…4", param="which")
    return editing.mark_seats(plan, seats, form.one("mark", 20), on=form.one("how") != "off")


def _move(plan: Plan, form: Form) -> Plan:
    right, down = WAYS.get(form.one("way", 10), (0, 0))
    distance = form.number("distance", 1, editing.MAX_MOVE, 20)
    return editing.move_section(plan, form.one("section", 40), right * distance, down * distance)


def _remove(plan: Plan, form: Form) -> Plan:
    return editing.remove_section(plan, form.one("section", 40))


CHANGES: Final[dict[str, Callable[[Plan, Form], Plan]]] = {
    "add_rows": _add_rows,
    "add_area": _add_area,
    "rename": _rename,
    "mark": _mark,
    "move": _move,
    "remove": _remove,
}

ROUTES: list[HTTPRouteHandler] = [venue, venue_map, change_place, replace_plan, edit_plan]
