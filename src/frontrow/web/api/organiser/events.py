"""An organiser's events (B13): list, create, change a version that was read; publish, pause, complete, cancel."""

from typing import Annotated

import msgspec
from litestar import Response, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.events.event_editing import VersionedEvent
from frontrow.boxoffice.events.model.event_changes import Cancellation
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.event_bodies import (
    EventChange,
    NewEvent,
    OwnEventPage,
    OwnEventView,
    edit_of,
    summary_of,
    view_of,
)
from frontrow.web.api.organiser.parameters import Cursor, IfMatch, Limit, tagged
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cursors import cursor_of, read_cursor
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform

PATH = "/v1/organiser/events"
ONE = f"{PATH}/{{event_id:str}}"
WRITES = {"access": Access.staff("events:write"), "problems": (409, 412)}
CONTROLS = {"access": Access.staff("sales:control"), "problems": (409, 412)}


class CancellationView(msgspec.Struct):
    """The progress of a cancellation: bookings refunded, holds released, payments stopped, seats of the pool refunded
    (`returned`). `failed` ones are retried until none are left."""

    event: str
    state: Annotated[str, msgspec.Meta(examples=["running"])]
    refunded: int
    released: int
    stopped: int
    failed: int
    started_at: Time
    changed_at: Time
    returned: int = 0


@get(
    PATH, operation_id="list_own_events", summary="The organiser's events", opt={"access": Access.staff("events:read")}
)
async def list_own_events(
    platform: FromPlatform, caller: FromCaller, cursor: Cursor = "", limit: Limit = 20
) -> OwnEventPage:
    at_us, _, after_id = read_cursor(cursor).partition(":")
    if cursor and not (at_us.isascii() and at_us.isdigit() and len(at_us) < 19):
        raise InvalidInput("this cursor is not valid; start without one", param="cursor")
    after = (int(at_us), after_id) if cursor else (-1, "")
    page = await platform.ledger.browsing.catalogue.events_of_organiser(caller.organiser_id, after, limit)
    last = f"{page[-1].starts_at_us}:{page[-1].id}" if len(page) == limit else None
    return OwnEventPage([summary_of(event) for event in page], cursor_of(last))


@post(PATH, operation_id="create_event", summary="Make a draft", status_code=201, opt=WRITES)
async def create_event(platform: FromPlatform, caller: FromCaller, data: JSONBody[NewEvent]) -> Response[OwnEventView]:
    created = await platform.organiser.organise.create(editor_of(caller), edit_of(data, data.currency))
    return await _answer(platform, created, 201)


@get(
    ONE,
    operation_id="get_own_event",
    summary="One event, also a draft, with everything that can be changed",
    opt={"access": Access.staff("events:read")},
)
async def get_own_event(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[OwnEventView]:
    return await _shown(platform, await platform.organiser.organise.get(editor_of(caller), event_id))


@patch(
    ONE, operation_id="change_event", summary="Change tiers, fees, schedule, caps, withheld seats, rules", opt=WRITES
)
async def change_event(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    data: JSONBody[EventChange],
    if_match: IfMatch = None,
) -> Response[OwnEventView]:
    editor, organise = editor_of(caller), platform.organiser.organise
    current = await organise.get(editor, event_id)
    changed = await organise.change(editor, event_id, edit_of(data, current.event.currency), if_match)
    return await _answer(platform, changed)


@post(f"{ONE}/publish", operation_id="publish_event", summary="Put a draft on sale", status_code=200, opt=CONTROLS)
async def publish_event(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], if_match: IfMatch = None
) -> Response[OwnEventView]:
    return await _answer(platform, await platform.organiser.organise.publish(editor_of(caller), event_id, if_match))


@post(f"{ONE}/complete", operation_id="complete_event", summary="The show is over", status_code=200, opt=CONTROLS)
async def complete_event(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], if_match: IfMatch = None
) -> Response[OwnEventView]:
    return await _answer(platform, await platform.organiser.organise.complete(editor_of(caller), event_id, if_match))


@post(
    f"{ONE}/open", operation_id="open_sale", summary="Open the sale now, before its time", status_code=200, opt=CONTROLS
)
async def open_sale(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], if_match: IfMatch = None
) -> Response[OwnEventView]:
    return await _answer(platform, await platform.organiser.organise.open_now(editor_of(caller), event_id, if_match))


@post(f"{ONE}/pause", operation_id="pause_sale", summary="Stop selling for now", status_code=200, opt=CONTROLS)
async def pause_sale(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[OwnEventView]:
    return await _answer(platform, await platform.organiser.organise.pause(editor_of(caller), event_id, paused=True))


@post(f"{ONE}/resume", operation_id="resume_sale", summary="Go on selling", status_code=200, opt=CONTROLS)
async def resume_sale(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[OwnEventView]:
    return await _answer(platform, await platform.organiser.organise.pause(editor_of(caller), event_id, paused=False))


@post(
    f"{ONE}/cancel",
    operation_id="cancel_event",
    summary="Cancel the event: a job refunds everybody; repeated, the progress",
    status_code=202,
    opt=CONTROLS,
)
async def cancel_event(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], if_match: IfMatch = None
) -> CancellationView:
    begun = await platform.organiser.organise.cancel(editor_of(caller), event_id, if_match)
    await platform.box_office.openings.refresh()
    return _cancellation(begun)


@get(
    f"{ONE}/cancellation",
    operation_id="get_cancellation",
    summary="The progress of the cancellation",
    opt={"access": Access.staff("events:read")},
)
async def get_cancellation(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> CancellationView:
    await own_event(platform, caller, event_id)
    found = await platform.ledger.organiser.cancellation(event_id)
    if found is None:
        raise NotFound("this event is not cancelled", event=event_id)
    return _cancellation(found)


def _cancellation(job: Cancellation) -> CancellationView:
    return CancellationView(
        job.event_id,
        job.state,
        job.refunded,
        job.released,
        job.stopped,
        job.failed,
        time_text(job.started_at_us),
        time_text(job.changed_at_us),
        job.returned,
    )


async def _answer(platform: Platform, versioned: VersionedEvent, status: int = 200) -> Response[OwnEventView]:
    """The changed event. This server applies the change before it responds, the others within a second."""
    await platform.box_office.openings.refresh()
    return await _shown(platform, versioned, status)


async def _shown(platform: Platform, versioned: VersionedEvent, status: int = 200) -> Response[OwnEventView]:
    plan = await platform.organiser.organise.venues.plan(versioned.event.plan_hash)
    rules = platform.organiser.organise.rules_of(versioned.event)
    return tagged(view_of(versioned.event, plan, versioned.tag, rules), versioned.tag, status)


ROUTES: list[HTTPRouteHandler] = [
    list_own_events,
    create_event,
    get_own_event,
    change_event,
    publish_event,
    complete_event,
    open_sale,
    pause_sale,
    resume_sale,
    cancel_event,
    get_cancellation,
]
