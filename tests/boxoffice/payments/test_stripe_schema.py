"""B6: what the simulated provider answers has the shape that Stripe's OpenAPI document says (`make stripe-schema`).

The whole contract suite is played, with every card, and each object is checked after every call; so are the webhooks.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from frontrow.boxoffice.adapters.payments.simulated import CARDS, LAPSES, SimulatedProvider
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.simulated_provider import simulated_case
from tests.boxoffice.payments.stripe_schema import document
from tests.contracts.payment_provider import CHECKS

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "stripe_schema.json").read_text())


def wrong(kind: str, found: Any) -> list[str]:
    checker = Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]})
    return [f"{kind} {'.'.join(map(str, one.path))}: {one.message}" for one in checker.iter_errors(found)]


class Checked(SimulatedProvider):
    """Every object after every call, and every webhook, against the schema."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()

    async def _do(self, operation: str, key: str, asked: str, act: Callable[[], Any]) -> Any:
        try:
            return await super()._do(operation, key, asked, act)
        finally:
            self.check()

    def check(self) -> None:
        for found in self.objects.values():
            self.problems += wrong("payment_intent", found)
            self.seen[found["status"]] += 1
            if found["last_payment_error"]:
                self.problems += wrong("error", {"error": found["last_payment_error"]})
                self.seen["error"] += 1
        for refund in self.refunds.values():
            self.problems += wrong("refund", refund)
            self.seen["refund"] += 1
        for body, _ in self.notices:
            told = msgspec.json.decode(body)
            about = told["data"]["object"]
            self.problems += wrong("event", told) + wrong(about["object"], about)
            self.seen[told["type"]] += 1
        self.notices.clear()


async def test_every_answer_is_of_stripes_shape(clock: ManualClock) -> None:
    seen: Counter[str] = Counter()
    for check in CHECKS:
        provider = Checked(clock)
        await check(simulated_case(provider))
        provider.check()
        assert provider.problems == [], check.__name__
        seen += provider.seen
    statuses = set(SCHEMA["$defs"]["payment_intent"]["properties"]["status"]["enum"])
    assert statuses - seen.keys() == {"processing", "requires_confirmation"}, "only these two are never ours"
    assert {"error", "refund", "charge.refunded", "payment_intent.succeeded", "payment_intent.canceled"} <= seen.keys()


@pytest.mark.parametrize("card", [*CARDS, LAPSES])
async def test_every_card_is_of_stripes_shape(card: str, clock: ManualClock) -> None:
    provider = Checked(clock)
    case = simulated_case(provider)
    made = await provider.create(case.new())
    await provider.authorise(made.ref, card, "k")
    provider.check()
    assert provider.problems == []


def test_the_check_catches() -> None:
    """A canary a kind: missing, of another type, not an allowed word, not a field of Stripe's at all."""
    good = {"id": "re_1", "object": "refund", "amount": 1, "currency": "eur", "created": 1}
    assert wrong("refund", good) == []
    without = {name: value for name, value in good.items() if name != "currency"}
    for bad in (without, good | {"amount": "1"}, good | {"object": "repay"}, good | {"amout": 1}):
        assert len(wrong("refund", bad)) == 1


def test_the_reduction_keeps_names_types_and_what_is_required() -> None:
    field = {"type": "string", "nullable": True, "description": "words", "enum": ["a"]}
    whole = {"properties": {"a": field}, "required": ["a"], "type": "object", "title": "words"}
    made = document({"info": {"version": "1"}, "components": {"schemas": {"refund": whole}}}, "9")["$defs"]["refund"]
    kept = {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}
    assert made == {"type": "object", "required": ["a"], "properties": {"a": kept}, "additionalProperties": False}
