"""Runs localstripe on a free port, told on stdout, with what it is known to lack put right (EVIDENCE of each in docs):

no idempotency keys, no payment method in a confirm, capture after cancel answered 200, refunds beyond the charge, no
amounts received or capturable, no filter by creation time.
"""

import asyncio
import hashlib
import warnings
from typing import Any

warnings.simplefilter("ignore")
from aiohttp import web  # noqa: E402
from localstripe import resources, server  # noqa: E402
from localstripe.errors import UserError  # noqa: E402

answers: dict[str, tuple[str, int, bytes]] = {}


@web.middleware
async def idempotent(request: web.Request, handler: Any) -> web.StreamResponse:
    key = request.headers.get("Idempotency-Key", "")
    if request.method != "POST" or not key:
        return await handler(request)
    asked = hashlib.sha256(request.path.encode() + await request.read()).hexdigest()
    if key in answers:
        was, status, body = answers[key]
        if was != asked:
            error = {"error": {"type": "idempotency_error", "message": "another request had this key"}}
            return web.json_response(error, status=400)
        return web.Response(status=status, body=body, content_type="application/json")
    answer = await handler(request)
    if answer.status not in (409, 429):
        answers[key] = (asked, answer.status, answer.body)
    return answer


def confirm(cls: Any, id: str, payment_method: str | None = None, **more: Any) -> Any:
    found = cls._api_retrieve(id)
    if found.status not in ("requires_payment_method", "requires_confirmation"):
        raise UserError(400, "unexpected state", {"code": "payment_intent_unexpected_state"})
    if payment_method is not None:
        resources.PaymentMethod._api_retrieve(payment_method)
        found.payment_method, found.latest_charge = payment_method, None
    found._confirm(on_failure_now=found._report_failure)
    return found


def captured(cls: Any, id: str, amount_to_capture: Any = None, **more: Any) -> Any:
    found = cls._api_retrieve(id)
    if found.status != "requires_capture":
        raise UserError(400, "unexpected state", {"code": "payment_intent_unexpected_state"})
    found.latest_charge._capture(amount=amount_to_capture, on_success=found._on_success)
    return found


def some(cls: Any, url: str, limit: Any = None, starting_after: Any = None, created: Any = None, **more: Any) -> Any:
    found = super(resources.PaymentIntent, cls)._api_list_all(url, limit=limit, starting_after=starting_after)
    since = int((created or {}).get("gte", 0))
    found._list = [one for one in reversed(found._list) if one.created >= since]
    return found


def refund_within(self: Any, charge: Any = None, payment_intent: Any = None, amount: Any = None, **more: Any) -> None:
    intent = resources.PaymentIntent._api_retrieve(payment_intent)
    known = [r for k, r in resources.store.items() if k.startswith("refund:") and r.payment_intent == payment_intent]
    if intent.status != "succeeded" or int(amount) + sum(r.amount for r in known) > intent.amount:
        raise UserError(400, "already refunded", {"code": "charge_already_refunded"})
    made(self, charge=charge, payment_intent=payment_intent, amount=amount, **more)


made = resources.Refund.__init__
resources.Refund.__init__ = refund_within
kind = resources.PaymentIntent
kind.amount_received = property(lambda self: self.amount if self.status == "succeeded" else 0)
kind.amount_capturable = property(lambda self: self.amount if self.status == "requires_capture" else 0)
kind._api_list_all = classmethod(some)
resources.store.dump_to_disk = lambda: None


async def main() -> None:
    app = web.Application(middlewares=[idempotent, *server.app.middlewares])
    # Routes of localstripe keep the functions they were made with: ours go first.
    app.router.add_post("/v1/payment_intents/{id}/confirm", server.api_extra(lambda **d: confirm(kind, **d), ""))
    app.router.add_post("/v1/payment_intents/{id}/capture", server.api_extra(lambda **d: captured(kind, **d), ""))
    for route in server.app.router.routes():
        if route.method != "HEAD" and route.resource.canonical not in (
            "/v1/payment_intents/{id}/confirm",
            "/v1/payment_intents/{id}/capture",
        ):
            app.router.add_route(route.method, route.resource.canonical, route.handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
