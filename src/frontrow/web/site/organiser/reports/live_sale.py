"""The live sale (B13, B19): what happens now and in the last hour, section by section, and the controls of the queue.

It leads with the money, what is sold by price, and who is let in and waiting, with a forecast of when it is sold out.
What operators watch (response times, payments) is folded into "System health". Times are the venue's.
The page brings the last hour and the first frame along; its script follows `figures/live` and steers by the same API
that programs use. What can be steered is shown only to who may.
"""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.events import Event
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import MAX_MESSAGE_CHARS
from frontrow.web.endpoints.room.organiser import room_body
from frontrow.web.http.access import Access
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import shown
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.organisation.change_log import acts_of
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import page

Asked = Request[Any, Any, Any]
RECENT_ACTS: Final = 6
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
    changes = []
    if "audit:read" in caller.permissions:
        changes = await platform.ledger.organiser.changes(caller.organiser_id, event.id, 0, RECENT_ACTS)
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
        most_message=MAX_MESSAGE_CHARS,
        acts=await acts_of(platform, caller, changes, words_for(request), {event.id: event.currency}),
    )


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


ROUTES: list[HTTPRouteHandler] = [live_sale]
