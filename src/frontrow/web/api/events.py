"""Browsing (B1): the events, found by words, in cursor pages; one event with what is free, and where its map is."""

from enum import StrEnum
from typing import Annotated, Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.types import ASGIApp

from frontrow.boxoffice.model.events import EventStatus
from frontrow.boxoffice.services.browse import MAX_PAGE
from frontrow.web.api import FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.api.routes import own_checks
from frontrow.web.event_lists import CURSOR, Asked, EventPage
from frontrow.web.event_views import EventView
from frontrow.web.room_app import AnswerApp, ask_of
from frontrow.web.room_endpoints import settle

MAX_WORDS_CHARS = 200


class ShownStatus(StrEnum):
    """What the public sees of `EventStatus`: everything but drafts."""

    ON_SALE = "on_sale"
    SOLD_OUT = "sold_out"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@get(
    "/v1/events",
    operation_id="list_events",
    summary="Events, found by words, in order of their start",
    opt={"access": Access.PUBLIC, "answers": {200: EventPage}},
)
async def list_events(
    request: Request[Any, Any, Any],
    platform: FromPlatform,
    q: Annotated[str, QueryParameter(max_length=MAX_WORDS_CHARS, description="all of these words")] = "",
    status: Annotated[ShownStatus | None, QueryParameter(description="only events that are so")] = None,
    cursor: Annotated[str, QueryParameter(max_length=60, pattern=CURSOR, description="`next` of the page before")] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 20,
) -> ASGIApp:
    asked = Asked(q, EventStatus(status or EventStatus.ON_SALE), cursor, limit)
    return AnswerApp(await platform.listed.answer(asked, await ask_of(request)))


@get(
    "/v1/events/{event_id:str}",
    operation_id="get_event",
    summary="One event with what is free now",
    opt=own_checks(Access.PUBLIC, answers={200: EventView}, problems=(404, 429, 503)),
)
async def get_event(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    # Counts the address and no person: the answer is the same kept bytes for everybody, and finding out who is signed
    # in (a read of the ledger) would cost more than the request that the limit is to save.
    return AnswerApp(await settle(platform.shown.event(event_id, await ask_of(request))))


ROUTES: list[HTTPRouteHandler] = [list_events, get_event]
