"""A venue's plan arranged by hand on the map: rows, sections and seats are moved, turned, bent, copied and removed.

The script keeps the arrangement; this page takes it as one form field and makes a new plan of it. What cannot be saved
comes back with the page, so that nothing is lost. Events keep the plan they were made on.
"""

import asyncio
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.event_changes import ChangedMeanwhile
from frontrow.boxoffice.seats.formats.plan_document import to_document
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.plan_arrangement import Arrangement, arrange_plan, read_arrangement
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.http.request_bodies import MAX_PLAN_BYTES
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.form_fields import Errors
from frontrow.web.site.organiser.refusal_sentences import sentences_of
from frontrow.web.site.organiser.venues.venue_editor import MEANWHILE, ONE
from frontrow.web.site.organiser.venues.venue_list import DONE, MAX_NAMED, MOST_BYTES, WRITES
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
ARRANGE: Final = f"{ONE}/arrange"
# Buttons that do what dragging does: what they do, their name, their sign.
PADS: Final = {
    N_("Move"): (
        ("left", N_("Left"), "←"),
        ("up", N_("Up"), "↑"),
        ("down", N_("Down"), "↓"),
        ("right", N_("Right"), "→"),
    ),
    N_("Rotate"): (("turn-left", N_("Rotate left"), "↺"), ("turn-right", N_("Rotate right"), "↻")),
    N_("Bend"): (("bend-less", N_("Bend upwards"), "⌢"), ("bend-more", N_("Bend downwards"), "⌣")),
}


@page(ARRANGE, "arrange_venue", WRITES)
async def arrange(
    request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str]
) -> Response[bytes]:
    """The plan on a board."""
    return await _shown(request, platform, caller, venue_id)


async def _shown(
    request: Asked,
    platform: Platform,
    caller: Caller,
    venue_id: str,
    placed: str = "",
    error: FrontrowError | None = None,
) -> Response[bytes]:
    own = await platform.organiser.organise.venues.get(editor_of(caller), venue_id)
    errors, wrong = Errors(), list[str]()
    if isinstance(error, ChangedMeanwhile):
        errors["form"] = MEANWHILE
    elif error is not None:
        wrong = sentences_of(error)
    return render(
        request,
        "organiser/venue_arrange.html",
        status=422 if error else 200,
        script="js/organiser/arrange.js",
        own=own,
        pads=PADS,
        typed=_typed(placed),
        errors=errors,
        wrong=wrong[:MAX_NAMED],
        seats=error.about.get("seats", []) if error else [],
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


def _typed(placed: str) -> Arrangement | None:
    """The arrangement that was sent, to be gone on with; None if it is none."""
    try:
        return read_arrangement(placed)
    except InvalidInput:
        return None


@action(ARRANGE, "save_arrangement", WRITES, most_bytes=MOST_BYTES)
async def save_arrangement(
    request: Asked, platform: FromPlatform, caller: FromCaller, venue_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Save the plan as it was arranged, or show what is wrong with it."""
    venues, placed = platform.organiser.organise.venues, form.one("placed", MAX_PLAN_BYTES)
    own = await venues.get(editor_of(caller), venue_id)
    plan = await venues.plan(own.venue.plan_hash)
    try:
        document = await asyncio.to_thread(_arranged, plan, placed)
        edit = VenueEdit(plan=PlanSource(document=document))
        await venues.change(editor_of(caller), venue_id, edit, form.one("tag", 60) or None)
    except (InvalidInput, ChangedMeanwhile) as error:
        return await _shown(request, platform, caller, venue_id, placed, error)
    return go_to(f"/organiser/venues/{venue_id}/arrange?done=saved")


def _arranged(plan: Plan, placed: str) -> dict[str, Any]:
    return to_document(arrange_plan(plan, read_arrangement(placed)))


ROUTES: list[HTTPRouteHandler] = [arrange, save_arrangement]
