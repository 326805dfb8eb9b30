"""Webhooks of the payment providers: each is verified by its provider and handled once, and the payment is read back
from the provider instead of from the webhook."""

from typing import Any

import msgspec
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromPlatform


class NoticeView(msgspec.Struct):
    """`done` is false for a webhook that was handled before."""

    done: bool


@post(
    "/v1/webhooks/{provider:str}",
    operation_id="provider_webhook",
    summary="A payment provider's webhooks, signed as it signs them",
    status_code=200,
    opt={"access": Access.PUBLIC, "idempotency": "own", "problems": (401, 404), "raw_body": "application/json"},
)
async def provider_webhook(
    platform: FromPlatform, request: Request[Any, Any, Any], provider: FromPath[str]
) -> NoticeView:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return NoticeView(await platform.box_office.checkout.handle_webhook(await request.body(), headers, provider))


ROUTES: list[HTTPRouteHandler] = [provider_webhook]
