"""Sales figures (B13, B19): totals, over time, live; as JSON, CSV and server-sent events."""

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.types import ASGIApp

from frontrow.boxoffice.organiser.model.reports import EventReport
from frontrow.boxoffice.organiser.model.sales_figures import (
    Amount,
    Bucket,
    Forecast,
    Group,
    LiveFigures,
    Percentiles,
    RoomFigures,
    States,
    Step,
    figures_csv,
    series_csv,
)
from frontrow.core.errors import InvalidInput
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.platform.event_access import own_event, zone_of
from frontrow.web.platform.injected import FromCaller, FromPlatform

FIGURES = "/v1/organiser/events/{event_id:str}/figures"
FIGURES_RIGHT = "figures:read"
READS: dict[str, Any] = {"access": Access.staff(FIGURES_RIGHT)}
MOMENT = r"^(\d{4}-\d\d-\d\dT[0-9:.]{5,20}(Z|[+-]\d\d:\d\d))?$"  # or empty: a form sends empty fields
Since = Annotated[
    str, QueryParameter(pattern=MOMENT, max_length=40, description="from this time on; without it, the whole sale")
]
Until = Annotated[str, QueryParameter(pattern=MOMENT, max_length=40, description="up to this moment")]
StepS = Annotated[int, QueryParameter(ge=0, le=31_536_000, description="seconds per step; 0: about 120 steps")]


class AmountView(msgspec.Struct):
    """Money in one currency, in its smallest unit."""

    currency: str
    captured_minor: int
    refunded_minor: int
    refunds_open_minor: int
    fees_kept_minor: int
    net_minor: int


class FiguresView(msgspec.Struct):
    """Everything about one event, at most two seconds old. `payment_success` is a share from 0 to 1. `forecast` says
    when the last seat would be sold at the pace of the last minutes; null when nobody can know."""

    event: str
    at: Time
    seats: Group
    sections: list[Group]
    tiers: list[Group]
    bookings: States
    money: list[AmountView]
    payment_success: float | None
    holds_per_s: float
    sales_per_s: float
    room: RoomFigures | None
    funnel: list[Step]
    latency: dict[str, Percentiles]
    forecast: Forecast | None = None


class SeriesView(msgspec.Struct):
    event: str
    steps: list[Bucket]


@get(
    "/v1/organiser/events/{event_id:str}/report",
    operation_id="get_report",
    summary="Sales by day, tier and channel, refunds, check-ins",
    opt=READS,
)
async def get_report(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> EventReport:
    event = await own_event(platform, caller, event_id)
    return await platform.organiser.reports.of(event, await zone_of(platform, event))


@get(FIGURES, operation_id="get_figures", summary="Seats, bookings, money, speed, funnel", opt=READS)
async def get_figures(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> FiguresView:
    found = await platform.organiser.figures.of(await own_event(platform, caller, event_id))
    return FiguresView(
        found.event_id,
        time_text(found.at_us),
        found.seats,
        found.sections,
        found.tiers,
        found.bookings,
        [_amount(one) for one in found.money],
        found.payment_success,
        found.holds_per_s,
        found.sales_per_s,
        found.room,
        found.funnel,
        found.latency,
        found.forecast,
    )


@get(
    f"{FIGURES}.csv",
    operation_id="get_figures_csv",
    summary="The same as a table",
    media_type="text/csv",
    opt={**READS, "answers": {200: "text/csv"}},
)
async def get_figures_csv(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[str]:
    event = await own_event(platform, caller, event_id)
    found = await platform.organiser.figures.of(event)
    return _table(figures_csv(found, event.currency), f"figures-{event_id}")


@get(f"{FIGURES}/series", operation_id="get_series", summary="Holds, sales and refunds over time", opt=READS)
async def get_series(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    since: Since = "",
    until: Until = "",
    step_s: StepS = 0,
) -> SeriesView:
    event = await own_event(platform, caller, event_id)
    return SeriesView(event.id, await platform.organiser.figures.series(event, *_span(since, until), step_s))


@get(
    f"{FIGURES}/series.csv",
    operation_id="get_series_csv",
    summary="The same as a table",
    media_type="text/csv",
    opt={**READS, "answers": {200: "text/csv"}},
)
async def get_series_csv(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    since: Since = "",
    until: Until = "",
    step_s: StepS = 0,
) -> Response[str]:
    event = await own_event(platform, caller, event_id)
    steps = await platform.organiser.figures.series(event, *_span(since, until), step_s)
    return _table(series_csv(steps, event.currency), f"series-{event_id}")


@get(
    f"{FIGURES}/live",
    operation_id="stream_figures",
    summary="Live figures, one frame per second (server-sent events)",
    opt={**READS, "answers": {200: "text/event-stream"}, "problems": (503,)},
)
async def stream_figures(
    request: Request[Any, Any, Any], platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> ASGIApp:
    event = await own_event(platform, caller, event_id)
    platform.organiser.live.check_room(event.id)
    headers = request.headers

    async def may_look() -> bool:
        """Whether the request would still be let in: its session or key lives, with the right and the organiser."""
        now = await platform.callers.find("GET", headers)
        return FIGURES_RIGHT in now.permissions and now.organiser_id == caller.organiser_id

    return platform.organiser.live.app(event.id, may_look=may_look)


@get(
    f"{FIGURES}/poll",
    operation_id="poll_figures",
    summary="The newest live frame, for clients without a stream",
    opt=READS,
)
async def poll_figures(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> LiveFigures:
    event = await own_event(platform, caller, event_id)
    return await platform.organiser.live.latest(event.id)


def _amount(one: Amount) -> AmountView:
    return AmountView(
        one.currency, one.captured_minor, one.refunded_minor, one.refunds_open_minor, one.fees_kept_minor, one.net_minor
    )


def _span(since: str, until: str) -> tuple[int, int]:
    return _read_moment(since, "since"), _read_moment(until, "until")


def _read_moment(text: str, param: str) -> int:
    """A time of the query in microseconds; 0 without one."""
    if not text:
        return 0
    try:
        moment = msgspec.convert(text, Moment)
    except msgspec.ValidationError:
        raise InvalidInput(f"{param} must be a time such as 2026-11-15T19:30:00Z", param=param) from None
    return moment_us(moment, param) or 0


def _table(text: str, name: str) -> Response[str]:
    headers = {"content-disposition": f'attachment; filename="{name}.csv"', "x-content-type-options": "nosniff"}
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")


ROUTES: list[HTTPRouteHandler] = [
    get_report,
    get_figures,
    get_figures_csv,
    get_series,
    get_series_csv,
    stream_figures,
    poll_figures,
]
