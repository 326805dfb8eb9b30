"""The route table as the app has it, with path parameters filled in and the smallest body each route takes."""

import re
from typing import Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from frontrow.web.http.csrf import SAFE_METHODS
from frontrow.web.server.app import pages, routes

PLACEHOLDER = "x_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"


class Route(msgspec.Struct):
    """One operation."""

    name: str
    method: str
    template: str
    handler: HTTPRouteHandler

    @property
    def opt(self) -> dict[str, Any]:
        return dict(self.handler.opt)

    @property
    def access(self) -> str:
        """`staff:team:write`, `fan`, …; with `own:` in front where fast path and framework share the checks."""
        asked = self.opt["access"]
        name = f"{asked.kind}:{asked.permission}" if asked.permission else str(asked.kind)
        return f"own:{name}" if self.opt.get("own_checks") else name

    @property
    def unsafe(self) -> bool:
        return self.method not in SAFE_METHODS

    @property
    def body_type(self) -> Any:
        """The Struct this route reads its body into, if any."""
        if self.opt.get("body") is not None:
            return self.opt["body"]
        given = self.handler.parsed_fn_signature.parameters.get("data")
        return given.annotation if given is not None else None

    def path(self, **values: str) -> str:
        def filled(match: "re.Match[str]") -> str:
            name, _, kind = match[1].partition(":")
            return values.get(name, "1" if kind == "int" else PLACEHOLDER)

        return re.sub(r"\{([^}]*)\}", filled, self.template)

    def parameters(self) -> set[str]:
        return {found.partition(":")[0] for found in re.findall(r"\{([^}]*)\}", self.template)}

    def sample(self) -> Any:
        """The smallest body that fits, or nothing where none is read."""
        return smallest(self.body_type) if self.body_type is not None else None


def table() -> list[Route]:
    """The API."""
    return _of(routes())


def page_table() -> list[Route]:
    """The pages and their forms."""
    return _of(pages())


def _of(handlers: list[HTTPRouteHandler]) -> list[Route]:
    found = [
        Route(str(handler.operation_id), method, path, handler)
        for handler in handlers
        for method in sorted(handler.http_methods)
        for path in sorted(handler.paths)
    ]
    assert len({(route.name, route.template) for route in found}) == len(found), "one name, one operation"
    return found


def smallest(kind: Any) -> Any:
    """A value of this type by its JSON schema: examples first, then the least that is allowed."""
    schema = msgspec.json.schema(kind)
    return _value(schema, schema.get("$defs", {}))


def _value(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _value(known[schema["$ref"].rpartition("/")[2]], known)
    if schema.get("examples"):
        return schema["examples"][0]
    for choice in ("anyOf", "allOf", "oneOf"):
        if choice in schema:
            return _value(schema[choice][0], known)
    if "enum" in schema or "const" in schema:
        return schema.get("const", next(iter(schema.get("enum", [None]))))
    return _plain(schema, known)


def _plain(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            needed = schema.get("required", [])
            return {name: _value(schema["properties"][name], known) for name in needed}
        case "array":
            return [_value(schema.get("items") or {}, known)] * schema.get("minItems", 0)
        case "string":
            return "2026-11-15T19:30:00Z" if schema.get("format") == "date-time" else "x" * schema.get("minLength", 1)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return None
