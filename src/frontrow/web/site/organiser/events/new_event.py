"""A new event, first two steps: what it is, and where. Then the draft is saved, and the other steps change it."""

from typing import Any, Final
from zoneinfo import ZoneInfo

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.events.event_editing import MAX_DESCRIPTION_CHARS, EventEdit
from frontrow.boxoffice.seats.formats.plan_generator import MAX_GENERATED, MIN_SEATS
from frontrow.boxoffice.seats.model.venues import OwnVenue
from frontrow.boxoffice.seats.time_zones import zones
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError, InvalidInput, Refused
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.form_fields import BAD_TIME, Errors, Reading, read_local
from frontrow.web.site.render import render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
NEW: Final = "/organiser/events/new"
WRITES: Final = Access.staff("events:write")
HOUR_US: Final = 3_600 * US_PER_S
DAY_US: Final = 24 * HOUR_US
MOST_VENUES: Final = 100
CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "JPY", "BRL", "AED")
SHAPES: Final = {
    "theatre": N_("Theatre"),
    "arena": N_("Arena with standing places"),
    "stadium": N_("Stadium"),
    "standing": N_("Standing places only, without numbers"),
}
# step -> its name; the order of the wizard
STEPS: Final = {
    "details": N_("Details"),
    "venue": N_("Venue"),
    "prices": N_("Prices and fees"),
    "options": N_("Ticket types"),
    "sale": N_("Sale"),
    "room": N_("Waiting room"),
    "seats": N_("Withheld seats"),
    "preview": N_("Preview"),
}
CARRIED: Final = ("name", "description", "starts", "ends")  # from the first step to the second
FRESH: Final = {
    "name": "",
    "description": "",
    "starts": "",
    "ends": "",
    "venue": "",
    "currency": "EUR",
    "new_name": "",
    "city": "",
    "country": "",
    "time_zone": "",
    "shape": "theatre",
    "seats": "500",
}


@page(NEW, "new_event", WRITES)
async def new_event(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The first step, empty."""
    return await _form(request, platform, caller, "details", FRESH)


async def _form(
    request: Asked, platform: Platform, caller: Caller, step: str, values: dict[str, str], errors: Errors | None = None
) -> Response[bytes]:
    venues: list[OwnVenue] = []
    if step == "venue":
        venues = await platform.organiser.organise.venues.page(editor_of(caller), "", MOST_VENUES)
    chosen = values.get("venue") or (venues[0].venue.id if venues else "new")
    return render(
        request,
        "organiser/event_new.html",
        status=422 if errors else 200,
        step=step,
        v=FRESH | values | {"venue": chosen},
        errors=errors or Errors(),
        venues=venues,
        carried=CARRIED,
        steps=STEPS,
        currencies=CURRENCIES,
        shapes=SHAPES,
        zones=zones() if step == "venue" else [],
        script="js/organiser/wizard.js",
    )


@action(NEW, "create_draft", WRITES)
async def create(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The next step; after the second one there is a draft."""
    typed, reading = form.first(), Reading(form)
    reading.text("name")
    reading.text("description", MAX_DESCRIPTION_CHARS, needed=False)
    starts, ends = reading.when("starts"), reading.when("ends", needed=False)
    if ends and ends <= starts:
        reading.errors["ends"] = N_("The show must end after it starts.")
    if reading.errors or form.one("step") == "details":
        return await _form(request, platform, caller, "details" if reading.errors else "venue", typed, reading.errors)
    if form.one("back"):
        return await _form(request, platform, caller, "details", typed)
    if form.one("again"):
        return await _form(request, platform, caller, "venue", typed)
    return await _created(request, platform, caller, form)


async def _created(request: Asked, platform: Platform, caller: Caller, form: Form) -> Response[bytes]:
    organise, reading = platform.organiser.organise, Reading(form)
    try:
        venue = await _venue(platform, caller, reading)
        if venue is not None and not reading.errors:
            created = await organise.create(editor_of(caller), _draft(platform, form, venue))
            return go_to(f"/organiser/events/{created.event.id}/prices?done=draft")
    except (InvalidInput, Refused) as error:
        reading.errors.add_error(error)
    return await _form(request, platform, caller, "venue", form.first(), reading.errors)


async def _venue(platform: Platform, caller: Caller, reading: Reading) -> OwnVenue | None:
    """The chosen venue, or a new one from a template."""
    venues, form = platform.organiser.organise.venues, reading.form
    chosen = form.one("venue", 60)
    if chosen and chosen != "new":
        return await venues.get(editor_of(caller), chosen)
    name, seats = reading.text("new_name"), reading.whole("seats", MIN_SEATS, MAX_GENERATED)
    shape = form.one("shape", 20)
    if reading.errors:
        return None
    return await venues.create(
        editor_of(caller),
        VenueEdit(
            name=name,
            city=form.one("city", 200),
            country=form.one("country", 2).upper(),
            time_zone=form.one("time_zone", 64),
            plan=PlanSource(shape, seats),
        ),
    )


def _draft(platform: Platform, form: Form, own: OwnVenue) -> EventEdit:
    """The draft, with a sale that begins in a day (or at once, if the show is near) and ends with the show."""
    zone, now_us = ZoneInfo(own.venue.time_zone), platform.clock()
    starts_us = read_local(form.one("starts", 25)[:16], zone)
    if starts_us is None:
        raise FrontrowError(BAD_TIME, param="starts_at")
    ends_us = read_local(form.one("ends", 25)[:16], zone) or None
    opens_us = (now_us + DAY_US) // HOUR_US * HOUR_US
    return EventEdit(
        name=form.one("name", 200),
        description=form.one("description", MAX_DESCRIPTION_CHARS),
        venue_id=own.venue.id,
        currency=form.one("currency", 3).upper(),
        starts_at_us=starts_us,
        ends_at_us=ends_us,
        sale_starts_at_us=opens_us if opens_us < starts_us - DAY_US else min(now_us, starts_us - 1),
        sale_ends_at_us=starts_us,
    )


ROUTES: list[HTTPRouteHandler] = [new_event, create]
