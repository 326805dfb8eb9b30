"""What people ask of the room over HTTP: join, status, claim, renew, give back, leave; and the shop: is this a pass?

Each endpoint has a synchronous part, where most refusals happen, and may go on asynchronously; the hot lane writes the
first without a task. The place comes as a bearer token or, from the page, in a cookie. Errors are problem+json.
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from frontrow.core.errors import Forbidden, FrontrowError, Unavailable
from frontrow.waitingroom.door.door_limits import Entry
from frontrow.waitingroom.ports import VisitAnswer
from frontrow.waitingroom.service.room import Claimed, Joined, WaitingRoom
from frontrow.web.endpoints.messages import (
    JSON,
    NO_STORE,
    Arriving,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    header_line,
    json_answer,
    problem_answer,
)
from frontrow.web.endpoints.room_bodies import (
    NO_CLAIM,
    NO_JOIN,
    ClaimBody,
    JoinBody,
    check_size,
    decode_claim,
    decode_join,
    decoded,
    idempotency_key,
    is_form,
    pass_of,
)
from frontrow.web.room.page import RoomPages
from frontrow.web.streams.positions import Streams

__all__ = ["ClaimBody", "Endpoint", "JoinBody", "PeopleEndpoints", "Result", "check_size", "decoded"]

log = logging.getLogger("frontrow.web.room")

TAG_CHARS = 22  # the end of a signature that was checked names its place as well as the whole text does
JSON_HEAD = JSON + NO_STORE

Result = EndpointResponse | Arriving | Awaitable[EndpointResponse]
Endpoint = Callable[[str, EndpointRequest], Result]


class PeopleEndpoints:
    """What people may ask of every room of this process."""

    def __init__(
        self, room: WaitingRoom, entry: Entry, pages: RoomPages, streams: dict[str, Streams], *, organiser_key: str = ""
    ) -> None:
        self.room = room
        self.entry = entry
        self.pages = pages
        self.streams = streams
        self.counts: defaultdict[str, int] = defaultdict(int)
        self._organiser_key = organiser_key.encode()
        self._serving: dict[str, tuple[Any, EndpointResponse]] = {}

    # -- people ----------------------------------------------------------------------------------------------------

    def join(self, event: str, ask: EndpointRequest) -> Result:
        """POST join: a place at the end of the line."""
        try:
            body = self._join_body(ask) if ask.body else NO_JOIN
            ip = self._ip(ask)
            entry = self.entry
            entry.knock_ip(ip)
            if body.person:
                entry.knock_person(f"{event}/{body.person}")
            key = idempotency_key(ask)
            human = entry.verify(event, body.proof, ip)
            if human is None and (body is NO_JOIN or not (body.code or body.cnf or body.page)):
                joining = _Joining(self, event, ask, body.person)
                self.room.join_into(event, joining, body.person, key)
                return joining
        except FrontrowError as error:
            return self.problem("join", error, ask, event)
        return self._join(event, ask, body, ip, key, human)

    async def _join(
        self, event: str, ask: EndpointRequest, body: JoinBody, ip: str, key: str | None, human: Awaitable[None] | None
    ) -> EndpointResponse:
        try:
            if human is not None:
                await human
            joined = await self.room.join(event, body.person, ip, body.code, key, body.cnf)
        except FrontrowError as error:
            return self.problem("join", error, ask, event)
        self.count("join")
        if body.page:
            return self.pages.joined(event, joined, is_form=is_form(ask), wish=body.wish)
        return EndpointResponse(201, JSON_HEAD, _joined_body(joined))

    def status(self, event: str, ask: EndpointRequest) -> Result:
        """GET status: what a place is worth at the moment."""
        try:
            self.entry.knock_ip(self._ip(ask))
            place = self.pages.place_of(event, ask)
            told = self.room.status_json(place, event)
            self.entry.knock_person(place[-TAG_CHARS:])
        except FrontrowError as error:
            return self.problem("status", error, ask, event)
        self.counts["status"] += 1
        return EndpointResponse(200, JSON_HEAD, told)

    def claim(self, event: str, ask: EndpointRequest) -> Result:
        """POST claim: an active place for a pass, once."""
        try:
            self.entry.knock_ip(self._ip(ask))
            body = self._claim_body(ask)
            place = self.pages.place_of(event, ask)
            self.room.status(place, event)
            self.entry.knock_person(place[-TAG_CHARS:])
            key = idempotency_key(ask)
        except FrontrowError as error:
            return self.problem("claim", error, ask, event)
        return self._claim(event, ask, body, place, key)

    async def _claim(
        self, event: str, ask: EndpointRequest, body: ClaimBody, place: str, key: str | None
    ) -> EndpointResponse:
        try:
            claimed = await self.room.claim(place, event, key, body.proof)
        except FrontrowError as error:
            return self.problem("claim", error, ask, event)
        self.count("claim")
        if body.page:
            return self.pages.claimed(claimed, is_form=is_form(ask), wish=body.wish)
        return json_answer(201, _claimed_body(claimed))

    def renew(self, event: str, ask: EndpointRequest) -> Result:
        """POST renew: a pass that lives longer, for a live one."""
        return self._with_pass(event, ask, "renew")

    def give_back(self, event: str, ask: EndpointRequest) -> Result:
        """POST give-back: the visit is over; its room goes to the next person at once."""
        return self._with_pass(event, ask, "give_back")

    def heartbeat(self, event: str, ask: EndpointRequest) -> Result:
        """POST heartbeat: the visitor is still there."""
        return self._with_pass(event, ask, "heartbeat")

    def left(self, event: str, ask: EndpointRequest) -> Result:
        """POST left: a page was closed (sent by the page itself, as a beacon)."""
        return self._with_pass(event, ask, "left")

    def _with_pass(self, event: str, ask: EndpointRequest, what: str) -> Result:
        try:
            self.entry.knock_ip(self._ip(ask))
            text = pass_of(ask, secure=self.pages.secure)
        except FrontrowError as error:
            return self.problem(what, error, ask, event)
        return self._finish_pass(event, ask, text, what)

    async def _finish_pass(self, event: str, ask: EndpointRequest, text: str, what: str) -> EndpointResponse:
        try:
            if what == "give_back":
                ended = await self.room.give_back(text, event)
                self.count(what)
                return json_answer(200, {"ended": ended}, self.pages.forget_pass())
            if what in ("heartbeat", "left"):
                go_on = self.room.heartbeat if what == "heartbeat" else self.room.leave_shop
                visit = await go_on(text, event)
                self.count(what)
                return json_answer(200, self._visit_body(event, visit))
            renewed = await self.room.renew(text, event)
        except FrontrowError as error:
            return self.problem(what, error, ask, event)
        self.count(what)
        return json_answer(200, _claimed_body(renewed))

    def leave(self, event: str, ask: EndpointRequest) -> Result:
        """POST leave: out of the line (rooms by identity)."""
        try:
            self.entry.knock_ip(self._ip(ask))
            place = self.pages.place_of(event, ask)
            self.room.status(place, event)
        except FrontrowError as error:
            return self.problem("leave", error, ask, event)
        return self._leave(event, ask, place)

    async def _leave(self, event: str, ask: EndpointRequest, place: str) -> EndpointResponse:
        try:
            return json_answer(200, {"left": await self.room.leave(place)})
        except FrontrowError as error:
            return self.problem("leave", error, ask, event)

    def check_pass(self, event: str, ask: EndpointRequest) -> Result:
        """GET pass: 204 when the request carries a good pass; for nginx's auth_request."""
        try:
            visit = self.room.check_pass(pass_of(ask, secure=self.pages.secure), event)
            self.room.hear(visit.id)
        except FrontrowError as error:
            if error.http_status == 409:  # auth_request knows only 401 and 403
                error = Forbidden(error.message, code=error.code)
            return self.problem("pass", error, ask, event)
        return EndpointResponse(204, NO_STORE + header_line("frontrow-person", visit.person))

    def _visit_body(self, event: str, visit: VisitAnswer) -> dict[str, Any]:
        return {
            "ends_at_s": visit.ends_s,
            "ends_in_s": max(0, visit.ends_s - self.room.clock() // 1_000_000),
            "expires_at_s": visit.expires_s,
            "kept_until_s": visit.kept_until_s,
            "idle_s": self.room.view(event).state.config.idle_s,
        }

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _ip(self, ask: EndpointRequest) -> str:
        entry = self.entry
        if entry.trusts_nobody:
            return entry.ip_of(ask.peer)
        return entry.ip_of(ask.peer, [value.decode("latin-1") for value in ask.all(b"x-forwarded-for")])

    def _join_body(self, ask: EndpointRequest) -> JoinBody:
        if not ask.body:
            return NO_JOIN
        check_size(ask)
        if is_form(ask):
            return self.pages.form(ask, JoinBody)
        return decoded(decode_join, ask.body)

    def _claim_body(self, ask: EndpointRequest) -> ClaimBody:
        if not ask.body:
            return NO_CLAIM
        check_size(ask)
        if is_form(ask):
            return self.pages.form(ask, ClaimBody)
        return decoded(decode_claim, ask.body)

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def problem(self, what: str, error: FrontrowError, ask: EndpointRequest, event: str) -> EndpointResponse:
        self.count(f"{what}:{error.code}")
        page = self.pages.instead_of_problem(event, error, ask) if what in ("join", "claim", "page") else None
        return page or problem_answer(error)


class _Joining(Arriving):
    """The plain join: a slot for the store's answer, which becomes the HTTP answer in the same turn of the loop."""

    __slots__ = ("_ask", "_endpoints", "_event", "_person")

    def __init__(self, endpoints: PeopleEndpoints, event: str, ask: EndpointRequest, person: str) -> None:
        self._answer = None
        self._then = None
        self._endpoints = endpoints
        self._event = event
        self._ask = ask
        self._person = person

    def done(self) -> bool:
        return self._answer is not None

    def set_result(self, result: Any) -> None:
        endpoints = self._endpoints
        try:
            body = endpoints.room.joined_json(self._event, result, self._person)
        except Exception as error:
            self.set_exception(error)
            return
        endpoints.counts["join"] += 1
        self.arrive(EndpointResponse(201, JSON_HEAD, body))

    def set_exception(self, exception: BaseException) -> None:
        if not isinstance(exception, FrontrowError):
            log.error("a join failed", exc_info=exception)
            exception = FrontrowError("this is our fault; it has been logged")
        self.arrive(self._endpoints.problem("join", exception, self._ask, self._event))

    def cancel(self) -> bool:
        self.set_exception(Unavailable("this server is stopping; try again", retry_after_s=1))
        return True


def _joined_body(joined: Joined) -> bytes:
    return b'{"place":"' + joined.place_jwt.encode() + b'",' + encode_json(joined.status)[1:]


def _claimed_body(claimed: Claimed) -> dict[str, Any]:
    return {"pass": claimed.pass_jwt, "expires_at_s": claimed.expires_s, "repeated": claimed.repeated}
