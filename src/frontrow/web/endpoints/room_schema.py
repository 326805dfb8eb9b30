"""The shapes of the room's bodies and answers for the OpenAPI document, each with an example.

Endpoints speak bytes (`wire`), so Litestar cannot read their types; they are told here, route by route, and a test
holds them against what a running room really takes and answers.
"""

from dataclasses import dataclass
from typing import Any

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

PLACE = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Ii4uLiJ9.eyJzdWIiOiI3IiwiZXZ0IjoiYXVyb3JhIn0.c2ln"
WAIT = {"low_s": 45, "high_s": 75, "reason": ""}
STATUS: dict[str, Any] = {
    "event": "aurora", "state": "waiting", "phase": "open", "lane": "general", "position": 7, "ahead": 6, "wait": WAIT,
    "poll_after_s": 18, "epoch": 1, "message_no": 0,
}  # fmt: skip
PASS: dict[str, Any] = {"pass": "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", "expires_at_s": 1_800_000_900, "repeated": False}
VISIT: dict[str, Any] = {
    "ends_at_s": 1_800_000_120, "ends_in_s": 120, "expires_at_s": 1_800_000_900, "kept_until_s": 0, "idle_s": 120,
}  # fmt: skip
ROOM: dict[str, Any] = {
    "event": "aurora", "phase": "open", "epoch": 1,
    "lanes": [{"name": "general", "weight": 1, "issued": 120, "hi": 50, "lo": 0}],
    "waiting": 70, "active": 20, "unclaimed": 4, "show_rate": 0.9, "admitted_per_1000_s": [5000], "slide_no": 12,
    "capacity": 1000, "rate_per_s": 100, "burst": 100, "window_size": 100, "interval_us": 1_000_000, "depth_cap": 0,
    "message": "", "leader": "b7c1", "is_leader": True,
}  # fmt: skip
PROBLEM: dict[str, Any] = {
    "type": "about:blank", "title": "Not your turn", "status": 409, "detail": "your place is not active yet",
    "code": "not_your_turn",
}  # fmt: skip
SERVING: dict[str, Any] = {
    "e": "aurora", "n": 1, "s": "open", "l": [[0, 50, 120]], "r": [5000], "y": "", "t": 1_800_000_000, "p": [5, 300, 4],
    "m": 0, "sig": "…",
}  # fmt: skip
DRAW: dict[str, Any] = {
    "algorithm": "frontrow-draw-1", "event": "aurora", "commitment": "<sha256 of the secret>",
    "lanes": [{"name": "general", "people": 14_000_000}], "beacon": "drand 4242",
}  # fmt: skip
KINDS = {
    bool: OpenAPIType.BOOLEAN, int: OpenAPIType.INTEGER, float: OpenAPIType.NUMBER, str: OpenAPIType.STRING,
    list: OpenAPIType.ARRAY, dict: OpenAPIType.OBJECT,
}  # fmt: skip
PROBLEM_TYPE = "application/problem+json"
NULLABLE = frozenset({"position", "ahead", "low_s", "high_s"})  # nobody knows before the draw


@dataclass(frozen=True, slots=True)
class Shape:
    """What a route takes (JSON unless `body_type` says otherwise) and answers when all is well."""

    status: int
    answer: Any = None
    body: dict[str, Any] | str | None = None
    body_type: str = "application/json"
    answer_type: str = "application/json"
    errors: tuple[int, ...] = ()
    bearer: str = ""  # place, pass or organiser: what is sent as the bearer token


SHAPES: dict[str, Shape] = {
    "join": Shape(
        201, {"place": PLACE} | STATUS, {"proof": "…", "code": "VF-…", "person": "ann", "cnf": "…"},
        errors=(400, 403, 409, 422, 429, 503),
    ),
    "status": Shape(200, STATUS, errors=(401, 403, 429), bearer="place"),
    "claim": Shape(201, PASS, {"proof": "…"}, errors=(401, 403, 409, 429, 503), bearer="place"),
    "now_serving": Shape(200, SERVING, errors=(404,)),
    "check_pass": Shape(204, errors=(401, 403), bearer="pass"),
    "renew": Shape(200, PASS, errors=(401, 403, 409, 503), bearer="pass"),
    "give_back": Shape(200, {"ended": True}, errors=(401, 403, 503), bearer="pass"),
    "heartbeat": Shape(200, VISIT, errors=(401, 403, 409, 503), bearer="pass"),
    "left": Shape(200, VISIT, errors=(401, 403, 409, 503), bearer="pass"),
    "leave": Shape(200, {"left": True}, errors=(401, 403, 404), bearer="place"),
    "challenge": Shape(200, {"check": "none"}, errors=(429,)),
    "draw": Shape(200, DRAW, errors=(404,)),
    "message": Shape(200, {"message": "Doors at eight.", "message_no": 1}, errors=(404,)),
    "overflow": Shape(200, "<!doctype html>…", answer_type="text/html"),
    "show_room": Shape(200, ROOM, errors=(401, 403, 404), bearer="organiser"),
    "change_room": Shape(
        200, ROOM,
        {"action": "pause", "beacon": "", "rate_per_s": 50, "burst": 50, "capacity": 500, "message": "Soon."},
        errors=(400, 401, 403, 404, 422, 503), bearer="organiser",
    ),
    "import_codes": Shape(
        200, {"imported": 2}, "code,lane\nHELLO-1,fans\nHELLO-2,fans\n", "text/csv", errors=(400, 401, 403, 422, 503),
        bearer="organiser",
    ),
    "page": Shape(200, "<!doctype html>…", answer_type="text/html", errors=(503,)),
    "stream": Shape(200, "event: now-serving\ndata: {…}\n\n", answer_type="text/event-stream", errors=(404, 503)),
}  # fmt: skip


def schema_of(example: Any, name: str = "") -> Schema:
    """The schema that this example is an instance of."""
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
    """The kind of operation that describes this route, for Litestar's `operation_class`."""
    shape = SHAPES[endpoint]

    @dataclass
    class RoomOperation(Operation):
        def __post_init__(self) -> None:
            refused: dict[str, OpenAPIResponse | Reference] = {
                str(status): OpenAPIResponse("Refused: `code` says why", content=_content(PROBLEM_TYPE, PROBLEM))
                for status in shape.errors
            }
            self.responses = {str(shape.status): _answer(shape), **refused}
            if shape.body is not None:
                required = endpoint in ("change_room", "import_codes")
                self.request_body = RequestBody(_content(shape.body_type, shape.body), required=required)
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
    if shape.answer is None:
        return OpenAPIResponse("Good")
    return OpenAPIResponse("Good", content=_content(shape.answer_type, shape.answer))
