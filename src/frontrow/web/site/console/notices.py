"""Visitors of a room ask to be told shortly before their turn, by mail or SMS. A plain form of the room's page."""

from typing import Any, Final

from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.waitingroom.notices.turn_notices import TurnNotices
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.endpoints.room.visitors import read_form_fields
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import NO_STORE, EndpointRequest, EndpointResponse, json_answer, problem_answer
from frontrow.web.http.overflow_page import Notices
from frontrow.web.http.request_bodies import check_size
from frontrow.web.http.room_credentials import place_of
from frontrow.web.site.console.room_page import language_of
from frontrow.web.site.languages import N_, words_of

Asked = Request[Any, Any, Any]
PATH: Final = "/v1/events/{event:str}/room/notice"
BACK_S: Final = 6
# the message itself, which `app.notice_wiring` sends
SUBJECT: Final = N_("Your turn is near")
TEXT: Final = N_("In a few minutes it is your turn. Open the queue again in the browser in which you joined: {url}")
DONE: Final = {
    "heading": N_("We will tell you"),
    "text": N_("You get one message shortly before your turn. Keep this browser: your place is kept here."),
}
NOT_DONE: Final = {
    "heading": N_("That did not work"),
    "text": N_("Check the address or the number with its country, such as +43 660 1234567, and try again."),
}


@post(PATH, operation_id="room_notice", summary="Be told shortly before the turn", status_code=200)
async def ask_for_notice(request: Asked, event: FromPath[str]) -> ASGIApp:
    """Keep who is to be told; or, with `withdraw`, forget it."""
    state = request.app.state
    asked = await read_request(request)
    return AnswerApp(await answer_notice(state.notices, state.room_context, state.notice_pages, event, asked))


async def answer_notice(
    notices: TurnNotices, context: RoomContext, pages: Notices, event: str, asked: EndpointRequest
) -> EndpointResponse:
    """POST notice: as a page for the form of the room's page, as JSON for programs."""
    is_page = b"text/html" in (asked.header(b"accept") or b"")
    words = words_of(language_of(asked))
    try:
        context.entry.count_ip(context.client_ip(asked))
        check_size(asked)
        fields = read_form_fields(asked)
        place = place_of(event, asked, secure=context.pages.secure)
        if fields.get("withdraw"):
            await notices.withdraw(place, event)
        else:
            kind = fields.get("kind", "")
            if kind not in list(TurnNoticeKind):
                raise InvalidInput(f"kind is one of {', '.join(TurnNoticeKind)}", param="kind")
            await notices.ask(place, event, TurnNoticeKind(kind), fields.get("to", "")[:300], words.language)
    except FrontrowError as error:
        if not is_page:
            return problem_answer(error)
        return _page(pages, error.http_status, words, NOT_DONE)
    return _page(pages, 200, words, DONE) if is_page else json_answer(200, {"asked": True})


def _page(pages: Notices, status: int, words: Any, texts: dict[str, str]) -> EndpointResponse:
    return pages.answer(status, words, texts, refresh_s=BACK_S, goes_back=True, head=NO_STORE)


@get(PATH, operation_id="room_notice_kinds", summary="How people can be told")
async def notice_kinds(request: Asked, event: FromPath[str]) -> ASGIApp:
    """The channels of this room."""
    notices: TurnNotices = request.app.state.notices
    return AnswerApp(json_answer(200, {"kinds": [kind.value for kind in notices.kinds]}))


CONSOLE_ROUTES: list[HTTPRouteHandler] = [ask_for_notice, notice_kinds]
