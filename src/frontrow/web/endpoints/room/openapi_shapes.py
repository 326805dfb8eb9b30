"""What each route of the room takes and answers, for the OpenAPI documents: one table for the room as a server of its
own (`room.app`) and for the platform's API (`api.fans.room`).

Endpoints speak bytes, so Litestar cannot read their types. A test holds the table against what a running room really
takes and answers.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from litestar.openapi.spec import (
    Example,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Reference,
    RequestBody,
    Schema,
    SecurityScheme,
)
from litestar.openapi.spec.enums import OpenAPIType

from frontrow.waitingroom.model.results import PlaceStatus
from frontrow.web.endpoints.room.visitors import ClaimBody

PLACE = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Ii4uLiJ9.eyJzdWIiOiI3IiwiZXZ0IjoiYXVyb3JhIn0.c2ln"
WAIT = {"low_s": 45, "high_s": 75, "reason": ""}
STATUS: dict[str, Any] = {
    "event": "aurora",
    "state": "waiting",
    "phase": "open",
    "lane": "general",
    "position": 7,
    "ahead": 6,
    "wait": WAIT,
    "poll_after_s": 18,
    "epoch": 1,
    "message_no": 0,
}
PASS: dict[str, Any] = {"pass": "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "expires_at_s": 1_800_000_900, "repeated": False}
VISIT: dict[str, Any] = {
    "ends_at_s": 1_800_000_480,
    "ends_in_s": 480,
    "expires_at_s": 1_800_000_900,
    "kept_until_s": 0,
    "idle_s": 480,
    "wanted": False,
}
ROOM: dict[str, Any] = {
    "event": "aurora",
    "phase": "open",
    "epoch": 1,
    "lanes": [{"name": "general", "weight": 1, "issued": 120, "hi": 50, "lo": 0}],
    "waiting": 70,
    "active": 20,
    "unclaimed": 4,
    "show_rate": 0.9,
    "admitted_per_1000_s": [5000],
    "slide_no": 12,
    "capacity": 1000,
    "rate_per_s": 100,
    "burst": 100,
    "window_size": 100,
    "min_slide": 1,
    "interval_us": 1_000_000,
    "active_windows": 2,
    "grace_us": 300_000_000,
    "catch_up_us": 1_000_000,
    "pass_ttl_s": 900,
    "max_stay_s": 3_600,
    "idle_s": 0,
    "leave_s": 10,
    "depth_cap": 0,
    "message": "",
    "max_p95_ms": 800,
    "max_error_percent": 5,
    "min_capacity": 10,
    "shop": {"limit": 640, "p95_ms": 720, "reporters": 2},
    "leader": "b7c1",
    "is_leader": True,
}
PROBLEM: dict[str, Any] = {
    "type": "about:blank",
    "title": "Not your turn",
    "status": 409,
    "detail": "your place is not active yet",
    "code": "not_your_turn",
}
SERVING: dict[str, Any] = {
    "e": "aurora",
    "n": 1,
    "s": "open",
    "l": [[0, 50, 120]],
    "r": [5000],
    "y": "",
    "t": 1_800_000_000,
    "p": [5, 300, 4],
    "m": 0,
    "sig": "…",
}
DRAW: dict[str, Any] = {
    "algorithm": "frontrow-draw-1",
    "event": "aurora",
    "commitment": "<sha256 of the secret>",
    "lanes": [{"name": "general", "people": 14_000_000}],
    "beacon": "drand 4242",
}
CONNECTOR: dict[str, Any] = {
    "events": ["aurora"],
    "keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "…", "n": "…", "e": "AQAB"}],
    "after": "",
    "mark": "1.1",
    "complete": True,
    "ended": ["aurora.0.1.7:1800000900"],
    "now_s": 1_800_000_000,
}
KINDS = {
    bool: OpenAPIType.BOOLEAN,
    int: OpenAPIType.INTEGER,
    float: OpenAPIType.NUMBER,
    str: OpenAPIType.STRING,
    list: OpenAPIType.ARRAY,
    dict: OpenAPIType.OBJECT,
}
PROBLEM_TYPE = "application/problem+json"
NULLABLE = frozenset({"position", "ahead", "low_s", "high_s", "shop"})  # nobody knows before the draw


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
    """The signed document, the same for everybody; see docs/waitingroom-internals.md."""

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
    hold keeps it until `kept_until_s` (0: there is none). While nobody waits (`wanted` is false), an idle visit goes
    on. Our own pages, which send the pass as a cookie, get 200 with `ended` true instead of a problem: `idle` says that
    nobody was heard of while others waited, `passed_on` that somebody was admitted since."""

    ends_at_s: int
    ends_in_s: int
    expires_at_s: int
    kept_until_s: int
    idle_s: int
    wanted: bool
    ended: bool = False
    idle: bool = False
    passed_on: bool = False


