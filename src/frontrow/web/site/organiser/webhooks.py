"""Webhooks: where an event's facts are sent, the secret that signs them (shown once), and how the deliveries went."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.model.event_changes import Change, EndpointNotFound
from frontrow.boxoffice.model.messages import Endpoint
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Unavailable
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, Caller
from frontrow.web.api.organiser.common import editor_of
from frontrow.web.api.organiser.webhooks import (
    FACTS,
    MAX_ENDPOINTS,
    HookAsked,
    create_webhook,
    list_deliveries,
    redeliver,
    remove_webhook,
    rotate_webhook,
)
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
HOOKS: Final = "/organiser/webhooks"
HOOK: Final = f"{HOOKS}/{{webhook_id:str}}"
WRITES: Final = Access.staff("webhooks:write")
EVENTS: Final = 100
DELIVERIES: Final = 25
STATES: Final = {
    "waiting": ("warn", N_("In progress")),
    "sent": ("ok", N_("Delivered")),
    "given_up": ("bad", N_("Failed")),
}
DONE: Final = {
    "removed": N_("Removed. Nothing more is sent there."),
    "again": N_("It is being sent again."),
    "test": N_("A test is on its way. Reload to see the result."),
}
BAD_URL: Final = N_("This address cannot be used: it must be a public https address.")


@page(HOOKS, "webhooks", WRITES)
async def webhooks(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """All webhooks of this organiser."""
    return await _list(request, platform, caller)


async def _list(
    request: Asked, platform: Platform, caller: Caller, *, refusal: str = "", secret: str = "", url: str = ""
) -> Response[bytes]:
    hooks = await platform.ledger.organiser.own_endpoints(caller.organiser_id, "", MAX_ENDPOINTS)
    events = await platform.ledger.catalogue.events_of_organiser(caller.organiser_id, (-1, ""), EVENTS)
    return render(
        request,
        "organiser/webhooks.html",
        status=422 if refusal else 200,
        hooks=hooks,
        refusal=refusal,
        secret=secret,
        url=url,
        events={one.id: one.name for one in events},
        facts=sorted(FACTS),
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(HOOKS, "webhook_create", WRITES)
async def create(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The page itself, with the secret: it is shown only once."""
    facts = [one for one in form.all("fact")[:50] if one in FACTS]
    url = form.one("url", 2048)
    try:
        created = await create_webhook.fn(platform, caller, HookAsked(form.one("event", 60), url, facts))
    except (Unavailable, NotFound):
        raise
    except FrontrowError:
        return await _list(request, platform, caller, refusal=BAD_URL, url=url)
    return await _list(request, platform, caller, secret=created.content.secret)


@page(HOOK, "webhook", WRITES)
async def webhook(
    request: Asked, platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str]
) -> Response[bytes]:
    """One webhook and its deliveries."""
    return await _one(request, platform, caller, webhook_id)


async def _one(
    request: Asked, platform: Platform, caller: Caller, webhook_id: str, secret: str = ""
) -> Response[bytes]:
    hook, after = await _own(platform, caller, webhook_id), request.query_params.get("after", "")[:200]
    try:
        shown = await list_deliveries.fn(platform, caller, webhook_id, after, DELIVERIES)
    except InvalidInput:
        shown = await list_deliveries.fn(platform, caller, webhook_id, "", DELIVERIES)
    event = await platform.ledger.catalogue.event(hook.event_id)
    return render(
        request,
        "organiser/webhook.html",
        script="js/organiser/desk.js",
        hook=hook,
        event=event,
        secret=secret,
        deliveries=[(one, STATES.get(one.state, STATES["waiting"])) for one in shown.deliveries],
        more=shown.next,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


async def _own(platform: Platform, caller: Caller, webhook_id: str) -> Endpoint:
    found = await platform.ledger.messages.endpoint(webhook_id)
    if found is None or not found.active or found.organiser != caller.organiser_id:
        raise EndpointNotFound(f"there is no webhook {webhook_id[:60]}", webhook=webhook_id[:60])
    return found


@action(f"{HOOK}/rotate", "webhook_rotate", WRITES)
async def rotate(
    request: Asked, platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """A new secret; the old one ends at once."""
    created = await rotate_webhook.fn(platform, caller, webhook_id)
    return await _one(request, platform, caller, webhook_id, created.content.secret)


@action(f"{HOOK}/remove", "webhook_remove", WRITES)
async def remove(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    await remove_webhook.fn(platform, caller, webhook_id)
    return go_to(f"{HOOKS}?done=removed")


@action(f"{HOOK}/test", "webhook_test", WRITES)
async def test(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send a test delivery."""
    hook = await _own(platform, caller, webhook_id)
    await platform.messaging.webhooks.test(hook)
    change = Change(editor_of(caller), "test_webhook", hook.event_id, platform.clock(), {"webhook": hook.id})
    await platform.ledger.organiser.note(change)
    return go_to(f"{HOOKS}/{hook.id}?done=test")


@action(f"{HOOK}/deliveries/{{delivery:str}}", "webhook_again", WRITES)
async def again(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], delivery: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send one delivery again."""
    await redeliver.fn(platform, caller, webhook_id, delivery)
    return go_to(f"{HOOKS}/{webhook_id}?done=again")


ROUTES: list[HTTPRouteHandler] = [webhooks, create, webhook, rotate, remove, test, again]
