"""The waiting room as a Litestar app of its own, and as a route table of the hot lane.

One table of routes (`ROUTES`) makes both, and the platform's API (`api.fans.room`) declares the same table. Each route
exists under `/v1/events/{event}/room/…` and, when one room is configured, at the root as well. `room_app` is the app of
a room that runs as a server of its own; uvicorn's protocol answers `hot_routes` before it.
"""

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from litestar import Litestar, Request, Response, get, patch, post
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components
from litestar.params import FromPath
from litestar.types import ASGIApp, Receive, Scope, Send

from frontrow.core.background_tasks import start_loop
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import failures_here
from frontrow.waitingroom.service.metrics import RoomMetrics
from frontrow.web.endpoints.messages import (
    JSON,
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room import RoomEndpoints, await_answer
from frontrow.web.endpoints.room_context import Endpoint
from frontrow.web.endpoints.room_schema import operation_of, security_schemes
from frontrow.web.endpoints.sharded_room import ShardedEndpoints
from frontrow.web.lane.pending_replies import TAKE_OVER, Handler, Routes, Takeover
from frontrow.web.lane.place_status import hot_status
from frontrow.web.observability.job_health import failed_jobs
from frontrow.web.observability.room_metrics import room_metrics_page
from frontrow.web.observability.worker_metrics import Board
from frontrow.web.room.page import INSIDE_PATH
from frontrow.web.streams.positions import STREAM_HEAD, Streams

log = logging.getLogger("frontrow.web.room")

PREFIX = "/v1/events/{event:str}/room"

Endpoints = RoomEndpoints | ShardedEndpoints


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint: its method and path, the method of `RoomEndpoints` that answers, and whether the hot lane does."""

    method: str
    path: str
    endpoint: str
    summary: str
    hot: bool = False


ROUTES = (
    Route("POST", "/join", "join", "Take a place at the end of the line", hot=True),
    Route("GET", "/status", "status", "What a place is worth at the moment", hot=True),
    Route("POST", "/claim", "claim", "Exchange an active place for a pass, once", hot=True),
    Route("GET", "/now-serving", "now_serving", "The signed document, the same for everybody", hot=True),
    Route("GET", "/pass", "check_pass", "204 when the request carries a good pass (nginx auth_request)", hot=True),
    Route("POST", "/renew", "renew", "A pass that lives longer"),
    Route("POST", "/give-back", "give_back", "End a visit; its room goes to the next person"),
    Route("POST", "/heartbeat", "heartbeat", "The visitor is still there; answers when the visit ends otherwise"),
    Route(
        "POST", "/left", "left", "A page of the shop was closed; the visit ends soon unless the visitor is heard again"
    ),
    Route("POST", "/leave", "leave", "Leave the line (rooms by identity)"),
    Route("GET", "/challenge", "challenge", "What a browser needs to prove that a person sits there"),
    Route("GET", "/draw", "draw", "The published record of the pre-queue draw"),
    Route("GET", "/message", "message", "The organiser's words"),
    Route("GET", "/overflow", "overflow", "The static page for those there is no room for"),
    Route("GET", "/room", "show_room", "The organiser's view"),
    Route("PATCH", "/room", "change_room", "Open, pause, resume, queue-all; rate, capacity, message"),
    Route("POST", "/codes", "import_codes", "Take over the organiser's own fan codes (CSV: code,lane)"),
    Route("GET", "/", "page", "The page people wait on"),
)
_VERBS: dict[str, Any] = {"GET": get, "POST": post, "PATCH": patch}


class AnswerApp:
    """An ASGI app that sends one `EndpointResponse`, for Litestar's handlers."""

    def __init__(self, answer: EndpointResponse) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers()]
        if answer.status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else answer.body  # type: ignore[typeddict-item]
        await send({"type": "http.response.body", "body": body, "more_body": False})


