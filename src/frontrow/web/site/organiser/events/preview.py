"""The preview of an event: the fans' own page in a frame, the map from the same code, and the publish form."""

from collections import Counter
from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.event_listing import EventAvailability, FreeSeats
from frontrow.boxoffice.events.model.events import EventMove, check_event
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Unavailable
from frontrow.shared.local_time import time_text
from frontrow.waitingroom.model.config import MAX_MESSAGE_CHARS
from frontrow.web.endpoints.room.organiser import patch_room
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import Shown, sale_state
from frontrow.web.site.organiser.bookings.seat_map import seating_response
from frontrow.web.site.organiser.events.event_page import opens_later
from frontrow.web.site.organiser.events.event_steps import ONE, OrganiserEvent, done_of, load_event
from frontrow.web.site.organiser.events.new_event import STEPS
from frontrow.web.site.organiser.form_fields import OTHERWISE, PARAMS, Errors, Reading, percent_text
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page
from frontrow.web.site.security_headers import PagePolicy

Asked = Request[Any, Any, Any]
READS: Final = Access.staff("events:read")
WITH_FRAME: Final = PagePolicy({"frame-src": "'self'"})
FRAMED: Final = PagePolicy(framed=True)
MAX_ROOM: Final = 10**9
# field that publishing needs -> the step that sets it
STEP_OF: Final = {"sale_ends": "sale", "starts": "details", "form": "prices", "tax": "prices"}


@page(f"{ONE}/preview", "preview_event", READS)
async def preview(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """What fans will see, what is still missing, and the button that makes it public."""
    return await _preview(request, platform, await load_event(platform, caller, event_id))


async def _preview(
    request: Asked,
    platform: Platform,
    one: OrganiserEvent,
    errors: Errors | None = None,
    values: dict[str, str] | None = None,
) -> Response[bytes]:
    missing = _missing(platform, one) if one.is_draft else []
    room = platform.settings.room
    seller, own = await platform.box_office.receipts.seller_of(one.event.organiser_id), one.event.tax_basis_points
    shown = {"capacity": str(room.capacity), "rate": str(room.rate_per_s), "message": ""}
    return render(
        request,
        "organiser/preview.html",
        status=422 if errors else 200,
        policy=WITH_FRAME,
        script="js/organiser/preview.js",
        one=one,
        of_event=one.event,
        steps=STEPS,
        step="preview",
        missing=missing,
        errors=errors or Errors(),
        v=shown | (values or {}),
        most_message=MAX_MESSAGE_CHARS,
        done=done_of(request),
        step_of=STEP_OF,
        tax=percent_text(seller.tax_basis_points if own is None else own),
        own_tax=own is not None,
        sells_at_once=one.event.sale_starts_at_us <= platform.clock(),
        may_open=opens_later(one, platform.clock()),
    )


def _missing(platform: Platform, one: OrganiserEvent) -> list[tuple[str, str]]:
    """What must be corrected before publishing: (field, message)."""
    event, now_us, found = one.event, platform.clock(), []
    if event.sale_ends_at_us <= now_us:
        found.append(PARAMS["sale_ends_at"])
    if event.starts_at_us <= now_us:
        found.append(PARAMS["starts_at"])
    try:
        check_event(event, one.plan)
    except InvalidInput as error:
        found.append(PARAMS.get(error.param or "", ("form", OTHERWISE)))
    return found


@page(f"{ONE}/preview/page", "preview_page", READS)
async def preview_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """Exactly the fans' page of the event, as it will be once published."""
    one = await load_event(platform, caller, event_id)
    event = one.event.moved(EventMove.PUBLISH) if one.is_draft else one.event
    free = _availability(one)
    seen = Shown(event, one.venue, sale_state(event, platform.clock(), free), free)
    request.state.caller = Caller()  # as somebody who is not signed in sees it
    return render(
        request,
        "event.html",
        policy=FRAMED,
        script="js/event.js",
        one=seen,
        inside=False,
        tiers={tier.name: tier for tier in free.tiers},
        opens_at=time_text(event.sale_starts_at_us),
        now=time_text(platform.clock()),
        page_url=f"{platform.settings.public_url.rstrip('/')}/events/{event.id}",
    )


def _availability(one: OrganiserEvent) -> EventAvailability:
    """All seats are free, except withheld ones."""
    plan, kept = one.plan, one.event.withheld
    sizes = Counter(seat.tier for seat in plan.seats)
    gone = Counter(plan.seats[seat].tier for seat in kept)
    tiers = tuple(FreeSeats(key, size - gone[key], size) for key, size in sizes.items())
    return EventAvailability(one.event.id, plan.size - len(kept), plan.size, (), tiers)


@page(f"{ONE}/preview/map.json", "preview_map", READS)
async def preview_map(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The map's geometry with prices, and which seats are withheld."""
    return seating_response(await load_event(platform, caller, event_id), ())


@action(f"{ONE}/publish", "publish_own_event", Access.staff("sales:control"))
async def publish(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Publish the event and configure its waiting room."""
    one, reading = await load_event(platform, caller, event_id), Reading(form)
    wanted = {
        "capacity": reading.whole("capacity", 1, MAX_ROOM),
        "rate_per_s": reading.whole("rate", 1, MAX_ROOM),
        "message": reading.text("message", MAX_MESSAGE_CHARS, needed=False),
    }
    if not reading.errors:
        try:
            tag = form.one("tag", 60) or None
            if form.one("now"):
                tag = (await platform.organiser.organise.open_now(editor_of(caller), event_id, tag)).tag
            await platform.organiser.organise.publish(editor_of(caller), event_id, tag)
            await platform.box_office.openings.refresh()
            await _steer(platform, caller, event_id, wanted)
            return go_to(f"/organiser/events/{event_id}?done=published")
        except (Unavailable, NotFound):
            raise
        except FrontrowError as error:
            reading.errors.add_error(error)
    return await _preview(request, platform, one, reading.errors, form.first())


async def _steer(platform: Platform, caller: Caller, event_id: str, wanted: dict[str, Any]) -> None:
    """The waiting-room settings from the form; fields at their default are left out."""
    room = platform.settings.room
    usual = {"capacity": room.capacity, "rate_per_s": room.rate_per_s, "message": ""}
    asked = {name: value for name, value in wanted.items() if value != usual[name]}
    if asked:
        await patch_room(platform.room.service, event_id, msgspec.json.encode(asked))
        await platform.organiser.log.note(editor_of(caller), "steer_room", event_id, asked)


ROUTES: list[HTTPRouteHandler] = [preview, preview_page, preview_map, publish]
