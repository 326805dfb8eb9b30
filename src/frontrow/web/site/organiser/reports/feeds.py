"""Feeds: a calendar and a table of sales at a secret address per member, which the member can end at any time."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.form_answers import show_once
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
FEEDS: Final = "/organiser/feeds"
READS: Final = Access.staff("events:read")
DONE: Final = {"ended": N_("The address no longer works.")}


@page(FEEDS, "feeds", READS)
async def feeds(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The member's own feeds."""
    return await _show(request, platform, caller)


async def _show(request: Asked, platform: Platform, caller: Caller, secret: str = "") -> Response[bytes]:
    return render(
        request,
        "organiser/feeds.html",
        made_at_us=await platform.organiser.feeds.made_at_us(caller.id),
        base=f"{platform.settings.public_url.rstrip('/')}/feeds/{secret}" if secret else "",
        figures="figures:read" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(FEEDS, "feed_create", READS)
async def create(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """The page with the new address, which is shown only once."""
    return show_once(await _show(request, platform, caller, await platform.organiser.feeds.create(caller.id)))


@action(f"{FEEDS}/end", "feed_end", READS)
async def end(platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    await platform.organiser.feeds.revoke(caller.id)
    return go_to(f"{FEEDS}?done=ended")


@page("/feeds/{secret:str}/{file:str}", "feed")
async def feed(platform: FromPlatform, secret: FromPath[str], file: FromPath[str]) -> Response[bytes]:
    """One feed, for a calendar or a spreadsheet that asks for it by itself."""
    found = platform.organiser.feeds
    member = await found.member(secret[:100], file)
    if file == "events.ics":
        public_url = platform.settings.public_url.rstrip("/")
        body, media_type = await found.calendar(member.organiser_id, public_url), "text/calendar; charset=utf-8"
    else:
        body, media_type = (await found.sales(member.organiser_id)).encode(), "text/csv; charset=utf-8"
    headers = {
        "cache-control": "private, max-age=300",
        "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex",
        "referrer-policy": "no-referrer",
    }
    return Response(body, headers=headers, media_type=media_type)


ROUTES: list[HTTPRouteHandler] = [feeds, create, end, feed]
