"""The waiting room as a Litestar app of its own: `endpoints.room.routes` without the rest of the platform."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, Response, get, patch, post
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.core.errors import FrontrowError
from frontrow.core.failures import failures_here
from frontrow.waitingroom.service.metrics import RoomMetrics
from frontrow.web.endpoints.room.openapi_shapes import operation_of, security_schemes
from frontrow.web.endpoints.room.page import INSIDE_PATH
from frontrow.web.endpoints.room.routes import ALONE_ROUTES, RoomRoute
from frontrow.web.endpoints.room.sharded_queue import ShardedEndpoints
from frontrow.web.http.asgi import AnswerApp, read_request
from frontrow.web.http.messages import (
    JSON,
    NO_STORE,
    Endpoint,
    EndpointRequest,
    EndpointResponse,
    await_answer,
    encode_json,
    json_answer,
    problem_answer,
)
from frontrow.web.observability.job_health import failed_jobs
from frontrow.web.observability.room_metrics import room_metrics_page
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.streams.room_streams import RoomStreams
from frontrow.web.streams.stream_app import stream_app

log = logging.getLogger("frontrow.web.room")

PREFIX = "/v1/events/{event:str}/room"

_VERBS: dict[str, Any] = {"GET": get, "POST": post, "PATCH": patch}


def _handler(route: RoomRoute, endpoint: Endpoint, event: str) -> HTTPRouteHandler:
    """Litestar's handler of one route: of one event at the root, or of the event in the path."""

    async def of_path(request: Request[Any, Any, Any], event: FromPath[str]) -> ASGIApp:
        return AnswerApp(await await_answer(endpoint(event, await read_request(request))))

    async def at_root(request: Request[Any, Any, Any]) -> ASGIApp:
        return AnswerApp(await await_answer(endpoint(event, await read_request(request))))

    path = route.path if event else PREFIX + route.path
    name = route.name + ("_root" if event else "")
    about = {"summary": route.summary, "operation_class": operation_of(route.name)}
    verb = _VERBS[route.method](path, operation_id=name, include_in_schema=not event, **about)
    handler: HTTPRouteHandler = verb(at_root if event else of_path)
    return handler


def _stream_handler(endpoints: ShardedEndpoints, event: str) -> HTTPRouteHandler:
    def answer(name: str, request: EndpointRequest) -> ASGIApp:
        address = endpoints.rooms.context.client_ip(request)
        refusal = endpoints.stream_refusal(name, address)
        return AnswerApp(refusal) if refusal else stream_app(endpoints.rooms.streams[name], address)

    async def of_path(request: Request[Any, Any, Any], event: FromPath[str]) -> ASGIApp:
        return answer(event, await read_request(request))

    async def at_root(request: Request[Any, Any, Any]) -> ASGIApp:
        return answer(event, await read_request(request))

    path = "/stream" if event else PREFIX + "/stream"
    name = "stream_root" if event else "stream"
    about: dict[str, Any] = {"summary": "Now-serving, live (SSE)", "operation_class": operation_of("stream")}
    verb = get(path, operation_id=name, include_in_schema=not event, **about)
    return verb(at_root if event else of_path)


