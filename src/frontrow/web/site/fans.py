"""What fans see before the sale: the events, found and filtered, and one event with its countdown."""

import base64
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.model.events import EventStatus
from frontrow.core.clock import US_PER_S
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.events import MAX_WORDS_CHARS
from frontrow.web.platform import Platform
from frontrow.web.shapes import time_text
from frontrow.web.site.render import render
from frontrow.web.site.routes import page
from frontrow.web.site.shown import Shown, shown, shown_event
from frontrow.web.site.words import N_

Asked = Request[Any, Any, Any]
DAY_US: Final = 86_400 * US_PER_S
PAGE: Final = 60
WHENS: Final = {
    "": (N_("Any date"), 0, 0),
    "week": (N_("Next 7 days"), 0, 7),
    "month": (N_("Next 30 days"), 0, 30),
    "later": (N_("Later"), 30, 0),
}
SHOWS: Final = {
    "": (N_("All events"), ()),
    "sale": (N_("On sale now"), ("open", "few")),
    "soon": (N_("Sale opens soon"), ("soon", "presale")),
    "sold_out": (N_("Sold out"), ("sold_out",)),
}


@page("/", "events")
async def events(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """All events that can be bought or are to come."""
    asked = request.query_params
    words = asked.get("q", "")[:MAX_WORDS_CHARS].strip()
    when = asked.get("when", "") if asked.get("when", "") in WHENS else ""
    show = asked.get("show", "") if asked.get("show", "") in SHOWS else ""
    found, more = await _found(platform, words, when, show, _after(asked.get("after", "")))
    return render(
        request, "events.html", found=found, more=more, q=words, when=when, show=show, whens=WHENS, shows=SHOWS
    )


async def _found(
    platform: Platform, words: str, when: str, show: str, after: tuple[int, str]
) -> tuple[list[Shown], str]:
    now_us = platform.clock()
    _, first_day, last_day = WHENS[when]
    found = await platform.browse.search(words, status=None, after=after, limit=PAGE)
    listed = [
        shown(platform, one.event, one.venue) for one in found.listings if one.event.status is not EventStatus.DRAFT
    ]
    begin_us = now_us + first_day * DAY_US
    end_us = now_us + last_day * DAY_US if last_day else 0
    states = SHOWS[show][1]
    kept = [
        one
        for one in listed
        if one.event.starts_at_us >= begin_us
        and (not end_us or one.event.starts_at_us < end_us)
        and (one.state in states if states else one.state not in ("completed", "cancelled"))
    ]
    more = base64.urlsafe_b64encode(f"{found.after[0]}:{found.after[1]}".encode()).decode() if found.after else ""
    return kept, more


def _after(cursor: str) -> tuple[int, str]:
    try:
        at_us, _, event_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition(":")
        return (int(at_us), event_id)
    except ValueError:
        return (-1, "")


@page("/events/{event_id:str}", "event")
async def event(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """One event, and the way into its sale."""
    known = await shown_event(platform, event_id)
    one = shown(platform, known, await platform.ledger.venue(known.venue_id))
    visit = caller.shop_pass
    inside = visit is not None and visit.event_id == known.id and visit.expires_at_us > platform.clock()
    tiers = {tier.name: tier for tier in one.free.tiers} if one.free else {}
    return render(
        request, "event.html", script="js/event.js", one=one, inside=inside, tiers=tiers,
        opens_at=time_text(known.sale_starts_at_us), now=time_text(platform.clock()),
    )  # fmt: skip


ROUTES: list[HTTPRouteHandler] = [events, event]
