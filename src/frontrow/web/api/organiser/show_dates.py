"""Several dates of one show, for organisers (B13): made at once from a list or a weekly rule, published at once."""

from datetime import date, datetime, time
from typing import Annotated, Literal

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.events.model.show_dates import MAX_DATES, DateRule, SaleOpening, dates_by_rule
from frontrow.web.api.organiser.event_bodies import OwnEventSummary, summary_of
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform

PATH = "/v1/organiser/events/{event_id:str}/dates"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
LocalTime = Annotated[
    datetime, msgspec.Meta(tz=False, description="as the clock at the venue shows it", examples=["2027-05-07T19:30:00"])
]
TimeOfDay = Annotated[time, msgspec.Meta(tz=False, examples=["19:30:00"])]


class DateRuleGiven(msgspec.Struct, forbid_unknown_fields=True):
    """Every week on these days at these times, from the first day to the last, in the venue's time zone."""

    weekdays: Annotated[list[Weekday], msgspec.Meta(min_length=1, max_length=7)]
    times: Annotated[list[TimeOfDay], msgspec.Meta(min_length=1, max_length=10)]
    first_day: date
    last_day: date


class DatesAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Further dates of the show: a list, a rule or both. Everything else is as in the event.

    `opening` says when their sales open: `same`, together with this event's, or `relative`, as many days before each
    show, at the same time of day.
    """

    dates: Annotated[list[LocalTime], msgspec.Meta(max_length=MAX_DATES)] = []
    rule: DateRuleGiven | None = None
    opening: SaleOpening = SaleOpening.SAME


class ShowDatesView(msgspec.Struct):
    """All dates of a show in order; `added` are new."""

    dates: list[OwnEventSummary]
    added: int = 0


@get(PATH, operation_id="list_dates", summary="All dates of the show", opt={"access": Access.staff("events:read")})
async def list_dates(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> ShowDatesView:
    return ShowDatesView([summary_of(one) for one in await platform.organiser.dates.of(editor_of(caller), event_id)])


@post(
    PATH,
    operation_id="add_dates",
    summary="Make drafts for further dates of the show; dates that it has are left out",
    status_code=201,
    opt={"access": Access.staff("events:write"), "problems": (409, 412)},
)
async def add_dates(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[DatesAsked]
) -> ShowDatesView:
    wanted = list(data.dates)
    if data.rule is not None:
        days = frozenset(WEEKDAYS.index(day) for day in data.rule.weekdays)
        wanted += dates_by_rule(DateRule(days, tuple(data.rule.times), data.rule.first_day, data.rule.last_day))
    result = await platform.organiser.dates.add(editor_of(caller), event_id, wanted, data.opening)
    await platform.box_office.openings.refresh()
    return ShowDatesView([summary_of(one) for one in result.events], result.added)


@post(
    f"{PATH}/publish",
    operation_id="publish_dates",
    summary="Publish every draft of the show",
    status_code=200,
    opt={"access": Access.staff("sales:control"), "problems": (409, 412)},
)
async def publish_dates(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> ShowDatesView:
    dates = await platform.organiser.dates.publish(editor_of(caller), event_id)
    await platform.box_office.openings.refresh()
    return ShowDatesView([summary_of(one) for one in dates])


ROUTES: list[HTTPRouteHandler] = [list_dates, add_dates, publish_dates]
