"""Visitors of a room ask to be told shortly before their turn, by mail or SMS. A plain form of the room's page."""

from typing import Any, Final, Literal

import msgspec

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.waitingroom.notices.turn_notices import TurnNotices
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.endpoints.room.page_texts import NOT_TOLD, TOLD
from frontrow.web.endpoints.room.visitors import read_notice_body
from frontrow.web.http.messages import NO_STORE, EndpointRequest, EndpointResponse, json_answer, problem_answer
from frontrow.web.http.overflow_page import Notices
from frontrow.web.http.room_credentials import place_of

BACK_S: Final = 6


class AskedView(msgspec.Struct):
    """The address is kept until the notice is sent."""

    asked: bool


class NoticeKindsView(msgspec.Struct):
    """The channels of this server; none: nobody is told."""

    kinds: list[Literal["email", "sms"]]


async def answer_notice(
    notices: TurnNotices, context: RoomContext, pages: Notices, event: str, asked: EndpointRequest, words: Any
) -> EndpointResponse:
    """POST notice: keep who is to be told, or with `withdraw` forget it. As a page for the form of the room's page, as
    JSON for programs."""
    is_page = b"text/html" in (asked.header(b"accept") or b"")
    try:
        context.entry.count_ip(context.client_ip(asked))
        body = read_notice_body(asked)
        place = place_of(event, asked, secure=context.pages.secure)
        if body.withdraw:
            await notices.withdraw(place, event)
        else:
            await notices.ask(place, event, TurnNoticeKind(body.kind), body.to, words.language)
    except FrontrowError as error:
        if not is_page:
            return problem_answer(error)
        return _page(pages, error.http_status, words, NOT_TOLD)
    return _page(pages, 200, words, TOLD) if is_page else json_answer(200, {"asked": True})


def _page(pages: Notices, status: int, words: Any, texts: dict[str, str]) -> EndpointResponse:
    return pages.answer(status, words, texts, refresh_s=BACK_S, goes_back=True, head=NO_STORE)


def answer_kinds(notices: TurnNotices) -> EndpointResponse:
    """GET notice: the channels of this server."""
    return json_answer(200, {"kinds": [kind.value for kind in notices.kinds]})
