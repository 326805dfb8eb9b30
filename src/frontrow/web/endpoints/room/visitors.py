"""What visitors do in the room over HTTP: join, enter, status, claim, renew, give back, leave. And the check of a pass.

Each endpoint has a synchronous part, where most refusals happen, and may go on asynchronously; the fast path writes the
first without a task. The place comes as a bearer token or, from the page, in a cookie. Errors are problem+json.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, Unauthorised
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.errors import StayTooLong
from frontrow.waitingroom.model.results import ClaimedPass, Joined
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import VisitReply
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http import messages
from frontrow.web.http.messages import (
    JSON_HEAD,
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    PendingResponse,
    Result,
    encode_json,
    header_line,
    json_answer,
)
from frontrow.web.http.request_bodies import check_size, decode_body, is_form
from frontrow.web.http.room_credentials import pass_of, place_of

log = logging.getLogger("frontrow.web.room")
Body = TypeVar("Body")


class JoinBody(msgspec.Struct, forbid_unknown_fields=True):
    """What may be sent with a join; all of it optional."""

    proof: str | None = None
    code: str | None = None
    person: str = ""
    cnf: str | None = None
    page: bool = False  # sent by our page: the place goes into a cookie
    wish: str = ""  # the page of the shop to go to afterwards


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    proof: str | None = None
    page: bool = False
    wish: str = ""


_decode_join = msgspec.json.Decoder(JoinBody).decode
_decode_claim = msgspec.json.Decoder(ClaimBody).decode
_WIDGET_FIELDS = ("altcha", "cf-turnstile-response", "h-captcha-response")  # what the providers' widgets send
NO_JOIN, NO_CLAIM = JoinBody(), ClaimBody()
_ABOUT_VISIT = ("heartbeat", "visit", "left", "renew")
_NO_VISIT = {"ends_at_s": 0, "ends_in_s": 0, "expires_at_s": 0, "kept_until_s": 0, "idle_s": 0, "wanted": False}


def read_join_body(request: EndpointRequest) -> JoinBody:
    return _read_body(request, _decode_join, JoinBody) if request.body else NO_JOIN


def read_claim_body(request: EndpointRequest) -> ClaimBody:
    return _read_body(request, _decode_claim, ClaimBody) if request.body else NO_CLAIM


def _read_body(request: EndpointRequest, decode: Callable[[bytes], Body], kind: type[Body]) -> Body:
    check_size(request)
    return _read_form(request, kind) if is_form(request) else decode_body(decode, request.body)


def _read_form(request: EndpointRequest, kind: type[Body]) -> Body:
    """The fields of a browser's form as the body an endpoint expects. A form of another site is refused."""
    site = request.header(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        raise Forbidden("this form came from another site")
    fields = parse_qs(request.body.decode("utf-8", "replace"), max_num_fields=20)
    values: dict[str, Any] = {name: given[0] for name, given in fields.items() if given[0]}
    for name in _WIDGET_FIELDS:
        if values.pop(name, None):
            values["proof"] = fields[name][0]
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the form is not what is expected here: {error}", param="body") from None


def idempotency_key(request: EndpointRequest) -> str | None:
    return messages.idempotency_key(request, param="idempotency-key")


TAG_CHARS = 22  # the end of a checked signature identifies its place as well as the whole text does


class JoinIdentity(Protocol):
    """Decides who joins where people sign in (`join_identity`)."""

    def check_body(self, body: JoinBody) -> None:
        """Refuse a body that names a person."""

    def has_session(self, request: EndpointRequest) -> bool:
        """Whether the request carries a session, so that `find_person` must be awaited."""

    async def find_person(self, request: EndpointRequest) -> str:
        """The person of the session, or nothing."""

    async def may_have_place(self, event: str, person: str) -> bool:
        """Whether this person counts as one in this room."""


class VisitorEndpoints:
    """Endpoints for people in every room of this process. Without an `identity` the body of a join names its person."""

    def __init__(self, context: RoomContext, identity: JoinIdentity | None = None) -> None:
        self._context = context
        self._identity = identity
        self._room = context.room
        self._entry = context.entry
        self._pages = context.pages
        self._secure = context.pages.secure
        self._counts = context.counts
        self._join_responses = JoinResponses(context)

    # -- places --------------------------------------------------------------------------------------------------------

    def join(self, event: str, request: EndpointRequest) -> Result:
        """POST join: a place at the end of the queue."""
        identity = self._identity
        if identity is not None and identity.has_session(request):
            return self._join_as_fan(event, request, identity)
        try:
            body = self._read_join(request) if request.body else NO_JOIN
            ip = self._context.client_ip(request)
            entry = self._entry
            entry.count_ip(ip)
            if body.person:
                entry.count_person(f"{event}/{body.person}")
            key = idempotency_key(request)
            human = entry.verify(event, body.proof, ip)
            if human is None and (body is NO_JOIN or not (body.code or body.cnf or body.page)):
                pending = PendingResponse(self._join_responses, event, request, body.person)
                self._room.joins.join_into(event, pending, body.person, key)
                return pending
        except FrontrowError as error:
            return self._context.problem("join", error, request, event)
        return self._join(event, request, body, ip, key, human)

    async def _join_as_fan(self, event: str, request: EndpointRequest, identity: JoinIdentity) -> EndpointResponse:
        """A join with a session is for the session's fan."""
        try:
            body = self._read_join(request)
            ip = self._context.client_ip(request)
            self._entry.count_ip(ip)
            person = await self._find_fan(event, request, identity)
            human = self._entry.verify(event, body.proof, ip)
            key = idempotency_key(request)
        except FrontrowError as error:
            return self._context.problem("join", error, request, event)
        return await self._join(event, request, replace(body, person=person), ip, key, human)

    async def _find_fan(self, event: str, request: EndpointRequest, identity: JoinIdentity) -> str:
        """The fan of the session, if they count as a person in this room; else nothing."""
        person = await identity.find_person(request)
        if not person:
            return ""
        self._entry.count_person(f"{event}/{person}")
        return person if await identity.may_have_place(event, person) else ""

    async def _join(
        self,
        event: str,
        request: EndpointRequest,
        body: JoinBody,
        ip: str,
        key: str | None,
        human: Awaitable[None] | None,
    ) -> EndpointResponse:
        try:
            if human is not None:
                await human
            joined = await self._room.joins.join(event, body.person, ip, body.code, key, body.cnf)
        except FrontrowError as error:
            return self._context.problem("join", error, request, event)
        self._context.count("join")
        if body.page:
            return self._pages.joined(event, joined, is_form=is_form(request), wish=body.wish)
        return EndpointResponse(201, JSON_HEAD, _joined_body(joined))

    async def enter(self, event: str, request: EndpointRequest, cnf: str | None) -> EndpointResponse:
        """A form of the shop's own pages: into the shop if nobody has to wait, else to the room's page with a place.
        Who has a place already, or must do something before joining, is led to the page as well."""
        try:
            ip = self._context.client_ip(request)
            self._entry.count_ip(ip)
            if self._keeps_useful_place(event, request) or not self._joins_by_itself(event):
                return self._pages.to_room(event)
            person, identity = "", self._identity
            if identity is not None and identity.has_session(request):
                person = await self._find_fan(event, request, identity)
            if self._room.control.view(event).state.config.one_place_per_person and not person:
                return self._pages.to_room(event)
            entered = await self._room.direct_entry.enter(event, person, ip, cnf)
        except FrontrowError as error:
            return self._context.problem("join", error, request, event)
        self._context.count("join")
        if entered.claimed is None:
            return self._pages.joined(event, entered.joined, is_form=True)
        self._context.count("claim")
        return self._pages.entered(event, entered.claimed, request)

    def _joins_by_itself(self, event: str) -> bool:
        """Whether a visitor can join without doing anything: no code to type, no check to pass, the room is open. A
        code that only makes the wait shorter is not asked for where there is no wait. A form of our own page cannot
        lead to another site's shop; the room's page can."""
        room, config = self._room.cache.find(event), self._room.control.view(event).state.config
        if self._entry.kind_of(event) != "none" or room.state.phase is not Phase.OPEN or self._pages.shop_is_elsewhere:
            return False
        if config.codes_until_us:
            return self._room.sale_clock() >= config.codes_until_us
        return len(config.lanes) == 1 or room.has_no_line(joining=1)

    def _keeps_useful_place(self, event: str, request: EndpointRequest) -> bool:
        """Whether this browser has a place that it can still wait with or claim."""
        try:
            text = place_of(event, request, secure=self._secure)
            if self._room.statuses.of(text, event).state is PlaceState.EXPIRED:
                return False
        except (Unauthorised, Forbidden):
            return False
        try:
            visit = self._room.passes.read(pass_of(request, secure=self._secure), event)
        except (Unauthorised, Forbidden):
            return True
        return visit.place != self._room.statuses.key_of(text, event)

    def _read_join(self, request: EndpointRequest) -> JoinBody:
        body = read_join_body(request)
        if self._identity is not None:
            self._identity.check_body(body)
        return body

    def status(self, event: str, request: EndpointRequest) -> Result:
        """GET status: the state of a place."""
        try:
            self._entry.count_ip(self._context.client_ip(request))
            place = place_of(event, request, secure=self._secure)
            body = self._room.statuses.json_of(place, event)
            self._entry.count_person(place[-TAG_CHARS:])
        except FrontrowError as error:
            return self._context.problem("status", error, request, event)
        self._counts["status"] += 1
        return EndpointResponse(200, JSON_HEAD, body)

    def leave(self, event: str, request: EndpointRequest) -> Result:
        """POST leave: leave the queue (rooms with one place per person)."""
        try:
            self._entry.count_ip(self._context.client_ip(request))
            place = place_of(event, request, secure=self._secure)
            self._room.statuses.of(place, event)
        except FrontrowError as error:
            return self._context.problem("leave", error, request, event)
        return self._leave(event, request, place)

    async def _leave(self, event: str, request: EndpointRequest, place: str) -> EndpointResponse:
        try:
            return json_answer(200, {"left": await self._room.roster.leave(place)})
        except FrontrowError as error:
            return self._context.problem("leave", error, request, event)

    # -- passes --------------------------------------------------------------------------------------------------------

    def claim(self, event: str, request: EndpointRequest) -> Result:
        """POST claim: an active place for a pass, once."""
        try:
            self._entry.count_ip(self._context.client_ip(request))
            body = read_claim_body(request)
            place = place_of(event, request, secure=self._secure)
            self._room.statuses.of(place, event)
            self._entry.count_person(place[-TAG_CHARS:])
            key = idempotency_key(request)
        except FrontrowError as error:
            return self._context.problem("claim", error, request, event)
        return self._claim(event, request, body, place, key)

    async def _claim(
        self, event: str, request: EndpointRequest, body: ClaimBody, place: str, key: str | None
    ) -> EndpointResponse:
        try:
            claimed = await self._room.visits.claim(place, event, key, body.proof)
        except FrontrowError as error:
            return self._context.problem("claim", error, request, event)
        self._context.count("claim")
        if body.page:
            return self._pages.claimed(claimed, is_form=is_form(request), wish=body.wish)
        return json_answer(201, _claimed_body(claimed))

    def renew(self, event: str, request: EndpointRequest) -> Result:
        """POST renew: a pass that lives longer, for a live one."""
        return self._with_pass(event, request, "renew")

    def give_back(self, event: str, request: EndpointRequest) -> Result:
        """POST give-back: the visit is over; its capacity goes to the next person at once."""
        return self._with_pass(event, request, "give_back")

    def heartbeat(self, event: str, request: EndpointRequest) -> Result:
        """POST heartbeat: the visitor is still there."""
        return self._with_pass(event, request, "heartbeat")

    def visit(self, event: str, request: EndpointRequest) -> Result:
        """GET visit: when the visit ends; asking is no activity."""
        return self._with_pass(event, request, "visit")

    def left(self, event: str, request: EndpointRequest) -> Result:
        """POST left: a page was closed (sent by the page itself, as a beacon)."""
        return self._with_pass(event, request, "left")

    def _with_pass(self, event: str, request: EndpointRequest, endpoint: str) -> Result:
        try:
            self._context.limits.count(request)
            text = pass_of(request, secure=self._secure)
        except FrontrowError as error:
            return self._pass_problem(event, request, error, endpoint)
        return self._answer_pass(event, request, text, endpoint)

    async def _answer_pass(self, event: str, request: EndpointRequest, text: str, endpoint: str) -> EndpointResponse:
        try:
            if endpoint == "give_back":
                ended = await self._room.visits.give_back(text, event)
                self._context.count(endpoint)
                return json_answer(200, {"ended": ended}, self._pages.forget_pass())
            if endpoint != "renew":
                visits = self._room.visits
                report = {"heartbeat": visits.heartbeat, "visit": visits.look, "left": visits.leave_shop}[endpoint]
                visit = await report(text, event)
                self._context.count(endpoint)
                return json_answer(200, self._visit_body(event, visit))
            if _is_own_page(request):
                return await self._renew_in_browser(event, text)
            renewed = await self._room.visits.renew(text, event)
        except FrontrowError as error:
            return self._pass_problem(event, request, error, endpoint)
        self._context.count(endpoint)
        return json_answer(200, _claimed_body(renewed))

    async def _renew_in_browser(self, event: str, text: str) -> EndpointResponse:
        """A longer pass as a cookie, and when the visit ends now. A visit that may not become longer stays as it is."""
        head = b""
        try:
            renewed = await self._room.visits.renew(text, event)
        except StayTooLong:
            pass
        else:
            text, head = renewed.pass_jwt, self._pages.keep_pass(renewed)
        visit = await self._room.visits.heartbeat(text, event)
        self._context.count("renew")
        return json_answer(200, self._visit_body(event, visit), head)

    def _pass_problem(
        self, event: str, request: EndpointRequest, error: FrontrowError, endpoint: str
    ) -> EndpointResponse:
        """A refusal. That a visit has ended is no failure for our own page, whose browser would log it as one."""
        if endpoint not in _ABOUT_VISIT or error.http_status not in (401, 403, 409) or not _is_own_page(request):
            return self._context.problem(endpoint, error, request, event)
        self._context.count(f"{endpoint}:{error.code}")
        told = {name: bool(error.about.get(name)) for name in ("idle", "passed_on")}
        return json_answer(200, _NO_VISIT | {"ended": True} | told)

    def check_pass(self, event: str, request: EndpointRequest) -> Result:
        """GET pass: 204 when the request carries a good pass; for nginx's auth_request."""
        try:
            visit = self._room.visits.check_pass(pass_of(request, secure=self._secure), event)
            self._room.visits.hear(visit.id)
        except FrontrowError as error:
            if error.http_status == 409:  # auth_request knows only 401 and 403
                error = Forbidden(error.message, code=error.code)
            return self._context.problem("pass", error, request, event)
        return EndpointResponse(204, NO_STORE + header_line("frontrow-person", visit.person))

    def _visit_body(self, event: str, visit: VisitReply) -> dict[str, Any]:
        state = self._room.control.view(event).state
        return {
            "ends_at_s": visit.ends_s,
            "ends_in_s": max(0, visit.ends_s - self._room.clock() // 1_000_000),
            "expires_at_s": visit.expires_s,
            "kept_until_s": visit.kept_until_s,
            "idle_s": state.config.idle_s,
            "wanted": state.is_wanted,
        }


class JoinResponses:
    """Makes the responses to plain joins."""

    def __init__(self, context: RoomContext) -> None:
        self._context, self._room, self._counts = context, context.room, context.counts

    def make_response(self, event: str, result: Any, person: str) -> EndpointResponse:
        body = self._room.joins.joined_json(event, result, person)
        self._counts["join"] += 1
        return EndpointResponse(201, JSON_HEAD, body)

    def make_problem(self, error: BaseException, event: str, request: EndpointRequest) -> EndpointResponse:
        if not isinstance(error, FrontrowError):
            log.error("a join failed", exc_info=error)
            error = FrontrowError("this is our fault; it has been logged")
        return self._context.problem("join", error, request, event)


def _is_own_page(request: EndpointRequest) -> bool:
    """Whether one of our pages asks, for the visit in its cookie. Programs send the pass in a header."""
    if request.header(b"authorization") is not None or request.header(b"frontrow-pass") is not None:
        return False
    return request.header(b"sec-fetch-site") == b"same-origin" or request.header(b"cookie") is not None


def _joined_body(joined: Joined) -> bytes:
    return b'{"place":"' + joined.place_jwt.encode() + b'",' + encode_json(joined.status)[1:]


def _claimed_body(claimed: ClaimedPass) -> dict[str, Any]:
    return {"pass": claimed.pass_jwt, "expires_at_s": claimed.expires_s, "repeated": claimed.repeated}