class StreamApp:
    """An ASGI app that sends a reader's stream: the same events as the hot lane's.

    Under our own protocol it only writes the head: then the connection is taken over as in the hot lane, and the app
    ends. Else its task goes on, and a reader who does not take an event within `slow_s` is dropped.
    """

    def __init__(
        self,
        events: Callable[[], AsyncGenerator[bytes, None]],
        slow_s: float | None = None,
        takeover: Takeover | None = None,
    ) -> None:
        self._events, self._slow_s, self._takeover = events, slow_s, takeover

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = [(n.encode(), v.encode()) for n, v in EndpointResponse(200, STREAM_HEAD).headers()]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        offer: Any = (scope.get("extensions") or {}).get(TAKE_OVER)
        if self._takeover is not None and offer is not None and offer["call"](self._takeover):
            return
        writing = asyncio.ensure_future(self._write(send))
        try:
            while not writing.done():
                left = asyncio.ensure_future(receive())
                await asyncio.wait((left, writing), return_when=asyncio.FIRST_COMPLETED)
                gone = left.done() and left.result()["type"] == "http.disconnect"
                left.cancel()
                if gone:
                    break
        finally:
            writing.cancel()

    async def _write(self, send: Send) -> None:
        async with aclosing(self._events()) as events:  # a reader who left stops counting at once
            async for event in events:
                try:
                    async with asyncio.timeout(self._slow_s):
                        await send({"type": "http.response.body", "body": event, "more_body": True})
                except TimeoutError:
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})  # the stream itself has ended


def stream_app(streams: Streams, address: str) -> StreamApp:
    """The stream of a room for a reader of this address."""
    return StreamApp(
        lambda: streams.events(address), takeover=Takeover(functools.partial(streams.take, address=address))
    )


async def read_request(request: Request[Any, Any, Any]) -> EndpointRequest:
    """The request as the endpoints read it."""
    client = request.scope.get("client")
    headers = list(request.scope["headers"])
    body = await request.body() if request.method in ("POST", "PATCH", "DELETE") else b""
    query = request.scope.get("query_string", b"")
    return EndpointRequest(headers, body, client[0] if client else "", query)


def _handler(route: Route, endpoint: Endpoint, event: str) -> HTTPRouteHandler:
    """Litestar's handler of one route: of one event at the root, or of the event in the path."""

    async def of_path(request: Request[Any, Any, Any], event: FromPath[str]) -> ASGIApp:
        return AnswerApp(await await_answer(endpoint(event, await read_request(request))))

    async def at_root(request: Request[Any, Any, Any]) -> ASGIApp:
        return AnswerApp(await await_answer(endpoint(event, await read_request(request))))

    path = route.path if event else PREFIX + route.path
    name = route.endpoint + ("_root" if event else "")
    about = {"summary": route.summary, "operation_class": operation_of(route.endpoint)}
    verb = _VERBS[route.method](path, operation_id=name, include_in_schema=not event, **about)
    handler: HTTPRouteHandler = verb(at_root if event else of_path)
    return handler


def _stream_handler(endpoints: Endpoints, event: str) -> HTTPRouteHandler:
    def answer(name: str, request: EndpointRequest) -> ASGIApp:
        address = rooms_of(endpoints).context.client_ip(request)
        refusal = endpoints.stream_refusal(name, address)
        return AnswerApp(refusal) if refusal else stream_app(endpoints.streams[name], address)

    async def of_path(request: Request[Any, Any, Any], event: FromPath[str]) -> ASGIApp:
        return answer(event, await read_request(request))

    async def at_root(request: Request[Any, Any, Any]) -> ASGIApp:
        return answer(event, await read_request(request))

    path = "/stream" if event else PREFIX + "/stream"
    name = "stream_root" if event else "stream"
    about: dict[str, Any] = {"summary": "Now-serving, live (SSE)", "operation_class": operation_of("stream")}
    verb = get(path, operation_id=name, include_in_schema=not event, **about)
    return verb(at_root if event else of_path)


def rooms_of(endpoints: Endpoints) -> RoomEndpoints:
    """The endpoints of the single rooms."""
    return endpoints.rooms if isinstance(endpoints, ShardedEndpoints) else endpoints


