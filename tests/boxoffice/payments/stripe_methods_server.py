"""A stand-in for Stripe's API with the methods that localstripe does not have, written from Stripe's public reference.

It answers stripe-python over HTTP with objects of Stripe's shape (those of the simulated provider, which other tests
hold against Stripe's OpenAPI) and refuses what Stripe documents as wrong: manual capture with a type that has none,
a redirect without `return_url`, a bank transfer without a customer, a currency that a type does not take, a key for two
requests. `/_bank/{ref}` is the fan at the bank, `/_money/{ref}` the bank with awaited money.
"""

import json
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import web

from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.adapters.payments.stripe_methods import METHODS
from frontrow.boxoffice.payments.model.payment_methods import MethodFamily
from frontrow.boxoffice.payments.model.provider_intents import NewIntent, ProviderRefused
from frontrow.core.clock import Clock

OURS: Final = {"p24": "przelewy24", "customer_balance": "bank_transfer"}
FAMILIES: Final = {one.id: one.family for one in METHODS}
CURRENCIES: Final = {one.id: one.currencies for one in METHODS}
REDIRECTS: Final = ("paypal", "klarna", "ideal", "bancontact", "eps", "p24", "twint", "swish")


class StripeError(Exception):
    def __init__(self, message: str, code: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class StripeMethods:
    """The API over one simulated bank."""

    def __init__(self, clock: Clock) -> None:
        self.bank = SimulatedProvider(clock)
        self.customers = 0
        self.domains: list[str] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []  # every POST: its path and its fields
        self.answers: dict[str, tuple[str, Any]] = {}

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._errors])
        app.add_routes(
            [
                web.post("/v1/customers", self._customer),
                web.post("/v1/payment_intents", self._create),
                web.get("/v1/payment_intents", self._list),
                web.get("/v1/payment_intents/{ref}", self._read),
                web.post("/v1/payment_intents/{ref}/{act}", self._act),
                web.post("/v1/refunds", self._refund),
                web.get("/v1/refunds", self._refunds),
                web.post("/v1/payment_method_domains", self._domain),
                web.post("/v1/payment_method_domains/{id}/validate", self._domain),
                web.post("/_bank/{ref}", self._at_bank),
                web.post("/_money/{ref}", self._money),
            ]
        )
        return app

    @web.middleware
    async def _errors(self, request: web.Request, handler: Any) -> web.StreamResponse:
        fields, key = _fields(await request.text()), request.headers.get("Idempotency-Key", "")
        if request.method == "POST" and request.path.startswith("/v1/"):
            self.asked.append((request.path, fields))
        if request.headers.get("Authorization", "").endswith("_bad"):
            said = _error("Invalid API Key provided: sk_test_bad", "", 401)
            return web.json_response(said[1], status=401)
        asked = json.dumps([request.path, fields], sort_keys=True)
        if request.method == "POST" and key in self.answers:
            was, stored = self.answers[key]
            answer = stored if was == asked else _error("another request had this key", "idempotency_error", 400)
            return web.json_response(answer[1], status=answer[0])
        try:
            found = 200, await handler(request, fields)
        except StripeError as error:
            found = _error(str(error), error.code, error.status)
        except ProviderRefused as error:
            found = _error(error.message, error.reason, 400)
        if key:
            self.answers[key] = asked, found
        return web.json_response(found[1], status=found[0])

    async def _customer(self, request: web.Request, fields: dict[str, Any]) -> Any:
        self.customers += 1
        return {"id": f"cus_{self.customers}", "object": "customer"}

    async def _create(self, request: web.Request, fields: dict[str, Any]) -> Any:
        types = fields["payment_method_types"]
        for kind in types:
            ours = OURS.get(kind, kind)
            if ours not in FAMILIES:
                raise StripeError(f"The payment method type {kind} is invalid.", "payment_method_type_unknown")
            currencies = CURRENCIES[ours]
            if currencies and fields["currency"].upper() not in currencies:
                raise StripeError(f"{kind} does not take {fields['currency']}.", "payment_intent_invalid_currency")
            self._check_capture(kind, fields)
        if "customer_balance" in types and not str(fields.get("customer", "")).startswith("cus_"):
            raise StripeError("customer_balance needs a customer.", "parameter_missing")
        new = NewIntent(
            "", 1, int(fields["amount"]), fields["currency"].upper(), "", 0, (), key=f"made {len(self.asked)}"
        )
        ref = (await self.bank.create(new)).ref
        made = self.bank.objects[ref]
        made |= {"metadata": fields["metadata"], "payment_method_types": types}
        made["payment_method_options"] = fields.get("payment_method_options", {})
        if fields.get("confirm") == "true":
            await self._confirm(ref, fields)
        return made

    def _check_capture(self, kind: str, fields: dict[str, Any]) -> None:
        asked = fields.get("payment_method_options", {}).get(kind, {}).get("capture_method")
        manual = "manual" in (asked, fields.get("capture_method"))
        reserves = FAMILIES[OURS.get(kind, kind)] is MethodFamily.RESERVE
        if manual and not reserves:
            raise StripeError(f"{kind} does not support manual capture.", "payment_intent_incompatible_payment_method")
        if reserves and not manual:
            raise StripeError(f"this stand-in expects {kind} to be reserved first", "not_what_frontrow_promises")

    async def _confirm(self, ref: str, fields: dict[str, Any]) -> None:
        found = self.bank.objects[ref]
        kind = fields.get("payment_method_data", {}).get("type") or "card"
        if kind not in found["payment_method_types"]:
            raise StripeError(f"This payment does not take {kind}.", "payment_intent_invalid_parameter")
        if kind in REDIRECTS and not fields.get("return_url"):
            raise StripeError(f"{kind} needs a return_url.", "parameter_missing")
        method = OURS.get(kind, kind) if "payment_method_data" in fields else fields["payment_method"]
        await self.bank.authorise(ref, method, f"confirmed {len(self.asked)}")

    async def _act(self, request: web.Request, fields: dict[str, Any]) -> Any:
        ref, act = request.match_info["ref"], request.match_info["act"]
        key = f"{act} {len(self.asked)}"
        if act == "confirm":
            await self._confirm(ref, fields)
        elif act == "capture":
            await self.bank.capture(ref, key)
        else:
            await self.bank.void(ref, key)
        return self.bank.objects[ref]

    async def _list(self, request: web.Request, fields: dict[str, Any]) -> Any:
        found = [one for one in self.bank.objects.values() if one["created"] >= int(request.query["created[gte]"])]
        found.reverse()
        after, limit = request.query.get("starting_after"), int(request.query["limit"])
        start = next((n + 1 for n, one in enumerate(found) if one["id"] == after), 0)
        page = found[start : start + limit]
        return {"object": "list", "data": page, "has_more": len(found) > start + limit, "url": "/v1/payment_intents"}

    async def _read(self, request: web.Request, fields: dict[str, Any]) -> Any:
        found = dict(self.bank.objects[request.match_info["ref"]])
        chosen = found["payment_method"]
        if request.query.get("expand[0]") == "payment_method" and chosen:
            kinds = {ours: kind for kind, ours in OURS.items()}
            wallet = {"wallet": {"type": chosen}} if chosen in ("apple_pay", "google_pay") else {}
            kind = "card" if wallet or chosen not in FAMILIES else kinds.get(chosen, chosen)
            found["payment_method"] = {"id": "pm_1", "object": "payment_method", "type": kind, "card": wallet}
        return found

    async def _refund(self, request: web.Request, fields: dict[str, Any]) -> Any:
        ref, number = fields["payment_intent"], len(self.asked)
        given = await self.bank.refund(ref, int(fields["amount"]), fields["metadata"]["refund"], f"refund {number}")
        return self.bank.refunds[given.ref]

    async def _refunds(self, request: web.Request, fields: dict[str, Any]) -> Any:
        found = self.bank.state.refunds_of(request.query["payment_intent"])
        return {"object": "list", "data": found, "has_more": False, "url": "/v1/refunds"}

    async def _domain(self, request: web.Request, fields: dict[str, Any]) -> Any:
        if "domain_name" in fields:
            self.domains.append(fields["domain_name"])
        on, off = (
            {"status": "active"},
            {"status": "inactive", "status_details": {"error_message": "The file is missing."}},
        )
        bad = self.domains[-1].startswith("bad.")
        wallets = {"apple_pay": off if bad else on, "google_pay": on, "link": on, "paypal": on}
        return {
            "id": "pmd_1",
            "object": "payment_method_domain",
            "domain_name": self.domains[-1],
            "enabled": True,
        } | wallets

    async def _at_bank(self, request: web.Request, fields: dict[str, Any]) -> Any:
        self.bank.finish_action(request.match_info["ref"], agreed=request.query["agreed"] == "1")
        return {}

    async def _money(self, request: web.Request, fields: dict[str, Any]) -> Any:
        self.bank.finish_money(request.match_info["ref"], failed=request.query["comes"] != "1")
        return {}


def _error(message: str, code: str, status: int) -> tuple[int, Any]:
    return status, {"error": {"type": "invalid_request_error", "code": code, "message": message}}


def _fields(text: str) -> dict[str, Any]:
    """A form with names like a[b][0] as nested values."""
    made: dict[str, Any] = {}
    for name, value in parse_qsl(text):
        *path, last = name.replace("]", "").split("[")
        at = made
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return {name: _lists(value) for name, value in made.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(name.isdigit() for name in value):
        return [value[name] for name in sorted(value, key=int)]
    return {name: _lists(one) for name, one in value.items()}
