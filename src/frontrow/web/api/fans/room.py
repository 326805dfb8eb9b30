"""The waiting room's routes (W5, W7, W9): the same endpoints as the fast path's, declared for Litestar.

Routes come from `endpoints.room.routes`, their bodies and answers from `endpoints.room.openapi_shapes.SHAPES`.
"""

from typing import Any

from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.web.api.shared_routes import own_checks
from frontrow.web.endpoints.room.openapi_shapes import SHAPES
from frontrow.web.endpoints.room.routes import ROUTES as TABLE
from frontrow.web.endpoints.room.routes import RoomRoute
from frontrow.web.endpoints.room.turn_notices import AskedView, NoticeKindsView, answer_kinds, answer_notice
from frontrow.web.endpoints.room.visitors import NoticeBody
from frontrow.web.http.access import Access
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import await_answer
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.streams.stream_app import stream_app

PREFIX = "/v1/events/{event_id:str}/room"


def _handler(route: RoomRoute) -> HTTPRouteHandler:
    shape = SHAPES[route.name]

    async def handle(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
        endpoint = route.endpoint(platform.endpoints.room)
        return AnswerApp(await await_answer(endpoint(event_id, await read_request(request))))

    verb = {"GET": get, "POST": post}[route.method]
    access = own_checks(
        Access.PUBLIC, body=shape.body, answers=shape.answers, problems=shape.problems, body_optional=True
    )
    handler: HTTPRouteHandler = verb(
        PREFIX + route.path, operation_id=f"room_{route.name}", summary=route.summary, opt=access
    )(handle)
    return handler


@get(
    PREFIX + "/stream",
    operation_id="room_stream",
    summary="Now-serving, live (server-sent events)",
    opt=own_checks(Access.PUBLIC, answers=SHAPES["stream"].answers, problems=SHAPES["stream"].problems),
)
async def stream(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    endpoints = platform.endpoints.room
    address = endpoints.context.client_ip(await read_request(request))
    refusal = endpoints.documents.stream_refusal(event_id, address)
    return AnswerApp(refusal) if refusal else stream_app(endpoints.streams[event_id], address)


@post(
    PREFIX + "/notice",
    operation_id="room_notice",
    summary="Be told shortly before the turn",
    status_code=200,
    opt=own_checks(
        Access.PUBLIC, body=NoticeBody, answers={200: AskedView}, problems=(401, 403, 404, 409, 413, 422, 429, 503)
    ),
)
async def ask_for_notice(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    context, asked = platform.endpoints.room.context, await read_request(request)
    pages = context.pages
    return AnswerApp(
        await answer_notice(platform.room.notices, context, pages.notices, event_id, asked, pages.words(asked))
    )


@get(
    PREFIX + "/notice",
    operation_id="room_notice_kinds",
    summary="How people can be told before their turn",
    opt=own_checks(Access.PUBLIC, answers={200: NoticeKindsView}),
)
async def notice_kinds(event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    return AnswerApp(answer_kinds(platform.room.notices))


ROUTES: list[HTTPRouteHandler] = [
    *(_handler(route) for route in TABLE if SHAPES[route.name].bearer != "organiser"),  # see `organiser.room`
    stream,
    ask_for_notice,
    notice_kinds,
]
