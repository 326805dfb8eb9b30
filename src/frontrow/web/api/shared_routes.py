"""How the fast path's routes are declared for Litestar, too: one `EndpointRequest` in, one `EndpointResponse` out.

Such a route makes its own checks and counts (`opt["own_checks"]`), exactly as on the fast path. `opt["body"]` and
`opt["answers"]` declare its bodies for the API's document.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, delete, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, QueryParameter
from litestar.types import ASGIApp

from frontrow.web.endpoints.routes import Route
from frontrow.web.endpoints.seat_map import POSITION
from frontrow.web.http.access import Access
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import await_answer
from frontrow.web.platform.injected import FromPlatform
from frontrow.web.platform.platform import Platform

VERBS: Final[dict[str, Any]] = {"GET": get, "POST": post, "PATCH": patch, "DELETE": delete}
After = Annotated[
    str, QueryParameter(max_length=40, pattern=POSITION, description="the last event's id, `<epoch>-<seq>`")
]


def shared_route(route: Route) -> HTTPRouteHandler:
    """The framework's handler of a route of the fast path."""

    async def of_event(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
        return await _answer(route, platform, event_id, request)

    async def of_position(
        request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform, after: After = ""
    ) -> ASGIApp:
        return await _answer(route, platform, event_id, request)

    async def of_booking(request: Request[Any, Any, Any], booking_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
        return await _answer(route, platform, booking_id, request)

    handler = of_booking if "{booking_id}" in route.path else of_position if route.takes_query else of_event
    return declared(route)(handler)


async def _answer(route: Route, platform: Platform, subject: str, request: Request[Any, Any, Any]) -> ASGIApp:
    endpoint = route.endpoint(platform.endpoints)
    return AnswerApp(await await_answer(endpoint(subject, await read_request(request))))


def declared(route: Route) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """The decorator that makes a handler answer a route of the fast path."""
    opt = own_checks(route.access, body=route.body, answers=route.answers, problems=route.problems, **route.more)
    about: dict[str, Any] = {"operation_id": route.operation_id, "summary": route.summary, "opt": opt}
    if 201 not in route.answers:
        about["status_code"] = 200
    decorate: Callable[[Callable[..., Any]], HTTPRouteHandler] = VERBS[route.method](
        route.path.replace("_id}", "_id:str}"), **about
    )
    return decorate


def own_checks(
    access: Access,
    *,
    body: type[msgspec.Struct] | None = None,
    answers: Mapping[int, Any] | None = None,
    problems: tuple[int, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """The `opt` of a route whose endpoint checks the pass and the limits itself.

    `answers` maps a status to a Struct, to a media type, or to None (no body); `problems` are the error statuses.
    """
    return {
        "access": access,
        "own_checks": True,
        "idempotency": "own",
        "body": body,
        "answers": dict(answers or {}),
        "problems": problems,
        **more,
    }
