"""Browsing (B1): search for events, in cursor pages; one event with its free seats and the address of its map."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.types import ASGIApp

from frontrow.boxoffice.events.model.event_search import (
    END_OF_TIME_US,
    MAX_PAGE,
    MAX_PLACE_CHARS,
    MAX_QUERY_CHARS,
    EventSearch,
)
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.web.api.shared_routes import shared_route
from frontrow.web.endpoints.event_details import EventSummary, summary
from frontrow.web.endpoints.event_list import CURSOR, EventPage, read_cursor
from frontrow.web.endpoints.routes import GET_EVENT
from frontrow.web.http.access import Access
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromPlatform

MAX_PRICE = 10**12
MAX_FREE = 10**6
Q_HELP = "words that begin words of the event's name, description, venue or city; case and accents do not matter"
VENUE_HELP = "the venue's id, or how its name begins"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MIN_PRICE_HELP = "the most expensive price tier costs at least this, in minor units of the event's currency"
MAX_PRICE_HELP = "the cheapest price tier costs at most this, in minor units of the event's currency"


class ShownStatus(StrEnum):
    """The public values of `EventStatus`: all but drafts."""

    ON_SALE = "on_sale"
    SOLD_OUT = "sold_out"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@get(
    "/v1/events",
    operation_id="list_events",
    summary="Events, found by words, place, time, price and free seats, in order of their start",
    opt={"access": Access.PUBLIC, "answers": {200: EventPage}},
)
async def list_events(
    request: Request[Any, Any, Any],
    platform: FromPlatform,
    q: Annotated[str, QueryParameter(max_length=MAX_QUERY_CHARS, description=Q_HELP)] = "",
    status: Annotated[ShownStatus | None, QueryParameter(description="only events with this status")] = None,
    cursor: Annotated[
        str, QueryParameter(max_length=60, pattern=CURSOR, description="`next` of the previous page")
    ] = "",
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 20,
    city: Annotated[str, QueryParameter(max_length=MAX_PLACE_CHARS, description="the city begins so")] = "",
    venue: Annotated[str, QueryParameter(max_length=MAX_PLACE_CHARS, description=VENUE_HELP)] = "",
    starts_from: Annotated[datetime | None, QueryParameter(description="starts at this time or later")] = None,
    starts_before: Annotated[datetime | None, QueryParameter(description="starts before this time")] = None,
    currency: Annotated[str, QueryParameter(pattern="^([A-Z]{3})?$", description="sold in this currency")] = "",
    min_price: Annotated[int, QueryParameter(ge=0, le=MAX_PRICE, description=MIN_PRICE_HELP)] = 0,
    max_price: Annotated[int, QueryParameter(ge=0, le=MAX_PRICE, description=MAX_PRICE_HELP)] = MAX_PRICE,
    free: Annotated[int, QueryParameter(ge=0, le=MAX_FREE, description="at least this many seats are free")] = 0,
) -> ASGIApp:
    search = EventSearch(
        words=q,
        status=EventStatus(status or EventStatus.ON_SALE),
        city=city,
        venue=venue,
        from_us=_time_us(starts_from, 0),
        before_us=_time_us(starts_before, END_OF_TIME_US),
        currency=currency,
        min_price_minor=min_price or -1,
        max_price_minor=-1 if max_price == MAX_PRICE else max_price,
        free=free,
        after=read_cursor(cursor),
        limit=limit,
    )
    return AnswerApp(await platform.endpoints.event_list.answer(search, await read_request(request)))


def _time_us(at: datetime | None, otherwise: int) -> int:
    """The time in microseconds. A time without a zone is UTC."""
    if at is None:
        return otherwise
    return int(((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) / MICROSECOND)


class OtherDates(msgspec.Struct):
    """The dates of a show that are not over, in order of their start, the event itself included."""

    dates: list[EventSummary]


@get(
    "/v1/events/{event_id:str}/dates",
    operation_id="list_show_dates",
    summary="The dates of the same show",
    opt={"access": Access.PUBLIC, "problems": (404,)},
)
async def list_show_dates(event_id: FromPath[str], platform: FromPlatform) -> OtherDates:
    event = await shown_event(platform, event_id)
    return OtherDates([summary(one) for one in await platform.box_office.browse.dates_of(event, platform.clock())])


ROUTES: list[HTTPRouteHandler] = [list_events, shared_route(GET_EVENT), list_show_dates]
