"""From an event's page to its seats: straight in when nobody waits, else by way of the waiting room."""

from typing import Any, Final

from litestar import Request
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import NO_STORE, EndpointResponse, header_line
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.fans.seats import pass_for
from frontrow.web.site.routes import FromForm, action

THUMBPRINT_CHARS: Final = 64


@action("/events/{event_id:str}/enter", "enter")
async def enter(
    request: Request[Any, Any, Any],
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    form: FromForm,
) -> ASGIApp:
    """The button "Get tickets". Who is inside already goes on to the seats."""
    if pass_for(platform, caller, event_id) is not None:
        return AnswerApp(EndpointResponse(303, NO_STORE + header_line("location", f"/events/{event_id}/seats")))
    key = form.one("cnf", THUMBPRINT_CHARS) or None
    return AnswerApp(await platform.endpoints.room.visitors.enter(event_id, await read_request(request), key))


ROUTES: list[HTTPRouteHandler] = [enter]
