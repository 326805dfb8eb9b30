"""Who changed what (B16, B20): the organiser's audit with filters, and whether the ledger's chained log is whole."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.organiser.webhooks import MAX_PER_ORGANISER
from frontrow.boxoffice.seats.model.venues import OwnVenue
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.http.cursors import cursor_of, read_number
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.organiser.events.event_names import names_of_events
from frontrow.web.site.organiser.organisation.change_log import ACTS, acts_of, names_of_team
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
AUDIT: Final = "/organiser/audit"
PAGE: Final = 50
EVENTS: Final = 100
VENUES: Final = 100
GLANCE_S, CHECK_S = 1.5, 30.0


@page(AUDIT, "audit", Access.staff("audit:read"))
async def audit(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """Changes, newest first; the badge is checked along if that is quick."""
    query = request.query_params
    names = await names_of_team(platform, caller)
    act = query.get("act", "") if query.get("act", "") in ACTS else ""
    actor = query.get("actor", "") if query.get("actor", "") in names else ""
    own = await platform.ledger.browsing.catalogue.events_of_organiser(caller.organiser_id, (-1, ""), EVENTS)
    words, currencies = words_for(request), {one.id: one.currency for one in own}
    events = await names_of_events(platform, own, words)
    called = events | {one.venue.id: one.venue.name for one in await _venues(platform, caller)}
    hooks = await platform.organiser.webhooks.page(caller.organiser_id, "", MAX_PER_ORGANISER)
    called |= {one.id: one.url for one in hooks}
    event = query.get("event", "") if query.get("event", "") in events else ""
    try:
        before = read_number(query.get("after", "")[:200])
    except InvalidInput:
        before = 0
    book = platform.ledger.browsing.organiser
    found = await book.changes(caller.organiser_id, event, before, PAGE, act=act, actor=actor)
    return render(
        request,
        "organiser/audit.html",
        acts=await acts_of(platform, caller, found, words, currencies, called),
        kinds=ACTS,
        act=act,
        names=names,
        actor=actor,
        events=events,
        event=event,
        more=cursor_of(found[-1].number) if len(found) == PAGE else "",
        chain=await platform.organiser.chain.check(GLANCE_S),
    )


async def _venues(platform: Platform, caller: Caller) -> list[OwnVenue]:
    return await platform.organiser.organise.venues.page(editor_of(caller), "", VENUES)


@action(f"{AUDIT}/check", "audit_check", Access.staff("audit:read"))
async def check(platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Check the whole log, however long it is, within a bound."""
    await platform.organiser.chain.check(CHECK_S)
    return go_to(AUDIT)


ROUTES: list[HTTPRouteHandler] = [audit, check]
