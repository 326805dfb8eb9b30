"""What visitors do with their pass over HTTP: see how long the visit lasts, renew it, give it back, leave the shop.

nginx checks a pass here, too.

`visitors` has what comes before: join, status, claim. Errors are problem+json.
"""

from collections.abc import Callable
from typing import Any

from frontrow.core.errors import Forbidden, FrontrowError
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS
from frontrow.waitingroom.model.errors import PassForeign, StayTooLong
from frontrow.waitingroom.model.results import ClaimedPass
from frontrow.waitingroom.ports import VisitReply
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http.messages import (
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    Result,
    header_line,
    json_answer,
)
from frontrow.web.http.request_bodies import is_form
from frontrow.web.http.room_credentials import pass_of

_ABOUT_VISIT = ("heartbeat", "visit", "left", "renew")
_NO_VISIT = {"ends_at_s": 0, "ends_in_s": 0, "expires_at_s": 0, "kept_until_s": 0, "idle_s": 0, "wanted": False}


class VisitEndpoints:
    """Endpoints for who has a pass."""

    def __init__(
        self, context: RoomContext, allow_shop: Callable[[EndpointRequest], bytes] = lambda request: b""
    ) -> None:
        """`allow_shop` makes the header lines by which a page of a shop on another domain may read an answer."""
        self._context, self._room, self._pages = context, context.room, context.pages
        self._secure = context.pages.secure
        self._allow_shop = allow_shop

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
            text = _pass_in_form(request) or pass_of(request, secure=self._secure)
        except FrontrowError as error:
            return self._pass_problem(event, request, error, endpoint)
        return self._answer_pass(event, request, text, endpoint)

    async def _answer_pass(self, event: str, request: EndpointRequest, text: str, endpoint: str) -> EndpointResponse:
        try:
            if endpoint == "give_back":
                ended = await self._room.visits.give_back(text, event)
                self._context.count(endpoint)
                return json_answer(200, {"ended": ended}, self._pages.forget_pass() + self._allow_shop(request))
            if endpoint != "renew":
                visits = self._room.visits
                report = {"heartbeat": visits.heartbeat, "visit": visits.look, "left": visits.leave_shop}[endpoint]
                visit = await report(text, event)
                self._context.count(endpoint)
                return json_answer(200, self._visit_body(event, visit))
            if not _pass_in_form(request) and _is_own_page(request):
                return await self._renew_in_browser(event, text)
            renewed = await self._room.visits.renew(text, event)
        except FrontrowError as error:
            return self._pass_problem(event, request, error, endpoint)
        self._context.count(endpoint)
        return json_answer(200, claimed_body(renewed), self._allow_shop(request))

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
        """GET pass: 204 when the request carries a good pass; for nginx's auth_request. Where the room has rules, 204
        for requests that need no pass, too (`X-Original-URI`, `-Method` and `-Host` say what is asked for)."""
        verdict = self._context.verdict(event, request)
        if verdict:
            self._context.count(f"pass_{verdict}")
            return EndpointResponse(204, NO_STORE + header_line("frontrow-person", ""))
        try:
            visit = self._room.visits.check_pass(pass_of(request, secure=self._secure), event)
            if visit.shop:
                raise PassForeign("this pass is for a shop of its own", shop=visit.shop)
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


def _is_own_page(request: EndpointRequest) -> bool:
    """Whether one of our pages asks, for the visit in its cookie. Programs send the pass in a header."""
    if request.header(b"authorization") is not None or request.header(b"frontrow-pass") is not None:
        return False
    return request.header(b"sec-fetch-site") == b"same-origin" or request.header(b"cookie") is not None


def _pass_in_form(request: EndpointRequest) -> str:
    """The pass that the snippet of a static shop sends: a form needs no leave of the browser first."""
    if not is_form(request) or not request.body.startswith(b"pass="):
        return ""
    return request.body[5 : 5 + MAX_PASS_CHARS].decode("latin-1")


def claimed_body(claimed: ClaimedPass) -> dict[str, Any]:
    """What a claim and a renewal answer."""
    return {"pass": claimed.pass_jwt, "expires_at_s": claimed.expires_s, "repeated": claimed.repeated}
