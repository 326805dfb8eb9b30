"""What the waiting room shows everybody: the now-serving document, the draw, the message, the page."""

from typing import Any

from frontrow.core.errors import FrontrowError, NotFound
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http.messages import (
    JSON,
    JSON_HEAD,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    json_answer,
    problem_answer,
)
from frontrow.web.streams.positions import Streams

SERVING_CACHE = b"cache-control: public, max-age=1, stale-if-error=3600\r\n"
SHORT_CACHE = b"cache-control: public, max-age=5\r\n"


class DocumentEndpoints:
    """Endpoints for readers of every room of this process. `streams` has the live stream of each room."""

    def __init__(self, context: RoomContext, streams: dict[str, Streams]) -> None:
        self._context = context
        self._room = context.room
        self._entry = context.entry
        self._pages = context.pages
        self._streams = streams
        self._serving: dict[str, tuple[Any, EndpointResponse]] = {}

    def now_serving(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET now-serving: the signed document, or 304 if the client already has it."""
        try:
            document = self._room.cache.find(event).now_serving()
        except FrontrowError as error:
            return self._context.problem("now-serving", error, request, event)
        cached = self._serving.get(event)
        if cached is None or cached[0] is not document:
            head = JSON + SERVING_CACHE + b"etag: " + document.etag.encode() + b"\r\n"
            cached = self._serving[event] = (document, EndpointResponse(200, head, document.body))
        given = request.header(b"if-none-match")
        if given is not None and document.etag.encode() in given:
            return EndpointResponse(304, SERVING_CACHE + b"etag: " + document.etag.encode() + b"\r\n")
        return cached[1]

    def stream_refusal(self, event: str, address: str) -> EndpointResponse | None:
        """None when one more reader of this address fits; else 503 with the document and when to try again."""
        streams = self._streams.get(event)
        if streams is None:
            return problem_answer(NotFound(f"there is no room for {event!r} here"))
        if not streams.is_full(address):
            return None
        self._context.count("stream_refused")
        retry = b"retry-after: %d\r\n" % streams.retry_after_s()
        return EndpointResponse(503, JSON_HEAD + retry, self._room.cache.find(event).now_serving().body)

    def challenge(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET challenge: what a browser needs to prove that a person uses it."""
        try:
            ip = self._context.client_ip(request)
            self._entry.count_ip(ip)
            return json_answer(200, self._entry.challenge(event, request.headers, ip))
        except FrontrowError as error:
            return self._context.problem("challenge", error, request, event)

    def draw(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET draw: the published record of the pre-queue draw, for `frontrow room verify-draw`."""
        try:
            return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(self._room.control.draw_record(event)))
        except FrontrowError as error:
            return self._context.problem("draw", error, request, event)

    def message(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET message: the organiser's message. The now-serving document says when it changed."""
        try:
            state = self._room.control.view(event).state
        except FrontrowError as error:
            return self._context.problem("message", error, request, event)
        body = {"message": state.config.message, "message_no": state.message_no}
        return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(body))

    def page(self, event: str, request: EndpointRequest, front: str = "") -> EndpointResponse:
        """GET the page people wait on; beyond the depth cap the static overflow page."""
        try:
            return self._pages.page(event, request, front)
        except FrontrowError as error:
            return self._context.problem("page", error, request, event)

    def overflow(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET overflow: the static page, for any cache."""
        return self._pages.overflow(200, request)
