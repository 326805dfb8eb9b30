"""The seats of an organiser's event for the maps of its box office: geometry, prices, and which seats are not free."""

from collections.abc import Sequence
from typing import Final

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.seats.event_map import map_bytes
from frontrow.boxoffice.seats.formats.plan_document import to_bytes, to_document
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.organiser.events.event_steps import ONE, OrganiserEvent, load_event
from frontrow.web.site.render import PRIVATE
from frontrow.web.site.routes import page

READS: Final = Access.staff("events:read")


def seating_response(one: OrganiserEvent, taken: Sequence[int]) -> Response[bytes]:
    """The map as fans get it, the seats that are not sold (`kept`) and those that somebody has (`taken`)."""
    priced = {tier.key for tier in one.event.tiers}
    if priced >= set(one.plan.tiers):
        drawn = map_bytes(one.plan, one.event)
    else:
        nothing = {key: {"name": key, "price": 0, "cur": one.event.currency} for key in one.plan.tiers}
        drawn = to_bytes(to_document(one.plan, prices=nothing, refs=False))
    kept, gone = msgspec.json.encode(sorted(one.event.withheld)), msgspec.json.encode(taken)
    body = b'{"map":' + drawn + b',"kept":' + kept + b',"taken":' + gone + b"}"
    return Response(body, headers={"cache-control": PRIVATE}, media_type="application/json")


@page(f"{ONE}/seating.json", "event_seating", READS)
async def seating(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """The seating as it is now."""
    one = await load_event(platform, caller, event_id)
    taken = [seat.seat_index async for seat in platform.ledger.active_seats(one.event.id, platform.clock())]
    return seating_response(one, taken)


ROUTES: list[HTTPRouteHandler] = [seating]
