"""The waiting room's routes (W5, W7, W9): the same endpoints as the hot lane's, declared for the framework's door."""

from typing import Annotated, Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ASGIApp

from frontrow.waitingroom.model.results import PlaceStatus
from frontrow.web.api import FromPlatform
from frontrow.web.api.access import Access
from frontrow.web.api.routes import own_checks
from frontrow.web.endpoints.room import settle
from frontrow.web.endpoints.room_visitors import ClaimBody
from frontrow.web.room.app import ROUTES as TABLE
from frontrow.web.room.app import AnswerApp, Route, StreamApp, ask_of

PREFIX = "/v1/events/{event_id:str}/room"
EVENTS = "text/event-stream"


class JoinRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What may be sent with a join; all of it optional."""

    proof: str | None = None
    code: str | None = None
    cnf: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{43}$")] | None = None
    page: bool = False
    wish: str = ""


class JoinedView(PlaceStatus, frozen=True, kw_only=True):
    """A place: keep `place` and show it as a bearer token (a page gets it as a cookie)."""

    place: str = ""


class PassView(msgspec.Struct):
    """A pass: send it as a bearer token or as `Frontrow-Pass` with every shop call."""

    pass_: Annotated[str, msgspec.Meta(examples=["eyJhbGciOiJSUzI1NiIs…"])] = msgspec.field(name="pass")
    expires_at_s: int
    repeated: bool = False


class NowServingView(msgspec.Struct):
    """The signed document, the same for everybody; see docs/waitingroom.md."""

    e: str
    n: int
    s: str
    l: list[list[int]]  # noqa: E741 - the document's own short names
    r: list[int]
    y: str
    t: int
    p: list[int]
    m: int
    sig: str


class EndedView(msgspec.Struct):
    ended: bool


class VisitView(msgspec.Struct):
    """When a visit ends: at `ends_at_s` unless the visitor is heard before, and with the pass at `expires_at_s`. A live
    hold keeps it until `kept_until_s` (0: there is none)."""

    ends_at_s: int
    ends_in_s: int
    expires_at_s: int
    kept_until_s: int
    idle_s: int


class LeftView(msgspec.Struct):
    left: bool


class ChallengeView(msgspec.Struct):
    """What the browser needs for its proof; fields by kind of check."""

    kind: str


class DrawView(msgspec.Struct):
    """The published record of the pre-queue's draw."""

    event: str


class MessageView(msgspec.Struct):
    message: str
    message_no: int


# endpoint -> (body, answers, statuses of its problems); what organisers do is elsewhere
ABOUT: dict[str, tuple[Any, dict[int, Any], tuple[int, ...]]] = {
    "join": (JoinRequest, {201: JoinedView}, (403, 404, 409, 413, 422, 429, 503)),
    "status": (None, {200: PlaceStatus}, (401, 404, 409, 429)),
    "claim": (ClaimBody, {201: PassView}, (401, 403, 404, 409, 410, 413, 422, 425, 429, 503)),
    "now_serving": (None, {200: NowServingView, 304: None}, (404,)),
    "check_pass": (None, {204: None}, (401, 403)),
    "renew": (None, {200: PassView}, (401, 403, 409, 429, 503)),
    "give_back": (None, {200: EndedView}, (401, 403, 404, 409, 429, 503)),
    "heartbeat": (None, {200: VisitView}, (401, 403, 404, 409, 429, 503)),
    "left": (None, {200: VisitView}, (401, 403, 404, 409, 429, 503)),
    "leave": (None, {200: LeftView}, (401, 404, 409, 429, 503)),
    "challenge": (None, {200: ChallengeView}, (404, 429)),
    "draw": (None, {200: DrawView}, (404,)),
    "message": (None, {200: MessageView}, (404,)),
    "overflow": (None, {200: "text/html"}, ()),
    "page": (None, {200: "text/html"}, (404, 503)),
}


def _handler(route: Route) -> HTTPRouteHandler:
    body, answers, problems = ABOUT[route.endpoint]

    async def handle(request: Request[Any, Any, Any], event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
        endpoint = getattr(platform.room.endpoints, route.endpoint)
        return AnswerApp(await settle(endpoint(event_id, await ask_of(request))))

    verb = {"GET": get, "POST": post}[route.method]
    access = own_checks(Access.PUBLIC, body=body, answers=answers, problems=problems, body_optional=True)
    made: HTTPRouteHandler = verb(
        PREFIX + route.path, operation_id=f"room_{route.endpoint}", summary=route.summary, opt=access
    )(handle)
    return made


@get(
    PREFIX + "/stream",
    operation_id="room_stream",
    summary="Now-serving, live (server-sent events)",
    opt=own_checks(Access.PUBLIC, answers={200: EVENTS}, problems=(404, 503)),
)
async def stream(event_id: FromPath[str], platform: FromPlatform) -> ASGIApp:
    refusal = platform.room.endpoints.stream_refusal(event_id)
    return AnswerApp(refusal) if refusal else StreamApp(platform.room.endpoints.streams[event_id].events)


ROUTES: list[HTTPRouteHandler] = [*(_handler(route) for route in TABLE if route.endpoint in ABOUT), stream]
