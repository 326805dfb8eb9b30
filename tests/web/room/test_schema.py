"""The OpenAPI document says what every route takes and answers, with examples; held against a running room."""

from typing import Any

import msgspec
import pytest

from frontrow.web.endpoints.room_schema import SHAPES
from frontrow.web.room.app import PREFIX, ROUTES
from tests.web.room.conftest import ORGANISER, Door

KEY = {"Authorization": f"Bearer {ORGANISER}"}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is of the shape that a schema tells (the little of JSON Schema that is used here)."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    names = {"boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list, "object": dict}
    if value is None:
        return "null" in kinds
    if not any(isinstance(value, names[kind]) for kind in kinds if kind != "null"):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return set(value) <= set(known) and all(fits(part, known[name]) for name, part in value.items())
    if isinstance(value, list) and schema.get("items"):
        return all(fits(part, schema["items"]) for part in value)
    return True


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["operationId"]: one for path in document["paths"].values() for one in path.values()}


def schema_of(one: dict[str, Any], status: int) -> dict[str, Any]:
    (content,) = one["responses"][str(status)]["content"].values()
    found: dict[str, Any] = content["schema"]
    return found


def test_every_route_has_shapes_and_examples(door: Door) -> None:
    found = operations(door.client.get("/schema/openapi.json").json())
    assert {route.endpoint for route in ROUTES} | {"stream"} == set(SHAPES)
    assert PREFIX.startswith("/v1/events/{event")
    for name, shape in SHAPES.items():
        one = found[name]
        answer = one["responses"][str(shape.status)]
        if shape.status != 204:
            (content,) = answer["content"].values()
            assert fits(content["examples"]["example"]["value"], content["schema"])
        kind = shape.answers[shape.status]
        if isinstance(kind, type):
            msgspec.convert(shape.example, kind)
        assert ("requestBody" in one) == (shape.body_example is not None)
        if shape.body_example is not None:
            (content,) = one["requestBody"]["content"].values()
            assert fits(content["examples"]["example"]["value"], content["schema"])


@pytest.mark.parametrize(
    "name", ["join", "status", "claim", "now_serving", "message", "show_room", "give_back", "heartbeat"]
)
def test_what_a_running_room_answers_is_what_the_document_says(door: Door, name: str) -> None:
    one = operations(door.client.get("/schema/openapi.json").json())[name]
    joined = door.client.post("/join")
    bearer = {"Authorization": f"Bearer {joined.json()['place']}"}
    door.room.move(1)
    if name == "join":
        answer = joined
    elif name == "status":
        answer = door.client.get("/status", headers=bearer)
    elif name in ("claim", "give_back", "heartbeat"):
        answer = door.client.post("/claim", headers=bearer)
        if name != "claim":
            answer = door.client.post(
                f"/{name.replace('_', '-')}", headers={"Authorization": f"Bearer {answer.json()['pass']}"}
            )
    else:
        path = {"now_serving": "/now-serving", "message": "/message", "show_room": "/room"}[name]
        answer = door.client.get(path, headers=KEY)
    assert answer.json().keys() >= {"join": {"place"}, "claim": {"pass"}}.get(name, set())
    assert fits(answer.json(), schema_of(one, answer.status_code)), answer.text
    refused = door.client.get("/status")
    about = operations(door.client.get("/schema/openapi.json").json())["status"]
    assert set(refused.json()) >= {"type", "title", "status", "detail", "code"}
    assert set(schema_of(about, 401)["properties"]) >= {"type", "title", "status", "detail", "code"}
