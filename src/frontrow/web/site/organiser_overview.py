"""The organiser's first page: every event, how its sale stands, and what needs doing next."""

from typing import Any

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.site.render import render
from frontrow.web.site.routes import page
from frontrow.web.site.shown import shown

Asked = Request[Any, Any, Any]
PAGE = 50


@page("/organiser", "overview", Access.staff("events:read"))
async def overview(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """All events of this organiser."""
    events = await platform.ledger.events_of_organiser(caller.organiser_id, (-1, ""), PAGE)
    rows = [shown(platform, event, await platform.ledger.venue(event.venue_id)) for event in events]
    return render(request, "organiser/overview.html", rows=rows)


ROUTES: list[HTTPRouteHandler] = [overview]
