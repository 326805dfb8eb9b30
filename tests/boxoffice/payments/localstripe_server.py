"""Runs localstripe on a free port, told on stdout, with what it is known to lack put right (EVIDENCE of each in docs):

no idempotency keys, no payment method in a confirm, no payment named in the error when a card is declined at creation,
capture after cancel answered 200, refunds beyond the charge, no amounts received or capturable, no types of methods,
no filter by creation time, no notices of authorised, cancelled and asked-for payments, most declining cards succeed.
`POST /_config/down` makes it answer our server with 503; `DELETE` ends that.
"""

import asyncio
import hashlib
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")
from aiohttp import web  # noqa: E402
from localstripe import resources, server  # noqa: E402
from localstripe.errors import UserError  # noqa: E402

answers: dict[str, tuple[str, int, bytes]] = {}


down = False


async def go_down(request: web.Request) -> web.Response:
    global down
    down = True
    return web.Response()


async def come_back(request: web.Request) -> web.Response:
    global down
    down = False
    return web.Response()


@web.middleware
async def away(request: web.Request, handler: Any) -> web.StreamResponse:
    """While it is down, Stripe's Python client (our server) is answered 503; browsers still reach it."""
    if down and "PythonBindings" in request.headers.get("User-Agent", ""):
        return web.json_response({"error": {"type": "api_error", "message": "down"}}, status=503)
    return await handler(request)


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
    try:
        found._confirm(on_failure_now=found._report_failure)
    finally:
        report(found)
    return found


def create(cls: Any, **given: Any) -> Any:
    before = set(resources.store)
    try:
        found = once_created(**given)
    except UserError as error:
        for key in set(resources.store) - before:
            if key.startswith("payment_intent:") and error.code == 402:
                error.body["error"]["payment_intent"] = {"id": key.partition(":")[2]}
                error.body["error"]["type"] = "card_error"
        raise
    report(found)
    return found


def authenticated(cls: Any, id: str, client_secret: str = "", success: Any = False, **more: Any) -> Any:
    found = cls._api_authenticate(id, client_secret=client_secret, success=success)
    if found.status == "requires_payment_method":
        resources.schedule_webhook(resources.Event("payment_intent.payment_failed", found))
    report(found)
    return found


def cancelled(cls: Any, id: str, **more: Any) -> Any:
    found = cls._api_cancel(id, **more)
    report(found)
    return found


def report(found: Any) -> None:
    """Send the notices that localstripe forgets."""
    kinds = {"requires_capture": "amount_capturable_updated", "requires_action": "requires_action"}
    kind = (kinds | {"canceled": "canceled"}).get(found.status)
    if kind is not None:
        resources.schedule_webhook(resources.Event(f"payment_intent.{kind}", found))


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
    left = intent.amount - sum(refund.amount for refund in known if refund.status != "failed")
    if intent.status != "succeeded" or int(amount) > left:
        raise UserError(400, "already refunded", {"code": "charge_already_refunded"})
    made(self, charge=charge, payment_intent=payment_intent, amount=amount, **more)
    card = getattr(resources.PaymentMethod._api_retrieve(intent.payment_method), "_card_number", "")
    if card == REFUND_PENDS:
        self.status = "pending"
    elif card == REFUND_FAILS and not known:
        self.status, self.failure_reason = "failed", "lost_or_stolen_card"
        resources.schedule_webhook(resources.Event("refund.failed", self))


# the first refund fails at once, later ones succeed; refunds stay pending
REFUND_FAILS, REFUND_PENDS = "4000000000005126", "4000000000007726"
DECLINED = {
    "4000000000000002": "card_declined",
    "4000000000009995": "insufficient_funds",
    "4000000000000127": "incorrect_cvc",
}
MESSAGES = {"incorrect_cvc": "Your card's security code is incorrect."}
once_declined, once_failed = resources.PaymentMethod._charging_is_declined, resources.Charge._set_auth_failure


def is_declined(self: Any) -> bool:
    return getattr(self, "_card_number", "") in DECLINED or once_declined(self)


def set_failure(self: Any) -> None:
    once_failed(self)
    intent = resources.PaymentIntent._api_retrieve(self.payment_intent)
    card = resources.PaymentMethod._api_retrieve(intent.payment_method)
    self.failure_code = DECLINED.get(card._card_number, self.failure_code)
    self.failure_message = MESSAGES.get(self.failure_code, self.failure_message)


resources.PaymentMethod._charging_is_declined = is_declined
resources.Charge._set_auth_failure = set_failure
made = resources.Refund.__init__
resources.Refund.__init__ = refund_within
kind = resources.PaymentIntent
once_created = kind._api_create
kind._api_create = classmethod(create)
kind.payment_method_types = property(lambda self: ["card"])
kind.amount_received = property(lambda self: self.amount if self.status == "succeeded" else 0)
kind.amount_capturable = property(lambda self: self.amount if self.status == "requires_capture" else 0)
kind._api_list_all = classmethod(some)
resources.store.dump_to_disk = lambda: None


async def main() -> None:
    app = web.Application(middlewares=[away, idempotent, *server.app.middlewares])
    # Routes of localstripe keep the functions they were made with: ours go first.
    ours = {"confirm": confirm, "capture": captured, "cancel": cancelled, "_authenticate": authenticated}
    for name, act in ours.items():
        route = server.api_extra(lambda act=act, **given: act(kind, **given), "")
        app.router.add_post(f"/v1/payment_intents/{{id}}/{name}", route)
    app.router.add_post("/_config/down", go_down)
    app.router.add_delete("/_config/down", come_back)
    for route in server.app.router.routes():
        if route.method != "HEAD" and route.resource.canonical not in (
            f"/v1/payment_intents/{{id}}/{name}" for name in ours
        ):
            app.router.add_route(route.method, route.resource.canonical, route.handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
