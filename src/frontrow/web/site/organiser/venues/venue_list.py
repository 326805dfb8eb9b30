"""Venues of the organiser: the list, new ones from a template or a file, with a preview before saving."""

import asyncio
import json
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.seats.formats.plan_document import FORMAT, to_document
from frontrow.boxoffice.seats.formats.plan_generator import MAX_GENERATED, MIN_SEATS
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.time_zones import zones
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.errors import InvalidInput, Refused
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.cursors import cursor_of, read_cursor
from frontrow.web.http.request_bodies import MAX_PLAN_BYTES
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.new_event import SHAPES
from frontrow.web.site.organiser.form_fields import NEEDED, Errors, Reading, Typed
from frontrow.web.site.organiser.refusal_sentences import sentences_of
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
READS: Final = Access.staff("events:read")
WRITES: Final = Access.staff("events:write")
NEW: Final = "/organiser/venues/new"
PAGE: Final = 50
MOST_BYTES: Final = 2 * MAX_PLAN_BYTES  # a form's body is longer than what was typed
FRESH: Final = {
    "name": "",
    "city": "",
    "country": "",
    "time_zone": "",
    "source": "template",
    "shape": "theatre",
    "seats": "500",
    "text": "",
}
DONE: Final = {"saved": N_("Saved."), "made": N_("The venue is saved. You can now create events there.")}
MAX_NAMED: Final = 20


@page("/organiser/venues", "venues", READS)
async def venues(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Every venue of this organiser."""
    after = read_cursor(request.query_params.get("after", "")[:200])
    found = await platform.organiser.organise.venues.page(editor_of(caller), after, PAGE)
    more = cursor_of(found[-1].venue.id) if len(found) == PAGE else ""
    return render(request, "organiser/venues.html", found=found, more=more)


@page(NEW, "new_venue", WRITES)
async def new_venue(request: Asked) -> Response[bytes]:
    """A template, or a file."""
    return show_form(request, FRESH)


def show_form(
    request: Asked,
    values: dict[str, str],
    errors: Errors | None = None,
    *,
    plan: Plan | None = None,
    notes: list[str] | None = None,
    wrong: list[str] | None = None,
) -> Response[bytes]:
    """The form of a new venue, with a preview once a plan was read."""
    return render(
        request,
        "organiser/venue_new.html",
        status=422 if errors else 200,
        script="js/organiser/venue.js",
        v=Typed(FRESH | values),
        errors=errors or Errors(),
        shapes=SHAPES,
        zones=zones(),
        plan=plan,
        document=map_of(plan) if plan else None,
        notes=notes or [],
        wrong=wrong or [],
    )


def map_of(plan: Plan) -> dict[str, Any]:
    """The plan for the seat map, its tiers without prices."""
    return to_document(plan, prices={key: {"name": key, "price": 0, "cur": "EUR"} for key in plan.tiers}, refs=False)


@action(NEW, "make_venue", WRITES, most_bytes=MOST_BYTES)
async def make(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Preview the venue, or save it."""
    reading, service = Reading(form), platform.organiser.organise.venues
    name, keep = reading.text("name"), bool(form.one("keep"))
    try:
        source = await asyncio.to_thread(source_of, reading)
        if source is None or (reading.errors and keep):
            return show_form(request, form.first(), reading.errors)
        if not keep:
            plan, notes = await service.preview_plan(source, name or "Venue")
            return show_form(request, form.first(), reading.errors, plan=plan, notes=notes)
        edit = VenueEdit(
            name=name,
            city=form.one("city", 200),
            country=form.one("country", 2).upper(),
            time_zone=form.one("time_zone", 64),
            plan=source,
        )
        created = await service.create(editor_of(caller), edit)
    except (InvalidInput, Refused) as error:
        wrong = refused(reading.errors, error)
        return show_form(request, form.first(), reading.errors, wrong=wrong)
    return go_to(f"/organiser/venues/{created.venue.id}?done=made")


def refused(errors: Errors, error: InvalidInput | Refused) -> list[str]:
    """Error messages by field; for a file, one message per line."""
    if error.param in ("name", "city", "country", "time_zone", "seats", "If-Match"):
        errors.add_error(error)
        return []
    errors["text"] = N_("This cannot be read as a plan:")
    return sentences_of(error)[:MAX_NAMED]


def source_of(reading: Reading) -> PlanSource | None:
    """Where the plan comes from; None when that is missing."""
    form = reading.form
    if form.one("source") == "template":
        seats = reading.whole("seats", MIN_SEATS, MAX_GENERATED)
        return PlanSource(form.one("shape", 20), seats) if not reading.errors["seats"] else None
    text = form.one("text", MAX_PLAN_BYTES)
    if not text:
        reading.errors["text"] = NEEDED
        return None
    return PlanSource(csv=text) if form.one("source") == "csv" else json_source(text)


def json_source(text: str) -> PlanSource:
    """A pretix plan or our own document, recognised by its contents."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        at = {"line": error.lineno, "column": error.colno}
        raise InvalidInput("this is not valid JSON", param="text", reason="json", **at) from None
    except RecursionError:
        raise InvalidInput("this is nested too deeply for a plan", param="text") from None
    if not isinstance(document, dict):
        raise InvalidInput("a plan is a JSON object", param="text", reason="json", line=1, column=1)
    return PlanSource(document=document) if document.get("v") == FORMAT else PlanSource(pretix=document)


ROUTES: list[HTTPRouteHandler] = [venues, new_venue, make]
