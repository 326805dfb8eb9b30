"""What visitors do in the room over HTTP: join, enter, status, claim, leave. What they do with the pass is in `visits`.

Each endpoint has a synchronous part, where most refusals happen, and may go on asynchronously; the fast path writes the
first without a task. The place comes as a bearer token or, from the page, in a cookie. Errors are problem+json.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Protocol, TypeVar
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, Unauthorised
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.results import Joined
from frontrow.waitingroom.model.window import PlaceState
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.endpoints.room.shop_wishes import ShopWish
from frontrow.web.endpoints.room.visits import claimed_body
from frontrow.web.http import messages
from frontrow.web.http.messages import (
    JSON_HEAD,
    EndpointRequest,
    EndpointResponse,
    PendingResponse,
    Result,
    encode_json,
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


class NoticeBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to be told before the turn: an address by mail, a number by SMS. `withdraw` forgets it."""

    kind: Literal["email", "sms"] = "email"
    to: Annotated[str, msgspec.Meta(max_length=300)] = ""
    withdraw: bool = False


_decode_join = msgspec.json.Decoder(JoinBody).decode
_decode_claim = msgspec.json.Decoder(ClaimBody).decode
_decode_notice = msgspec.json.Decoder(NoticeBody).decode
_WIDGET_FIELDS = (
    "altcha",
    "cf-turnstile-response",
    "h-captcha-response",
    "g-recaptcha-response",
)  # what the providers' widgets send
NO_JOIN, NO_CLAIM = JoinBody(), ClaimBody()


def read_join_body(request: EndpointRequest) -> JoinBody:
    return _read_body(request, _decode_join, JoinBody) if request.body else NO_JOIN


def read_claim_body(request: EndpointRequest) -> ClaimBody:
    return _read_body(request, _decode_claim, ClaimBody) if request.body else NO_CLAIM


def read_notice_body(request: EndpointRequest) -> NoticeBody:
    return _read_body(request, _decode_notice, NoticeBody)


def _read_body(request: EndpointRequest, decode: Callable[[bytes], Body], kind: type[Body]) -> Body:
    check_size(request)
    return _read_form(request, kind) if is_form(request) else decode_body(decode, request.body)


def read_form_fields(request: EndpointRequest) -> dict[str, str]:
    """The fields of a browser's form, each with its first value. A form of another site is refused."""
    site = request.header(b"sec-fetch-site")
    if site is not None and site not in (b"same-origin", b"none"):
        raise Forbidden("this form came from another site")
    fields = parse_qs(request.body.decode("utf-8", "replace"), max_num_fields=20)
    return {name: given[0] for name, given in fields.items() if given[0]}


def _read_form(request: EndpointRequest, kind: type[Body]) -> Body:
    """The fields of a browser's form as the body an endpoint expects."""
    values: dict[str, Any] = {**read_form_fields(request)}
    for name in _WIDGET_FIELDS:
        if proof := values.pop(name, None):
            values["proof"] = proof
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.MsgspecError as error:
        raise InvalidInput(f"the form is not what is expected here: {error}", param="body") from None


def idempotency_key(request: EndpointRequest) -> str | None:
    return messages.idempotency_key(request, param="idempotency-key")


TAG_CHARS = 22  # the end of a checked signature identifies its place as well as the whole text does


HandOverClaim = Callable[[str, EndpointRequest, ClaimBody, ShopWish, str, str | None], Awaitable[EndpointResponse]]


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

    def __init__(
        self, context: RoomContext, identity: JoinIdentity | None = None, hand_over: HandOverClaim | None = None
    ) -> None:
        """`hand_over` answers claims of pages that lead to a shop on another domain."""
        self._context = context
        self._hand_over = hand_over
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
            human = entry.verify(event, body.proof, ip, is_form=is_form(request))
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
            human = self._entry.verify(event, body.proof, ip, is_form=is_form(request))
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
        if (
            self._entry.kind_now(event) != "none"
            or room.state.phase is not Phase.OPEN
            or self._pages.shop_is_elsewhere(event)
        ):
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
        wish = self._pages.shop_wish(body.wish) if body.page else None
        try:
            if wish is not None and self._hand_over is not None:
                response = await self._hand_over(event, request, body, wish, place, key)
                self._context.count("claim")
                return response
            claimed = await self._room.visits.claim(place, event, key, body.proof)
        except FrontrowError as error:
            return self._context.problem("claim", error, request, event)
        self._context.count("claim")
        if body.page:
            return self._pages.claimed(event, claimed, is_form=is_form(request), wish=body.wish)
        return json_answer(201, claimed_body(claimed))


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


def _joined_body(joined: Joined) -> bytes:
    return b'{"place":"' + joined.place_jwt.encode() + b'",' + encode_json(joined.status)[1:]