class LeftView(msgspec.Struct):
    left: bool


class ChallengeView(msgspec.Struct):
    """What the browser needs for its proof; fields by kind of check."""

    kind: str


class DrawView(msgspec.Struct):
    """The published record of the pre-queue's draw."""

    event: str


class RoomMessageView(msgspec.Struct):
    message: str
    message_no: int


JSON_TYPE = "application/json"
HTML_TYPE = "text/html"
EVENTS_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Shape:
    """One route. `answers` maps a status to a Struct, to a media type, or to None (no body); the first is the success.
    `problems` are the error statuses, `bearer` what is sent as the bearer token: place, pass or organiser."""

    answers: dict[int, Any]
    example: Any = None
    problems: tuple[int, ...] = ()
    body: type[msgspec.Struct] | None = None
    body_example: dict[str, Any] | str | None = None
    body_type: str = JSON_TYPE
    bearer: str = ""

    @property
    def status(self) -> int:
        """The status of a success."""
        status: int = next(iter(self.answers))
        return status

    @property
    def answer_type(self) -> str:
        """The media type of a success."""
        answer = self.answers[self.status]
        return answer if isinstance(answer, str) else JSON_TYPE


SHAPES: dict[str, Shape] = {
    "join": Shape(
        {201: JoinedView},
        {"place": PLACE} | STATUS,
        problems=(403, 404, 409, 413, 422, 429, 503),
        body=JoinRequest,
        body_example={"proof": "…", "code": "VF-…", "person": "ann", "cnf": "…"},
    ),
    "status": Shape({200: PlaceStatus}, STATUS, problems=(401, 404, 409, 429), bearer="place"),
    "claim": Shape(
        {201: PassView},
        PASS,
        problems=(401, 403, 404, 409, 410, 413, 422, 425, 429, 503),
        body=ClaimBody,
        body_example={"proof": "…"},
        bearer="place",
    ),
    "now_serving": Shape({200: NowServingView, 304: None}, SERVING, problems=(404,)),
    "check_pass": Shape({204: None}, problems=(401, 403), bearer="pass"),
    "renew": Shape({200: PassView}, PASS, problems=(401, 403, 409, 429, 503), bearer="pass"),
    "give_back": Shape({200: EndedView}, {"ended": True}, problems=(401, 403, 404, 409, 429, 503), bearer="pass"),
    "heartbeat": Shape({200: VisitView}, VISIT, problems=(401, 403, 404, 409, 429, 503), bearer="pass"),
    "visit": Shape({200: VisitView}, VISIT, problems=(401, 403, 404, 409, 429, 503), bearer="pass"),
    "left": Shape({200: VisitView}, VISIT, problems=(401, 403, 404, 409, 429, 503), bearer="pass"),
    "leave": Shape({200: LeftView}, {"left": True}, problems=(401, 404, 409, 429, 503), bearer="place"),
    "challenge": Shape({200: ChallengeView}, {"kind": "none"}, problems=(404, 429)),
    "draw": Shape({200: DrawView}, DRAW, problems=(404,)),
    "message": Shape({200: RoomMessageView}, {"message": "Doors at eight.", "message_no": 1}, problems=(404,)),
    "overflow": Shape({200: HTML_TYPE}, "<!doctype html>…"),
    "page": Shape({200: HTML_TYPE}, "<!doctype html>…", problems=(404, 503)),
    "stream": Shape({200: EVENTS_TYPE}, "event: now-serving\ndata: {…}\n\n", problems=(404, 503)),
    "show_room": Shape({200: JSON_TYPE}, ROOM, problems=(401, 403, 404), bearer="organiser"),
    "change_room": Shape(
        {200: JSON_TYPE},
        ROOM,
        problems=(400, 401, 403, 404, 422, 503),
        body_example={
            "action": "pause",
            "beacon": "",
            "rate_per_s": 50,
            "burst": 50,
            "capacity": 500,
            "message": "Soon.",
            "max_p95_ms": 800,
            "max_error_percent": 5,
            "min_capacity": 10,
        },
        bearer="organiser",
    ),
    "exchange": Shape(
        {200: JSON_TYPE},
        {"pass": PASS["pass"], "expires_at_s": 1_800_000_900, "now_s": 1_800_000_000},
        problems=(401, 403, 404, 409, 413, 422, 429, 503),
        body_example={"token": "<the hand-over>", "verifier": "<43 characters>"},
    ),
    "connector": Shape({200: JSON_TYPE}, CONNECTOR, problems=(404, 429, 503)),
    "shop_health": Shape(
        {200: JSON_TYPE},
        {"taken": True},
        problems=(401, 404, 413, 422, 429, 503),
        body_example={"reporter": "shop-1", "number": 1_800_000_000_000, "p95_ms": 310, "requests": 1200, "errors": 2},
    ),
    "import_codes": Shape(
        {200: JSON_TYPE},
        {"imported": 2},
        problems=(400, 401, 403, 422, 503),
        body_example="code,lane\nHELLO-1,fans\nHELLO-2,fans\n",
        body_type="text/csv",
        bearer="organiser",
    ),
}


