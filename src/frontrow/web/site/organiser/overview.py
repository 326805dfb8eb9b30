"""The organiser's first page: every event, the state of its sale, and what to do next."""

from dataclasses import dataclass
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.sales_figures import EventFigures
from frontrow.core.clock import US_PER_S
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.cursors import cursor_of, read_cursor
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import Shown, shown
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import page

Asked = Request[Any, Any, Any]
PAGE: Final = 20
TODAY_US: Final = 86_400 * US_PER_S  # a show of today still belongs to what is to come

# state -> next action: label, page below the event's path, permission
NEXT: Final = {
    "draft": (N_("Continue the set-up"), "", "events:write"),
    "unpriced": (N_("Set prices"), "/prices", "events:write"),
    "past_dates": (N_("Its dates have passed: choose new ones"), "/sale", "events:write"),
    "ready": (N_("Review and publish"), "/preview", "sales:control"),
    "soon": (N_("Watch the waiting room fill"), "/live", "figures:read"),
    "presale": (N_("Watch the sale"), "/live", "figures:read"),
    "open": (N_("Watch the sale"), "/live", "figures:read"),
    "few": (N_("Watch the sale"), "/live", "figures:read"),
    "paused": (N_("Paused: resume the sale"), "/live", "figures:read"),
    "sold_out": (N_("View the waitlist"), "/waitlist", "bookings:read"),
    "over": (N_("View bookings"), "/bookings", "bookings:read"),
    "show_over": (N_("The show is over: close the event"), "", "sales:control"),
    "cancelled": (N_("View refund progress"), "", "events:read"),
    "completed": (N_("View figures"), "/live", "figures:read"),
}


@dataclass(frozen=True, slots=True)
class Own:
    """One event of the organiser, ready for a template."""

    one: Shown
    figures: EventFigures | None
    next: tuple[str, str, str]

    @property
    def sold(self) -> int:
        return self.figures.seats.sold if self.figures else 0

    @property
    def revenue(self) -> list[tuple[int, str]]:
        """What stays after refunds, by currency."""
        return [(amount.net_minor, amount.currency) for amount in self.figures.money] if self.figures else []


def next_of(event: Event, state: str, now_us: int) -> tuple[str, str, str]:
    """The next action for an event."""
    if state == "draft":
        late = min(event.starts_at_us, event.sale_ends_at_us) <= now_us
        state = "unpriced" if not event.tiers else "past_dates" if late else "ready"
    elif state not in ("completed", "cancelled") and max(event.starts_at_us, event.ends_at_us) < now_us:
        state = "show_over"
    text, behind, permission = NEXT[state]
    return text, f"/organiser/events/{event.id}{behind}", permission


@page("/organiser", "overview", Access.staff("events:read"))
async def overview(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Upcoming events (or past ones, on request), with sold, held, free, revenue and the queue."""
    past = request.query_params.get("show") == "past"
    now_us = platform.clock()
    begin = (-1, "") if past else (now_us - TODAY_US, "")
    after = _after(request.query_params.get("after", "")) or begin
    events = await platform.ledger.browsing.catalogue.events_of_organiser(caller.organiser_id, after, PAGE)
    last = f"{events[-1].starts_at_us}:{events[-1].id}" if len(events) == PAGE else None
    if past:
        last = last if events and events[-1].starts_at_us < now_us - TODAY_US else None
        events = [event for event in events if event.starts_at_us < now_us - TODAY_US]
    figures = "figures:read" in caller.permissions
    rows = [await _own(platform, event, now_us, figures=figures) for event in events]
    venues = await platform.organiser.organise.venues.page(editor_of(caller), "", 1)
    return render(
        request,
        "organiser/overview.html",
        rows=rows,
        past=past,
        more=cursor_of(last),
        sums=_sums(rows),
        has_venue=bool(venues),
        first="after" not in request.query_params,
    )


def _after(cursor: str) -> tuple[int, str] | None:
    at_us, _, event_id = read_cursor(cursor[:200]).partition(":")
    return (int(at_us), event_id) if at_us.isascii() and at_us.isdigit() and len(at_us) < 19 else None


async def _own(platform: Platform, event: Event, now_us: int, *, figures: bool) -> Own:
    one = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id))
    counted = await platform.organiser.figures.of(event) if figures and one.state != "draft" else None
    return Own(one, counted, next_of(event, one.state, now_us))


def _sums(rows: list[Own]) -> dict[str, Any]:
    """The whole page in four figures."""
    revenue: dict[str, int] = {}
    for row in rows:
        for minor, currency in row.revenue:
            revenue[currency] = revenue.get(currency, 0) + minor
    waiting = sum(row.figures.room.waiting for row in rows if row.figures and row.figures.room)
    selling = sum(row.one.state in ("open", "few", "paused") for row in rows)
    return {
        "sold": sum(row.sold for row in rows),
        "revenue": sorted(revenue.items()),
        "waiting": waiting,
        "selling": selling,
    }


ROUTES: list[HTTPRouteHandler] = [overview]
