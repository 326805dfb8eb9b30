"""The OpenAPI document says what every route takes and answers, with examples; held against a running room."""

from typing import Any

import msgspec

from frontrow.web.endpoints.room.openapi_shapes import SHAPES
from frontrow.web.endpoints.room.routes import ALONE_ROUTES
from frontrow.web.room.app import PREFIX
from tests.web.room.conftest import ORGANISER, ServedRoom

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


def test_every_route_has_shapes_and_examples(server: ServedRoom) -> None:
    found = operations(server.client.get("/schema/openapi.json").json())
    assert {route.name for route in ALONE_ROUTES} | {"stream"} == set(SHAPES)
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


def test_what_a_running_room_answers_is_what_the_document_says(server: ServedRoom) -> None:
    document = operations(server.client.get("/schema/openapi.json").json())
    joined = server.client.post("/join")
    place = {"Authorization": f"Bearer {joined.json()['place']}"}
    server.room.move(1)
    status, claimed = server.client.get("/status", headers=place), server.client.post("/claim", headers=place)
    visit = {"Authorization": f"Bearer {claimed.json()['pass']}"}
    answers = {
        "join": joined,
        "status": status,
        "claim": claimed,
        "now_serving": server.client.get("/now-serving"),
        "message": server.client.get("/message"),
        "show_room": server.client.get("/room", headers=KEY),
        "heartbeat": server.client.post("/heartbeat", headers=visit),
        "give_back": server.client.post("/give-back", headers=visit),
    }
    for name, answer in answers.items():
        assert answer.is_success, (name, answer.text)
        assert fits(answer.json(), schema_of(document[name], answer.status_code)), (name, answer.text)
    refused = server.client.get("/status")
    assert set(refused.json()) >= {"type", "title", "status", "detail", "code"}
    assert set(schema_of(document["status"], 401)["properties"]) >= {"type", "title", "status", "detail", "code"}
