"""Visitors of a room that is served alone ask to be told shortly before their turn (`endpoints.room.turn_notices`)."""

from typing import Any, Final

from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.web.endpoints.room.turn_notices import answer_kinds, answer_notice
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.site.console.room_page import language_of
from frontrow.web.site.languages import N_, words_of

Asked = Request[Any, Any, Any]
PATH: Final = "/v1/events/{event:str}/room/notice"
# the message itself, which `app.notice_wiring` sends
SUBJECT: Final = N_("Your turn is near")
TEXT: Final = N_("In a few minutes it is your turn. Open the queue again in the browser in which you joined: {url}")


@post(PATH, operation_id="room_notice", summary="Be told shortly before the turn", status_code=200)
async def ask_for_notice(request: Asked, event: FromPath[str]) -> ASGIApp:
    """Keep who is to be told; or, with `withdraw`, forget it."""
    state = request.app.state
    asked = await read_request(request)
    words = words_of(language_of(asked))
    return AnswerApp(await answer_notice(state.notices, state.room_context, state.notice_pages, event, asked, words))


@get(PATH, operation_id="room_notice_kinds", summary="How people can be told")
async def notice_kinds(request: Asked, event: FromPath[str]) -> ASGIApp:
    """The channels of this room."""
    return AnswerApp(answer_kinds(request.app.state.notices))


CONSOLE_ROUTES: list[HTTPRouteHandler] = [ask_for_notice, notice_kinds]