def _shared_handlers(endpoints: ShardedEndpoints, board: Board) -> list[HTTPRouteHandler]:
    rooms = endpoints.rooms

    @get("/.well-known/jwks.json", operation_id="jwks", summary="The keys that passes are checked with")
    async def jwks() -> ASGIApp:
        body = encode_json(endpoints.rooms.room.jwks())
        return AnswerApp(EndpointResponse(200, JSON + b"cache-control: public, max-age=60\r\n", body))

    @get("/metrics", operation_id="metrics", summary="Prometheus metrics")
    async def metrics() -> ASGIApp:
        entry = rooms.entry
        metrics = RoomMetrics(rooms.room, rooms.counts, rooms.streams, entry.harder, entry.without_scripts)
        kind, body = room_metrics_page(metrics, board)
        return AnswerApp(EndpointResponse(200, b"content-type: " + kind.encode() + b"\r\n" + NO_STORE, body))

    @get("/healthz", operation_id="healthz", summary="Is this process serving its rooms?")
    async def healthz() -> ASGIApp:
        rooms = {event: endpoints.rooms.room.control.view(event).state.phase for event in endpoints.rooms.streams}
        return AnswerApp(json_answer(200, {"ok": True, "rooms": rooms}))

    @get("/readyz", operation_id="readyz", summary="Is this process serving its rooms, and which of its jobs fail?")
    async def readyz() -> ASGIApp:
        failing, failures = failed_jobs(board, failures_here())
        return AnswerApp(json_answer(200, {"ok": True, "failing": failing, "failures": failures}))

    @get(INSIDE_PATH, operation_id="inside", summary="Where a pass leads while no shop is set")
    async def inside() -> ASGIApp:
        return AnswerApp(rooms.pages.inside())

    return [jwks, metrics, healthz, readyz, inside]


def room_app(
    endpoints: ShardedEndpoints,
    *,
    root_event: str = "",
    own_loops: bool = True,
    board: Board | None = None,
    streams: RoomStreams | None = None,
    more: Sequence[HTTPRouteHandler] = (),
) -> Litestar:
    """The app. `own_loops`: start and stop the room's loops and streams with it. `board`: the workers' counts.
    `streams` runs those of rooms that come and go. `more`: other handlers, such as those of the console."""
    handlers = [_handler(route, endpoints.endpoint_of(route), "") for route in ALONE_ROUTES]
    handlers.append(_stream_handler(endpoints, ""))
    if root_event:
        handlers += [_handler(route, endpoints.endpoint_of(route), root_event) for route in ALONE_ROUTES]
        handlers.append(_stream_handler(endpoints, root_event))
    return Litestar(
        [*handlers, *_shared_handlers(endpoints, board or Board(None)), *more],
        lifespan=[_lifespan(endpoints, streams or RoomStreams(endpoints.rooms.room))] if own_loops else [],
        exception_handlers={HTTPException: _http_problem, FrontrowError: _problem, Exception: _bug},
        openapi_config=OpenAPIConfig(
            "Frontrow waiting room",
            "1",
            path="/schema",
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
            components=Components(security_schemes=security_schemes()),
        ),
        request_max_body_size=1024 * 1024,
        logging_config=None,
    )


def _lifespan(endpoints: ShardedEndpoints, running_streams: RoomStreams) -> Any:
    @asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        await endpoints.rooms.room.loops.start()
        for event, streams in endpoints.rooms.streams.items():
            running_streams.start(event, streams)
        try:
            yield
        finally:
            await running_streams.aclose()
            await endpoints.rooms.entry.aclose()
            await endpoints.rooms.room.aclose()

    return running


class _HttpProblem(FrontrowError):
    """What the framework refuses by itself (no such path, wrong method), in the same form."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.http_status = status  # type: ignore[misc]
        self.code = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}.get(status, "bad_request")  # type: ignore[misc]

    def problem(self) -> dict[str, Any]:
        body = super().problem()
        return body | {"title": self.code.replace("_", " ").capitalize()}


def _http_problem(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    return _response(problem_answer(_HttpProblem(error.status_code, error.detail)), error.headers)


def _problem(request: Request[Any, Any, Any], error: FrontrowError) -> Response[bytes]:
    return _response(problem_answer(error))


def _bug(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    log.error("a handler failed", exc_info=error)
    return _response(problem_answer(FrontrowError("this is our fault; it has been logged")))


def _response(answer: EndpointResponse, extra: Mapping[str, str] | None = None) -> Response[bytes]:
    headers = {name: value for name, value in answer.headers() if name != "content-type"} | dict(extra or {})
    kind = dict(answer.headers()).get("content-type", "application/json")
    return Response(answer.body, status_code=answer.status, headers=headers, media_type=kind)
