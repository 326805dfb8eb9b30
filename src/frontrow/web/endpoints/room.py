"""What the waiting room answers over HTTP, for whichever door asks: an `EndpointRequest` in, an `EndpointResponse` out.

Here: what is the same for everybody, and what organisers do. What single people ask is in `room_people`.
"""

import hmac

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, NotFound, Unauthorised
from frontrow.web.endpoints.messages import (
    JSON,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room_bodies import check_size
from frontrow.web.endpoints.room_control import patch_room, room_body
from frontrow.web.endpoints.room_visitors import JSON_HEAD, PeopleEndpoints, Result

SERVING_CACHE = b"cache-control: public, max-age=1, stale-if-error=3600\r\n"
SHORT_CACHE = b"cache-control: public, max-age=5\r\n"


class RoomEndpoints(PeopleEndpoints):
    """Every endpoint of every room of this process."""

    # -- the same for everybody --------------------------------------------------------------------------------------

    def now_serving(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET now-serving: the signed document, or 304 for who has it."""
        try:
            document = self.room.now_serving(event)
        except FrontrowError as error:
            return self.problem("now-serving", error, ask, event)
        cached = self._serving.get(event)
        if cached is None or cached[0] is not document:
            head = JSON + SERVING_CACHE + b"etag: " + document.etag.encode() + b"\r\n"
            cached = self._serving[event] = (document, EndpointResponse(200, head, document.body))
        given = ask.header(b"if-none-match")
        if given is not None and document.etag.encode() in given:
            return EndpointResponse(304, SERVING_CACHE + b"etag: " + document.etag.encode() + b"\r\n")
        return cached[1]

    def stream_refusal(self, event: str) -> EndpointResponse | None:
        """None when there is room for one more reader; else 503 with the document and when to come again."""
        streams = self.streams.get(event)
        if streams is None:
            return problem_answer(NotFound(f"there is no room for {event!r} here"))
        if not streams.is_full():
            return None
        self.count("stream_refused")
        retry = b"retry-after: %d\r\n" % streams.retry_after_s()
        return EndpointResponse(503, JSON_HEAD + retry, self.room.now_serving(event).body)

    def challenge(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET challenge: what a browser needs to prove that a person sits in front of it."""
        try:
            ip = self._ip(ask)
            self.entry.knock_ip(ip)
            return json_answer(200, self.entry.challenge(event, ask.headers, ip))
        except FrontrowError as error:
            return self.problem("challenge", error, ask, event)

    def draw(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET draw: the published record of the pre-queue draw, for `frontrow room verify-draw`."""
        try:
            return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(self.room.draw_record(event)))
        except FrontrowError as error:
            return self.problem("draw", error, ask, event)

    def message(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET message: the organiser's words; now-serving tells when they changed."""
        try:
            state = self.room.view(event).state
        except FrontrowError as error:
            return self.problem("message", error, ask, event)
        body = {"message": state.config.message, "message_no": state.message_no}
        return EndpointResponse(200, JSON + SHORT_CACHE, encode_json(body))

    def page(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET the page people wait on; beyond the depth cap the static overflow page."""
        try:
            return self.pages.page(event, ask)
        except FrontrowError as error:
            return self.problem("page", error, ask, event)

    def overflow(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET overflow: the static page, to be put on any cache."""
        return self.pages.overflow(200, ask)

    # -- organisers --------------------------------------------------------------------------------------------------

    def show_room(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        """GET room: the organiser's view."""
        try:
            self._organiser(ask)
            return json_answer(200, room_body(self.room.view(event)))
        except FrontrowError as error:
            return self.problem("room", error, ask, event)

    def change_room(self, event: str, ask: EndpointRequest) -> Result:
        """PATCH room: open, pause, resume, queue-all, close; rate, capacity, message."""
        try:
            self._organiser(ask)
            check_size(ask)
        except FrontrowError as error:
            return self.problem("room", error, ask, event)
        return self._change_room(event, ask)

    async def _change_room(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        try:
            return json_answer(200, room_body(await patch_room(self.room, event, ask.body)))
        except FrontrowError as error:
            return self.problem("room", error, ask, event)

    def import_codes(self, event: str, ask: EndpointRequest) -> Result:
        """POST codes: the organiser's own fan codes as CSV, good in every process from now on."""
        try:
            self._organiser(ask)
            lines = ask.body.decode().splitlines()
        except UnicodeDecodeError:
            return self.problem("codes", InvalidInput("the file is not UTF-8", param="body"), ask, event)
        except FrontrowError as error:
            return self.problem("codes", error, ask, event)
        return self._import_codes(event, ask, lines)

    async def _import_codes(self, event: str, ask: EndpointRequest, lines: list[str]) -> EndpointResponse:
        try:
            return json_answer(200, {"imported": await self.room.import_codes(event, lines)})
        except FrontrowError as error:
            return self.problem("codes", error, ask, event)

    def _organiser(self, ask: EndpointRequest) -> None:
        """Let the organiser through: constant-time, and nobody at all when no key is set."""
        self.entry.knock_ip(self._ip(ask))
        given = ask.header(b"authorization") or b""
        scheme, _, key = given.partition(b" ")
        if not self._organiser_key:
            raise Forbidden("no organiser key is set; start the room with FRONTROW_ROOM_ORGANISER_KEY")
        if not hmac.compare_digest(key.strip(), self._organiser_key) or scheme.lower() != b"bearer":
            raise Unauthorised("send the organiser key as a bearer token")


async def settle(result: Result) -> EndpointResponse:
    """The answer, whether it came at once or takes a moment."""
    return result if isinstance(result, EndpointResponse) else await result
