"""The waiting room's routes (W5, W7, W9): the same endpoints as the hot lane's, declared for Litestar.

Routes come from `room.app.ROUTES`, their bodies and answers from `endpoints.room_schema.SHAPES`.
"""

from typing import Any

from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.web.api import FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.api.routes import own_checks
from frontrow.web.endpoints.room import await_answer
from frontrow.web.endpoints.room_schema import SHAPES
from frontrow.web.room.app import ROUTES as TABLE
from frontrow.web.room.app import AnswerApp, Route, read_request, stream_app

PREFIX = "/v1/events/{event_id:str}/room"


def _handler(route: Route) -> HTTPRouteHandler:
    shape = SHAPES[route.endpoint]

    async def handle(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
        endpoint = getattr(platform.room.endpoints, route.endpoint)
        return AnswerApp(await await_answer(endpoint(event_id, await read_request(request))))

    verb = {"GET": get, "POST": post}[route.method]
    access = own_checks(
        Access.PUBLIC, body=shape.body, answers=shape.answers, problems=shape.problems, body_optional=True
    )
    handler: HTTPRouteHandler = verb(
        PREFIX + route.path, operation_id=f"room_{route.endpoint}", summary=route.summary, opt=access
    )(handle)
    return handler


@get(
    PREFIX + "/stream",
    operation_id="room_stream",
    summary="Now-serving, live (server-sent events)",
    opt=own_checks(Access.PUBLIC, answers=SHAPES["stream"].answers, problems=SHAPES["stream"].problems),
)
async def stream(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    endpoints = platform.room.endpoints
    address = endpoints.context.client_ip(await read_request(request))
    refusal = endpoints.stream_refusal(event_id, address)
    return AnswerApp(refusal) if refusal else stream_app(endpoints.streams[event_id], address)


ROUTES: list[HTTPRouteHandler] = [
    *(_handler(route) for route in TABLE if SHAPES[route.endpoint].bearer != "organiser"),  # see `organiser.room`
    stream,
]