def schema_of(example: Any, name: str = "") -> Schema:
    """The JSON schema of this example."""
    kind = KINDS[type(example)]
    nullable: Any = [kind, OpenAPIType.NULL] if name in NULLABLE else kind
    if isinstance(example, dict):
        fields: dict[str, Schema | Reference] = {key: schema_of(value, key) for key, value in example.items()}
        return Schema(type=nullable, properties=fields)
    if isinstance(example, list):
        return Schema(type=nullable, items=schema_of(example[0]) if example else None)
    return Schema(type=nullable)


def _content(kind: str, example: Any) -> dict[str, OpenAPIMediaType]:
    return {kind: OpenAPIMediaType(schema=schema_of(example), examples={"example": Example(value=example)})}


def operation_of(endpoint: str) -> type[Operation]:
    """The class that describes this route, for Litestar's `operation_class`."""
    shape = SHAPES[endpoint]

    @dataclass
    class RoomOperation(Operation):
        def __post_init__(self) -> None:
            refused: dict[str, OpenAPIResponse | Reference] = {
                str(status): OpenAPIResponse("Refused: `code` says why", content=_content(PROBLEM_TYPE, PROBLEM))
                for status in shape.problems
            }
            self.responses = {str(shape.status): _answer(shape), **refused}
            if shape.body_example is not None:
                required = endpoint in ("change_room", "import_codes", "exchange", "shop_health")
                self.request_body = RequestBody(_content(shape.body_type, shape.body_example), required=required)
            if shape.bearer:
                self.security = [{shape.bearer: []}]

    return RoomOperation


def security_schemes() -> dict[str, SecurityScheme | Reference]:
    """What is sent as a bearer token, and where it comes from."""
    words = {
        "place": "the place that join answered",
        "pass": "the pass that claim answered",
        "organiser": "the organiser key",
    }
    return {name: SecurityScheme(type="http", scheme="bearer", description=about) for name, about in words.items()}


def _answer(shape: Shape) -> OpenAPIResponse:
    if shape.example is None:
        return OpenAPIResponse("Good")
    return OpenAPIResponse("Good", content=_content(shape.answer_type, shape.example))
