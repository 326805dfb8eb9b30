"""For organisers: control of the waiting room (W6, B13), and the event's waitlist with its rules."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import get, patch, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.waitlist.model.waitlist import EntryState, WaitOrder
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, own_event
from frontrow.web.api.organiser.common import Cursor, Limit, editor_of, next_of, read_number
from frontrow.web.endpoints.json_values import Time, time_text
from frontrow.web.endpoints.room_control import patch_room, room_body

ROOM = "/v1/organiser/events/{event_id:str}/room"
WAITLIST = "/v1/organiser/events/{event_id:str}/waitlist"
Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class RoomAsked(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`action` is applied first, then the settings. `burst` is changed together with `rate_per_s`."""

    action: Literal["open", "pause", "resume", "queue_all", "close"] | None = None
    beacon: Annotated[str, msgspec.Meta(max_length=200)] = ""
    rate_per_s: Count | None = None
    burst: Count | None = None
    capacity: Count | None = None
    message: Annotated[str, msgspec.Meta(max_length=280, examples=["Doors open soon"])] | None = None


class LaneView(msgspec.Struct):
    name: str
    weight: int
    issued: int
    hi: int
    lo: int


class OwnRoomView(msgspec.Struct):
    """The room as its organiser sees it."""

    event: str
    phase: Annotated[str, msgspec.Meta(examples=["open"])]
    epoch: int
    lanes: list[LaneView]
    waiting: int
    active: int
    unclaimed: int
    show_rate: float
    capacity: int
    rate_per_s: int
    burst: int
    window_size: int
    min_slide: int
    depth_cap: int
    message: str
    admitted_per_1000_s: list[int]


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


@get(ROOM, operation_id="get_own_room", summary="The waiting room", opt={"access": Access.staff("figures:read")})
async def get_own_room(platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> OwnRoomView:
    await own_event(platform, caller, event_id)
    return _room(room_body(platform.room.service.control.view(event_id)))


@patch(
    ROOM,
    operation_id="steer_room",
    summary="Open, pause, resume, queue everybody, close; rate, capacity, message",
    opt={"access": Access.staff("sales:control"), "problems": (409,)},
)
async def steer_room(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[RoomAsked]
) -> OwnRoomView:
    await own_event(platform, caller, event_id)
    asked = msgspec.json.encode(data)
    view = await patch_room(platform.room.service, event_id, asked)
    detail: dict[str, Any] = msgspec.json.decode(asked)
    await platform.ledger.organiser.note(Change(editor_of(caller), "steer_room", event_id, platform.clock(), detail))
    return _room(room_body(view))


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


def _room(body: dict[str, Any]) -> OwnRoomView:
    wanted = {name: body[name] for name in OwnRoomView.__struct_fields__}
    return msgspec.convert(wanted, OwnRoomView)


ROUTES: list[HTTPRouteHandler] = [get_own_room, steer_room, get_own_waitlist, set_waitlist_rules]
