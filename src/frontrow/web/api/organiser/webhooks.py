"""Webhooks to the organiser's own servers."""

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.messages.model.messages import Endpoint
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Cursor, Limit
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cursors import cursor_of, next_of, read_cursor, read_number
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

HOOKS = "/v1/organiser/webhooks"
HOOK = f"{HOOKS}/{{webhook_id:str}}"
WRITES = {"access": Access.staff("webhooks:write")}
SEALED = WRITES | {"idempotency": "sealed"}  # their responses hold a secret


class HookAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The address that gets an event's facts. Empty `facts` means all kinds."""

    event: Annotated[str, msgspec.Meta(max_length=60)]
    url: Annotated[str, msgspec.Meta(max_length=2048, examples=["https://hooks.example.org/frontrow"])]
    facts: Annotated[list[str], msgspec.Meta(max_length=50, examples=[["BookingConfirmed"]])] = []


class HookView(msgspec.Struct):
    """A registered webhook; its secret is shown once, when it is made or rotated."""

    webhook: str
    event: str
    url: str
    facts: list[str]


class HookMade(HookView):
    secret: str = ""


class HookPage(msgspec.Struct):
    webhooks: list[HookView]
    next: str | None = None


class DeliveryView(msgspec.Struct):
    """One delivery; `state` is waiting, sent or given_up."""

    delivery: int
    fact: str
    state: str
    attempts: int
    created_at: Time
    next_at: Time | None
    last_error: str


class DeliveryPage(msgspec.Struct):
    deliveries: list[DeliveryView]
    next: str | None = None


@get(HOOKS, operation_id="list_webhooks", summary="The organiser's webhooks", opt=WRITES)
async def list_webhooks(platform: FromPlatform, caller: FromCaller, cursor: Cursor = "", limit: Limit = 50) -> HookPage:
    page = await platform.organiser.webhooks.page(caller.organiser_id, read_cursor(cursor), limit)
    return HookPage([_view(one) for one in page], cursor_of(page[-1].id if len(page) == limit else None))


@post(HOOKS, operation_id="create_webhook", summary="Register a webhook", status_code=201, opt=SEALED)
async def create_webhook(platform: FromPlatform, caller: FromCaller, data: JSONBody[HookAsked]) -> Response[HookMade]:
    event = await own_event(platform, caller, data.event)
    endpoint = await platform.organiser.webhooks.create(editor_of(caller), event, data.url, data.facts)
    return _with_secret(endpoint, 201)


@post(
    f"{HOOK}/rotate",
    operation_id="rotate_webhook",
    summary="Make a new secret; the old one ends",
    status_code=200,
    opt=SEALED,
)
async def rotate_webhook(platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str]) -> Response[HookMade]:
    return _with_secret(await platform.organiser.webhooks.rotate(editor_of(caller), webhook_id), 200)


@delete(HOOK, operation_id="remove_webhook", summary="Remove a webhook", status_code=204, opt=WRITES)
async def remove_webhook(platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str]) -> None:
    await platform.organiser.webhooks.remove(editor_of(caller), webhook_id)


@get(f"{HOOK}/deliveries", operation_id="list_deliveries", summary="Recent deliveries, newest first", opt=WRITES)
async def list_deliveries(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], cursor: Cursor = "", limit: Limit = 20
) -> DeliveryPage:
    webhooks = platform.organiser.webhooks
    endpoint = await webhooks.find(caller.organiser_id, webhook_id)
    page = await webhooks.deliveries(endpoint, read_number(cursor), limit)
    views = [
        DeliveryView(
            one.number,
            one.fact_id,
            one.state,
            one.attempts,
            time_text(one.created_at_us),
            time_text(one.next_at_us) if one.state == "waiting" else None,
            one.last_error,
        )
        for one in page
    ]
    return DeliveryPage(views, next_of(page, limit, page[-1].number if page else None))


@post(
    f"{HOOK}/deliveries/{{delivery_id:str}}/redeliver",
    operation_id="redeliver",
    summary="Send a delivery once more, from the beginning",
    status_code=202,
    opt=WRITES,
)
async def redeliver(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], delivery_id: FromPath[str]
) -> None:
    await platform.organiser.webhooks.redeliver(editor_of(caller), webhook_id, delivery_id)


def _view(one: Endpoint) -> HookView:
    return HookView(one.id, one.event_id, one.url, list(one.facts))


def _with_secret(one: Endpoint, status: int) -> Response[HookMade]:
    view = HookMade(one.id, one.event_id, one.url, list(one.facts), one.secret)
    return Response(view, status_code=status, headers={"cache-control": "no-store"})


ROUTES: list[HTTPRouteHandler] = [
    list_webhooks,
    create_webhook,
    rotate_webhook,
    remove_webhook,
    list_deliveries,
    redeliver,
]
