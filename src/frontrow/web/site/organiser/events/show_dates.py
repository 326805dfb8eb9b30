"""The dates of a show: which there are, and a form that makes more of them from a weekly rule or a list.

The form is sent twice: first it shows the dates it means, then it makes them.
"""

from datetime import date, datetime, time
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.show_dates import DateRule, SaleOpening, dates_by_rule
from frontrow.core.errors import FrontrowError, NotFound, Unavailable
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_steps import ONE, READS, WRITES, OrganiserEvent, load_event
from frontrow.web.site.organiser.form_fields import BAD_TIME, NEEDED, Errors, Reading, Typed
from frontrow.web.site.organiser.refusal_sentences import sentence_of
from frontrow.web.site.render import render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
PATH: Final = f"{ONE}/dates"
MAX_LIST_CHARS: Final = 4_000
BAD_LIST: Final = N_("Write one date per line, such as 2027-05-07 19:30.")
BAD_RULE: Final = N_("The last day must be after the first, at most three years later.")
DAYS: Final = (
    N_("Monday"),
    N_("Tuesday"),
    N_("Wednesday"),
    N_("Thursday"),
    N_("Friday"),
    N_("Saturday"),
    N_("Sunday"),
)
OPENINGS: Final = {
    SaleOpening.SAME: N_("All sales open together with this event's."),
    SaleOpening.RELATIVE: N_("Each sale opens as many days before its show as this event's, at the same time."),
}
DONE: Final = {
    "added": N_("The dates are made, as drafts."),
    "published": N_("Published. Fans see it now."),
}


@page(PATH, "dates", READS)
async def dates(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The dates of the show, and the empty form."""
    one = await load_event(platform, caller, event_id)
    return await _page(request, platform, caller, one, {"opening": SaleOpening.SAME.value})


@action(PATH, "add_dates", WRITES)
async def add(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Show the dates that the form means; make them if that was confirmed."""
    one = await load_event(platform, caller, event_id)
    reading = Reading(form, one.zone)
    meant: list[Event] = []
    try:
        wanted = _dates(reading)
        opening = SaleOpening.RELATIVE if form.one("opening") == SaleOpening.RELATIVE else SaleOpening.SAME
        if not reading.errors and form.one("make"):
            await platform.organiser.dates.add(editor_of(caller), event_id, wanted, opening)
            await platform.box_office.openings.refresh()
            return go_to(f"/organiser/events/{event_id}/dates?done=added")
        if not reading.errors:
            meant = await platform.organiser.dates.plan(editor_of(caller), event_id, wanted, opening)
    except (Unavailable, NotFound):
        raise
    except FrontrowError as error:
        reading.errors["form"] = sentence_of(error)
    return await _page(request, platform, caller, one, _typed(form), reading.errors, meant, looked=not reading.errors)


@action(f"{PATH}/publish", "publish_dates", Access.staff("sales:control"))
async def publish(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Publish every draft of the show, or say which one is not ready."""
    one = await load_event(platform, caller, event_id)
    try:
        await platform.organiser.dates.publish(editor_of(caller), event_id)
    except (Unavailable, NotFound):
        raise
    except FrontrowError as error:
        errors = Errors()
        errors.add_error(error)
        errors.setdefault("form", next(iter(errors.values())))
        return await _page(request, platform, caller, one, {"opening": SaleOpening.SAME.value}, errors)
    finally:
        await platform.box_office.openings.refresh()
    return go_to(f"/organiser/events/{event_id}/dates?done=published")


def _typed(form: Form) -> dict[str, str]:
    return form.first() | {f"day{number}": "1" for number in range(len(DAYS)) if form.one(f"day{number}")}


def _dates(reading: Reading) -> list[datetime]:
    """The dates of the rule and of the list."""
    form = reading.form
    days = frozenset(number for number in range(len(DAYS)) if form.one(f"day{number}"))
    found: list[datetime] = []
    if days:
        first, last = _day(reading, "first"), _day(reading, "last")
        times = _times(reading)
        if first and last and times:
            if not 0 <= (last - first).days <= 3 * 366:
                reading.errors["last"] = BAD_RULE
            else:
                found += dates_by_rule(DateRule(days, times, first, last))
    for line in form.one("list", MAX_LIST_CHARS).splitlines():
        if text := line.strip():
            try:
                at = datetime.fromisoformat(text.replace("  ", " "))
                found.append(at.replace(second=0, microsecond=0))
                if at.tzinfo is not None:
                    raise ValueError(text)
            except ValueError:
                reading.errors["list"] = BAD_LIST
    if not found and not reading.errors:
        reading.errors["list"] = BAD_LIST
    return found


def _day(reading: Reading, name: str) -> date | None:
    text = reading.form.one(name, 10)
    try:
        return date.fromisoformat(text)
    except ValueError:
        reading.errors[name] = BAD_TIME if text else NEEDED
        return None


def _times(reading: Reading) -> tuple[time, ...]:
    found = []
    for name in ("time", "second_time"):
        text = reading.form.one(name, 8)
        try:
            found += [time.fromisoformat(text).replace(second=0, microsecond=0, tzinfo=None)] if text else []
        except ValueError:
            reading.errors[name] = BAD_TIME
    if not found and "time" not in reading.errors:
        reading.errors["time"] = NEEDED
    return tuple(found)


async def _page(
    request: Asked,
    platform: Platform,
    caller: Caller,
    one: OrganiserEvent,
    values: dict[str, str],
    errors: Errors | None = None,
    meant: list[Event] | None = None,
    *,
    looked: bool = False,
) -> Response[bytes]:
    found = await platform.organiser.dates.of(editor_of(caller), one.event.id)
    return render(
        request,
        "organiser/dates.html",
        status=422 if errors else 200,
        one=one,
        of_event=one.event,
        dates=[shown(platform, event, one.venue) for event in found],
        drafts=sum(event.status is EventStatus.DRAFT for event in found),
        days=DAYS,
        openings=OPENINGS,
        v=Typed(values),
        errors=errors or Errors(),
        meant=meant or [],
        looked=looked,
        can_write="events:write" in caller.permissions and not one.is_final,
        can_publish="sales:control" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


ROUTES: list[HTTPRouteHandler] = [dates, add, publish]
