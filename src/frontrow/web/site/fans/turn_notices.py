"""Who waits in an event's room asks to be told shortly before the turn: the form of the room's page, and programs."""

from typing import Any, Final

from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.settings.colours import theme_css
from frontrow.web.http.access import Access
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import json_answer
from frontrow.web.http.overflow_page import Notices
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.site.console.notices import answer_notice

Asked = Request[Any, Any, Any]
PATH: Final = "/v1/events/{event_id:str}/room/notice"


@post(
    PATH,
    operation_id="ask_turn_notice",
    summary="Be told shortly before the turn",
    status_code=200,
    opt={"access": Access.PUBLIC, "own_checks": True, "idempotency": "own"},
)
async def ask_for_notice(request: Asked, platform: FromPlatform, event_id: FromPath[str]) -> ASGIApp:
    """The place says who asks. A form of another site is refused."""
    room = platform.settings.room
    pages = Notices(room.brand, theme_css(room.colours))
    context, asked = platform.endpoints.room.context, await read_request(request)
    return AnswerApp(await answer_notice(platform.room.notices, context, pages, event_id, asked))


@get(PATH, operation_id="turn_notice_kinds", summary="How people can be told", opt={"access": Access.PUBLIC})
async def notice_kinds(request: Asked, platform: FromPlatform, event_id: FromPath[str]) -> ASGIApp:
    """The channels of this server."""
    return AnswerApp(json_answer(200, {"kinds": [kind.value for kind in platform.room.notices.kinds]}))


ROUTES: list[HTTPRouteHandler] = [ask_for_notice, notice_kinds]
