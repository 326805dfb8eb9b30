"""Webhooks: where an event's facts are sent, the secret that signs them (shown once), and how the deliveries went."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.messages.webhook_endpoints import FACTS
from frontrow.boxoffice.organiser.webhooks import MAX_PER_ORGANISER
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Unavailable
from frontrow.web.http.access import Access, Caller, editor_of
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.form_answers import show_once
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_names import names_of_events
from frontrow.web.site.render import render, words_for
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
    hooks = await platform.organiser.webhooks.page(caller.organiser_id, "", MAX_PER_ORGANISER)
    events = await platform.ledger.catalogue.events_of_organiser(caller.organiser_id, (-1, ""), EVENTS)
    return render(
        request,
        "organiser/webhooks.html",
        status=422 if refusal else 200,
        hooks=hooks,
        refusal=refusal,
        secret=secret,
        url=url,
        events=await names_of_events(platform, events, words_for(request)),
        facts=sorted(FACTS),
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(HOOKS, "webhook_create", WRITES)
async def create(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The page with the secret, which is shown only once."""
    facts = [one for one in form.all("fact")[:50] if one in FACTS]
    url = form.one("url", 2048)
    try:
        event = await own_event(platform, caller, form.one("event", 60))
        created = await platform.organiser.webhooks.create(editor_of(caller), event, url, facts)
    except (Unavailable, NotFound):
        raise
    except FrontrowError:
        return await _list(request, platform, caller, refusal=BAD_URL, url=url)
    return show_once(await _list(request, platform, caller, secret=created.secret))


@page(HOOK, "webhook", WRITES)
async def webhook(
    request: Asked, platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str]
) -> Response[bytes]:
    """One webhook and its deliveries."""
    return await _one(request, platform, caller, webhook_id)


async def _one(
    request: Asked, platform: Platform, caller: Caller, webhook_id: str, secret: str = ""
) -> Response[bytes]:
    hook = await platform.organiser.webhooks.find(caller.organiser_id, webhook_id)
    try:
        before = read_number(request.query_params.get("after", "")[:200])
    except InvalidInput:
        before = 0
    shown = await platform.organiser.webhooks.deliveries(hook, before, DELIVERIES)
    event = await platform.ledger.catalogue.event(hook.event_id)
    return render(
        request,
        "organiser/webhook.html",
        script="js/organiser/dialogs.js",
        hook=hook,
        event=event,
        secret=secret,
        deliveries=[(one, STATES.get(one.state, STATES["waiting"])) for one in shown],
        more=next_of(shown, DELIVERIES, shown[-1].number if shown else None),
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(f"{HOOK}/rotate", "webhook_rotate", WRITES)
async def rotate(
    request: Asked, platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """A new secret; the old one ends at once."""
    rotated = await platform.organiser.webhooks.rotate(editor_of(caller), webhook_id)
    return show_once(await _one(request, platform, caller, webhook_id, rotated.secret))


@action(f"{HOOK}/remove", "webhook_remove", WRITES)
async def remove(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    await platform.organiser.webhooks.remove(editor_of(caller), webhook_id)
    return go_to(f"{HOOKS}?done=removed")


@action(f"{HOOK}/test", "webhook_test", WRITES)
async def test(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send a test delivery."""
    hook = await platform.organiser.webhooks.send_test(editor_of(caller), webhook_id)
    return go_to(f"{HOOKS}/{hook.id}?done=test")


@action(f"{HOOK}/deliveries/{{delivery:str}}", "webhook_again", WRITES)
async def again(
    platform: FromPlatform, caller: FromCaller, webhook_id: FromPath[str], delivery: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Send one delivery again."""
    await platform.organiser.webhooks.redeliver(editor_of(caller), webhook_id, delivery)
    return go_to(f"{HOOKS}/{webhook_id}?done=again")


ROUTES: list[HTTPRouteHandler] = [webhooks, create, webhook, rotate, remove, test, again]
