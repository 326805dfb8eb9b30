"""The API's document (OpenAPI 3.1): the framework's schema, completed by what the routes declare.

Routes declare `opt["body"]` and `opt["answers"]` (endpoints of the fast path), `opt["problems"]` and who may call
them. The headers that every POST takes and each operation's group are added. Served as /openapi.json;
`site.api_viewer` shows it at /docs.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.handlers import HTTPRouteHandler

from frontrow.web.api.operation_groups import GROUPS, group_of
from frontrow.web.http.access import Access
from frontrow.web.http.problems import Problem
from frontrow.web.platform.access_check import check_shown

REF: Final = "#/components/schemas/{name}"
COMMON: Final = (400, 405, 422, 429, 500, 503)
DESCRIPTION: Final = """\
Sell tickets: join the waiting room, exchange the place for a pass, hold seats, pay, fetch the tickets.

Errors are `application/problem+json` with a stable `code`. Every POST takes an `Idempotency-Key`. To try an operation,
enter the proof it asks for under *Authorize*: programs of organisers use an API key as `session`."""
SCHEMES: Final = {
    "pass": {
        "type": "http",
        "scheme": "bearer",
        "description": "The pass of the event's waiting room, from `room_claim`.",
    },
    "place": {"type": "http", "scheme": "bearer", "description": "The place that `room_join` returned."},
    "booking": {
        "type": "apiKey",
        "in": "header",
        "name": "Frontrow-Booking",
        "description": "The booking token (`frb_…`) that `place_hold` returned.",
    },
    "shop_pass": {
        "type": "apiKey",
        "in": "header",
        "name": "Frontrow-Pass",
        "description": "The pass, beside another proof in `Authorization`.",
    },
    "session": {
        "type": "http",
        "scheme": "bearer",
        "description": "A session (`frs_…`) or an API key (`frk_…`) that an owner made with `make_api_key`.",
    },
}
IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "the same key and body get the same response, another body gets 409",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[ -~]+$"},
}
TITLES: Final = {
    400: "Not what the API takes",
    401: "Who are you?",
    402: "The card was declined",
    403: "You may not",
    404: "Not found",
    405: "Not by this method",
    409: "Refused; the code says why",
    410: "It is over",
    413: "Too large",
    415: "Another media type is needed",
    422: "A value cannot be right",
    425: "Not yet",
    429: "Too many requests",
    500: "Our fault",
    502: "The payment provider failed",
    503: "Not now; see Retry-After",
}


def complete(app: Litestar, handlers: Iterable[HTTPRouteHandler]) -> dict[str, Any]:
    """The document of the app."""
    schema: dict[str, Any] = app.openapi_schema.to_schema()
    by_id = {handler.operation_id: handler for handler in handlers}
    kinds: set[Any] = {Problem}
    for handler in by_id.values():
        kinds |= {kind for kind in handler.opt.get("answers", {}).values() if isinstance(kind, type)}
        if handler.opt.get("body") is not None:
            kinds.add(handler.opt["body"])
        taken = handler.parsed_data_field  # the framework's schema does not say that unknown fields are refused
        if taken is not None and isinstance(taken.annotation, type) and issubclass(taken.annotation, msgspec.Struct):
            kinds.add(taken.annotation)
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=REF)
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(components)
    schema["components"]["securitySchemes"] = SCHEMES
    schema["tags"] = [{"name": group.name, "description": group.description} for group in GROUPS]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            operation["tags"] = [group_of(path).name]
            if operation.get("operationId") in by_id:
                _complete(operation, method, by_id[operation["operationId"]])
    return schema


def _complete(operation: dict[str, Any], method: str, handler: HTTPRouteHandler) -> None:
    opt = handler.opt
    responses = operation.setdefault("responses", {})
    if opt.get("own_checks"):
        responses.clear()
    for status, kind in opt.get("answers", {}).items():
        responses[str(status)] = _answer(kind)
    access: Access = opt["access"]
    statuses = {*opt.get("problems", ()), *(() if opt.get("own_checks") else COMMON)}
    if not opt.get("own_checks"):
        statuses |= {401, 403, 404} if access.kind != "public" else set()
        statuses |= {404} if "{" in next(iter(handler.paths)) else set()
        statuses |= {409, 413} if method == "post" else set()
        statuses |= {403, 415} if method in ("post", "put", "patch") else {403} if method == "delete" else set()
        statuses |= {401} if "/auth/" in next(iter(handler.paths)) else set()
    for status in sorted(statuses | {429, 503}):
        responses[str(status)] = _problem(status)
    if opt.get("body") is not None:
        operation["requestBody"] = _body(opt["body"], required=not opt.get("body_optional"))
    elif opt.get("raw_body"):
        operation["requestBody"] = {"required": True, "content": {opt["raw_body"]: {"schema": {"type": "object"}}}}
    own = opt.get("idempotency") == "own" and opt.get("body") is None
    if method == "post" and not own:
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":  # an empty segment makes another path
            parameter["schema"] = {**parameter["schema"], "minLength": 1}
    if "204" in responses:
        responses["204"].pop("content", None)
    security = _security(handler, access)
    if security:
        operation["security"] = security


BY_PASS = frozenset({"room_renew", "room_give_back", "room_check_pass", "room_heartbeat", "room_visit", "room_left"})


def _security(handler: HTTPRouteHandler, access: Access) -> list[dict[str, list[str]]]:
    if handler.operation_id in ("room_status", "room_claim", "room_leave"):
        return [{"place": []}]
    if handler.operation_id in BY_PASS:
        return [{"pass": []}, {"shop_pass": []}]
    if handler.opt.get("shop"):
        return [{"booking": [], "shop_pass": []}, {"pass": []}]
    if access.kind == "owner" and handler.opt.get("by_person"):
        return [{"pass": []}, {"shop_pass": []}, {"session": []}]
    if access.kind == "owner":
        return [{"booking": []}, {"pass": []}, {"shop_pass": []}, {"session": []}]
    if access.kind in ("fan", "session", "staff"):
        return [{"session": []}]
    return [{"pass": []}, {"shop_pass": []}] if access.kind == "pass" else []


def _answer(kind: Any) -> dict[str, Any]:
    if kind is None:
        return {"description": "Done", "headers": {}}
    if isinstance(kind, str):
        text: dict[str, Any] = {"type": "string"} if kind.startswith("text/") else {}
        if kind == "text/event-stream":  # the shape of one event
            text = {"type": "object", "properties": {name: {"type": "string"} for name in ("event", "id", "data")}}
        return {"description": "Done", "content": {kind: {"schema": text}}}
    reference = {"$ref": REF.format(name=kind.__name__)}
    return {"description": (kind.__doc__ or "Done").strip().splitlines()[0], "content": _json(reference)}


def _problem(status: int) -> dict[str, Any]:
    reference = {"$ref": REF.format(name=Problem.__name__)}
    found: dict[str, Any] = {
        "description": TITLES.get(status, "Refused"),
        "content": {"application/problem+json": {"schema": reference}},
    }
    if status in (429, 503):
        found["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "seconds"}}
    return found


def _body(kind: Any, *, required: bool) -> dict[str, Any]:
    return {"required": required, "content": _json({"$ref": REF.format(name=kind.__name__)})}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


@get(
    "/openapi.json",
    operation_id="openapi",
    summary="This document",
    opt={"access": Access.PUBLIC, "answers": {200: "application/json"}, "problems": (404,)},
    media_type="application/json",
)
async def openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    check_shown(request)
    headers = {"cache-control": "public, max-age=60"}
    document: bytes = await asyncio.to_thread(request.app.state.make_document)
    return Response(document, headers=headers, media_type="application/json")


ROUTES: list[HTTPRouteHandler] = [openapi]
