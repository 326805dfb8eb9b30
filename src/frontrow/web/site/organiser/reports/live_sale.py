"""The live sale (B13, B19): what happens now and in the last hour, section by section, and the controls of the queue.

It leads with the money, what is sold by price, and who is let in and waiting, with a forecast of when it is sold out.
What operators watch (response times, payments) is folded into "System health". Times are the venue's. The activity says
what the team has changed, and goes on by itself.
The page brings the last hour and the first frame along; its script follows `figures/live` and steers by the same API
that programs use. What can be steered is shown only to who may.
"""

from typing import Any, Final

import msgspec
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import MAX_MESSAGE_CHARS
from frontrow.web.endpoints.room.organiser import room_body
from frontrow.web.http.access import Access, Caller
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.languages import N_, Words
from frontrow.web.site.organiser.organisation.change_log import ActDetail, acts_of
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import page

Asked = Request[Any, Any, Any]
SPANS_MIN: Final = (5, 15, 60)  # of the charts; the second is shown first
RECENT_ACTS: Final = 8
AUDIT: Final = "audit:read"
FROM_TO: Final = N_("from {was} to {now}")
DETAIL: Final = N_("{name}: {value}")
# figure -> heading; the second table is folded away
TILES: Final = {
    "revenue": N_("Revenue"),
    "share": N_("Sold"),
    "admitted": N_("Admitted"),
    "waiting": N_("Waiting now"),
}
HEALTH_TILES: Final = {
    "payments": N_("Payment success rate"),
    "hold": N_("Seat hold latency"),
    "ticket": N_("Time from hold to ticket"),
}


@page("/organiser/events/{event_id:str}/live", "live_sale", Access.staff("figures:read"))
async def live_sale(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """One event's sale as it happens."""
    event = await own_event(platform, caller, event_id)
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    control = "sales:control" in caller.permissions
    room, one = _room(platform, event), shown(platform, event, venue)
    found = {
        "base": f"/v1/organiser/events/{event.id}",
        "map": _map(platform, event),
        "currency": event.currency,
        "first": await platform.organiser.live.latest(event.id),
        "history": platform.organiser.history.of(event.id),
        "room": room,
        "zone": one.zone,
        "tiers": {tier.key: tier.shown_name for tier in event.tiers},
    }
    return render(
        request,
        "organiser/live.html",
        script="js/organiser/live.js",
        of_event=event,
        one=one,
        found=found,
        room=room,
        control=control,
        tiles=TILES,
        health_tiles=HEALTH_TILES,
        spans=SPANS_MIN,
        most_message=MAX_MESSAGE_CHARS,
        acts=await _activity(request, platform, caller, event, one.zone) if AUDIT in caller.permissions else None,
    )


@page("/organiser/events/{event_id:str}/live/activity.json", "live_activity", Access.staff(AUDIT))
async def live_activity(
    request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]
) -> Response[bytes]:
    """What the team has changed, newest first, in the words of the page that asks for it now and then."""
    event = await own_event(platform, caller, event_id)
    zone = shown(platform, event, await platform.ledger.catalogue.venue(event.venue_id)).zone
    acts = await _activity(request, platform, caller, event, zone)
    return Response(msgspec.json.encode(acts), media_type="application/json", headers={"cache-control": "no-store"})


async def _activity(
    request: Asked, platform: Platform, caller: Caller, event: Event, zone: str
) -> list[dict[str, Any]]:
    """The last changes: when, what, who, and each detail as "name: from was to now"."""
    words = words_for(request)
    changes = await platform.ledger.organiser.changes(caller.organiser_id, event.id, 0, RECENT_ACTS)
    acts = await acts_of(platform, caller, changes, words, {event.id: event.currency})
    return [
        {
            "when": words.zoned(act.at_us, zone, short=True),
            "what": words(act.what),
            "who": act.who,
            "detail": [_told(each, words) for each in act.detail],
        }
        for act in acts
    ]


def _told(each: ActDetail, words: Words) -> str:
    now = each.now if each.was is None else words(FROM_TO, was=each.was, now=each.now)
    return words(DETAIL, name=each.name, value=now)


def _room(platform: Platform, event: Event) -> dict[str, Any] | None:
    """The current settings of the controls, if this server has the event's waiting room."""
    try:
        body = room_body(platform.room.service.control.view(event.id))
    except FrontrowError:
        return None
    return {name: body[name] for name in ("phase", "rate_per_s", "capacity", "message")}


def _map(platform: Platform, event: Event) -> str:
    seat_map = platform.box_office.openings.maps.get(event.id)
    return f"/v1/events/{event.id}/map/{seat_map.hash}.json" if seat_map is not None else ""


ROUTES: list[HTTPRouteHandler] = [live_sale, live_activity]