def _shared_handlers(endpoints: Endpoints, board: Board) -> list[HTTPRouteHandler]:
    rooms = rooms_of(endpoints)

    @get("/.well-known/jwks.json", operation_id="jwks", summary="The keys that passes are checked with")
    async def jwks() -> ASGIApp:
        body = encode_json(endpoints.room.jwks())
        return AnswerApp(EndpointResponse(200, JSON + b"cache-control: public, max-age=60\r\n", body))

    @get("/metrics", operation_id="metrics", summary="Prometheus metrics")
    async def metrics() -> ASGIApp:
        kind, body = room_metrics_page(RoomMetrics(rooms.room, rooms.counts, rooms.streams), board)
        return AnswerApp(EndpointResponse(200, b"content-type: " + kind.encode() + b"\r\n" + NO_STORE, body))

    @get("/healthz", operation_id="healthz", summary="Is this process serving its rooms?")
    async def healthz() -> ASGIApp:
        rooms = {event: endpoints.room.control.view(event).state.phase for event in endpoints.streams}
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
    endpoints: Endpoints, *, root_event: str = "", own_loops: bool = True, board: Board | None = None
) -> Litestar:
    """The app. `own_loops`: start and stop the room's loops and streams with it. `board`: the workers' counts."""
    handlers = [_handler(route, getattr(endpoints, route.endpoint), "") for route in ROUTES]
    handlers.append(_stream_handler(endpoints, ""))
    if root_event:
        handlers += [_handler(route, getattr(endpoints, route.endpoint), root_event) for route in ROUTES]
        handlers.append(_stream_handler(endpoints, root_event))
    return Litestar(
        [*handlers, *_shared_handlers(endpoints, board or Board(None))],
        lifespan=[_lifespan(endpoints)] if own_loops else [],
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


def _lifespan(endpoints: Endpoints) -> Any:
    @asynccontextmanager
    async def running(app: Litestar) -> AsyncIterator[None]:
        await endpoints.room.loops.start()
        tasks, stops = [], []
        for event, streams in endpoints.streams.items():
            room = endpoints.room.cache.find(event)
            streams.show(room.now_serving().body)
            stops.append(room.subscribe(lambda doc, streams=streams: streams.show(doc.body)))  # type: ignore[misc]
            tasks.append(start_loop(streams.run, "streams", event_id=event))
        try:
            yield
        finally:
            for stop in stops:
                stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await endpoints.entry.aclose()
            await endpoints.room.aclose()

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


# -- the hot lane ------------------------------------------------------------------------------------------------------


def hot_routes(endpoints: Endpoints, *, root_event: str = "") -> Routes:
    """The hot lane's table: exact method and path to handler."""
    table: dict[tuple[bytes, bytes], Handler] = {}
    if isinstance(endpoints, ShardedEndpoints):
        for queue in endpoints.queues:
            for base in [f"/v1/events/{queue}/room"] + ([""] if queue == root_event else []):
                for route in ROUTES:
                    if route.hot:
                        handler: Handler = functools.partial(getattr(endpoints, route.endpoint), queue)
                        table[route.method.encode(), (base + route.path).encode()] = handler
    rooms = rooms_of(endpoints)
    for event, streams in rooms.streams.items():
        table |= hot_routes_of(rooms, event, streams)
        if event == root_event:
            table |= hot_routes_of(rooms, event, streams, base="")
    return table


def hot_routes_of(
    endpoints: RoomEndpoints, event: str, streams: Streams, base: str | None = None
) -> dict[tuple[bytes, bytes], Handler]:
    """The hot routes of one room, below its own path or `base`."""
    start = f"/v1/events/{event}/room" if base is None else base
    table: dict[tuple[bytes, bytes], Handler] = {}
    for route in ROUTES:
        if route.hot:
            handler = _hot_handler(endpoints, route, event)
            table[route.method.encode(), (start + route.path).encode()] = handler
    table[b"GET", (start + "/stream").encode()] = _hot_stream(endpoints, event, streams)
    return table


def _hot_handler(endpoints: RoomEndpoints, route: Route, event: str) -> Handler:
    if route.endpoint == "status":
        return hot_status(endpoints, event)
    return functools.partial(getattr(endpoints, route.endpoint), event)


def _hot_stream(endpoints: RoomEndpoints, event: str, streams: Streams) -> Handler:
    def handle(request: EndpointRequest) -> Any:
        address = endpoints.context.client_ip(request)
        return endpoints.stream_refusal(event, address) or Takeover(functools.partial(streams.take, address=address))

    return handle
