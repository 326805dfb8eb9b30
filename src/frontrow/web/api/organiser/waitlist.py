"""The waitlist of an event, for its organiser (B11): who waits, and its rules."""

from typing import Annotated

import msgspec
from litestar import get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.waitlist.model.waitlist import EntryState, WaitOrder
from frontrow.shared.local_time import time_text
from frontrow.web.api.organiser.parameters import Cursor, Limit
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.json_values import Time
from frontrow.web.http.cursors import next_of, read_number
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

WAITLIST = "/v1/organiser/events/{event_id:str}/waitlist"


class RulesAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The order of the waitlist; set once. The server makes a lottery's secret seed and publishes its hash at once."""

    order: WaitOrder


class RulesView(msgspec.Struct):
    order: str
    seed_hash: str


class OrganiserEntryView(msgspec.Struct):
    entry: str
    fan: str
    state: str
    seats: int
    sections: list[str]
    split_ok: bool
    offers_made: int
    lapses: int
    joined_at: Time


class EntryCount(msgspec.Struct):
    state: str
    entries: int
    seats: int


class WaitlistView(msgspec.Struct):
    """Entries in the order of joining, with counts per state."""

    rules: RulesView
    counts: list[EntryCount]
    entries: list[OrganiserEntryView]
    next: str | None = None


@get(WAITLIST, operation_id="get_own_waitlist", summary="The waitlist", opt={"access": Access.staff("bookings:read")})
async def get_own_waitlist(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    status: Annotated[EntryState | None, QueryParameter(description="only entries in this state")] = None,
    cursor: Cursor = "",
    limit: Limit = 50,
) -> WaitlistView:
    await own_event(platform, caller, event_id)
    state = status.value if status else ""
    page = await platform.organiser.waitlists.read_page(event_id, state, read_number(cursor), limit)
    return WaitlistView(
        RulesView(page.rules.order.value, page.rules.seed_hash),
        [EntryCount(name, entries, seats) for name, (entries, seats) in sorted(page.counts.items())],
        [
            OrganiserEntryView(
                one.id,
                one.fan,
                one.state.value,
                one.seat_count,
                list(one.sections),
                one.split_ok,
                one.offers_made,
                one.lapses,
                time_text(one.created_at_us),
            )
            for one in page.entries
        ],
        next_of(page.entries, limit, page.entries[-1].number if page.entries else None),
    )


@put(
    f"{WAITLIST}/rules",
    operation_id="set_waitlist_rules",
    summary="Set the order of the waitlist, once",
    opt={"access": Access.staff("events:write"), "problems": (409,)},
)
async def set_waitlist_rules(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[RulesAsked]
) -> RulesView:
    await own_event(platform, caller, event_id)
    rules = await platform.organiser.waitlists.set_order(editor_of(caller), event_id, data.order)
    return RulesView(rules.order.value, rules.seed_hash)


ROUTES: list[HTTPRouteHandler] = [get_own_waitlist, set_waitlist_rules]
