"""Webhooks of the payment provider. The signature is checked, each is handled once, and the payment is read back from
the provider instead of from the webhook."""

from typing import Any

import msgspec
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler

from frontrow.core.errors import NotFound, Unauthorised
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromPlatform


class NoticeView(msgspec.Struct):
    """`done` is false for a webhook that was handled before."""

    done: bool


@post(
    "/v1/webhooks/stripe",
    operation_id="stripe_webhook",
    summary="Stripe's webhooks, signed with the webhook secret",
    status_code=200,
    opt={"access": Access.PUBLIC, "idempotency": "own", "problems": (401, 404), "raw_body": "application/json"},
)
async def stripe_webhook(platform: FromPlatform, request: Request[Any, Any, Any]) -> NoticeView:
    if platform.box_office.provider.name != "stripe":
        raise NotFound("this server does not use Stripe")
    signature = request.headers.get("stripe-signature", "")
    if not signature:
        raise Unauthorised("the header Stripe-Signature is missing")
    return NoticeView(await platform.box_office.checkout.handle_webhook(await request.body(), signature))


ROUTES: list[HTTPRouteHandler] = [stripe_webhook]
