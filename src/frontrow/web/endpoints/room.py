"""What the waiting room answers over HTTP, whichever door the request came through.

Here are the documents that are the same for everybody. What visitors do is in `room_visitors`, what organisers do in
`room_control`.
"""

from typing import Any

from frontrow.core.errors import FrontrowError, NotFound
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.messages import (
    JSON,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room_context import JSON_HEAD, Result, RoomContext
from frontrow.web.endpoints.room_control import OrganiserEndpoints
from frontrow.web.endpoints.room_visitors import JoinIdentity, VisitorEndpoints
from frontrow.web.room.page import RoomPages
from frontrow.web.streams.positions import Streams

SERVING_CACHE = b"cache-control: public, max-age=1, stale-if-error=3600\r\n"
SHORT_CACHE = b"cache-control: public, max-age=5\r\n"


class RoomEndpoints:
    """Every endpoint of every room of this process; `room.app.ROUTES` names them."""

    def __init__(
        self,
        room: WaitingRoom,
        entry: EntranceLimits,
        pages: RoomPages,
        streams: dict[str, Streams],
        *,
        organiser_key: str = "",
        identity: JoinIdentity | None = None,
    ) -> None:
        self.context = RoomContext(room, entry, pages)
        self.room = room
        self.entry = entry
        self.pages = pages
        self.streams = streams
        self.counts = self.context.counts
        self.problem = self.context.problem
        self._serving: dict[str, tuple[Any, EndpointResponse]] = {}

        visitors = VisitorEndpoints(self.context, identity)
        self.join = visitors.join
        self.enter = visitors.enter  # for the platform's pages
        self.status = visitors.status
        self.leave = visitors.leave
        self.claim = visitors.claim
        self.renew = visitors.renew
        self.give_back = visitors.give_back
        self.heartbeat = visitors.heartbeat
        self.left = visitors.left
        self.check_pass = visitors.check_pass

        self.organiser = OrganiserEndpoints(self.context, organiser_key)
        self.show_room = self.organiser.show_room
        self.change_room = self.organiser.change_room
        self.import_codes = self.organiser.import_codes

    def now_serving(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET now-serving: the signed document, or 304 if the client already has it."""
        try:
            document = self.room.cache.find(event).now_serving()
        except FrontrowError as error:
            return self.problem("now-serving", error, request, event)
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
        streams = self.streams.get(event)
        if streams is None:
            return problem_answer(NotFound(f"there is no room for {event!r} here"))
        if not streams.is_full(address):
            return None
        self.context.count("stream_refused")
        retry = b"retry-after: %d\r\n" % streams.retry_after_s()
        return EndpointResponse(503, JSON_HEAD + retry, self.room.cache.find(event).now_serving().body)

    def challenge(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET challenge: what a browser needs to prove that a person uses it."""
        try:
            ip = self.context.client_ip(request)
            self.entry.count_ip(ip)
            return json_answer(200, self.entry.challenge(event, request.headers, ip))
        except FrontrowError as error:
            return self.problem("challenge", error, request, event)

    def draw(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET draw: the published record of the pre-queue draw, for `frontrow room verify-draw`."""
        try:
            return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(self.room.control.draw_record(event)))
        except FrontrowError as error:
            return self.problem("draw", error, request, event)

    def message(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET message: the organiser's message. The now-serving document says when it changed."""
        try:
            state = self.room.control.view(event).state
        except FrontrowError as error:
            return self.problem("message", error, request, event)
        body = {"message": state.config.message, "message_no": state.message_no}
        return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(body))

    def page(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET the page people wait on; beyond the depth cap the static overflow page."""
        try:
            return self.pages.page(event, request)
        except FrontrowError as error:
            return self.problem("page", error, request, event)

    def overflow(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET overflow: the static page, for any cache."""
        return self.pages.overflow(200, request)


async def await_answer(result: Result) -> EndpointResponse:
    """The answer, whether it is ready or still being made."""
    return result if isinstance(result, EndpointResponse) else await result
