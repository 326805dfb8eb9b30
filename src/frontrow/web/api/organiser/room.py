"""Control of the waiting room, for organisers (W6, B13)."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import get, patch
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.waitingroom.model.config import MAX_MESSAGE_CHARS, RoomConfig
from frontrow.web.endpoints.room.organiser import patch_room, room_body
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

ROOM = "/v1/organiser/events/{event_id:str}/room"
WINDOWS = ("window_size", "interval_us", "min_slide", "active_windows", "grace_us", "catch_up_us")
SETTINGS = ("rate_per_s", "burst", "capacity", "message", *WINDOWS)
Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Microseconds = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class RoomAsked(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`action` is applied first, then the settings. `burst` is changed together with `rate_per_s`. `window_size` people
    are called per `interval_us`. With `active_windows` (2 or more) so many windows enter, else each for `grace_us`.
    """

    action: Literal["open", "pause", "resume", "queue_all", "close"] | None = None
    beacon: Annotated[str, msgspec.Meta(max_length=200)] = ""
    rate_per_s: Count | None = None
    burst: Count | None = None
    capacity: Count | None = None
    message: Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE_CHARS, examples=["Doors open soon"])] | None = None
    window_size: Count | None = None
    interval_us: Microseconds | None = None
    min_slide: Count | None = None
    active_windows: Count | None = None
    grace_us: Microseconds | None = None
    catch_up_us: Microseconds | None = None


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
    interval_us: int
    active_windows: int
    grace_us: int
    catch_up_us: int
    depth_cap: int
    message: str
    admitted_per_1000_s: list[int]


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
    before = platform.room.service.control.view(event_id).state.config
    view = await patch_room(platform.room.service, event_id, asked)
    detail = _steered(msgspec.json.decode(asked), before)
    await platform.organiser.log.note(editor_of(caller), "steer_room", event_id, detail)
    return _room(room_body(view))


def _steered(asked: dict[str, Any], before: RoomConfig) -> dict[str, Any]:
    """What the audit says of a change: the action, and each setting from what to what."""
    changes = {name: [getattr(before, name), given] for name, given in asked.items() if name in SETTINGS}
    rest = {name: given for name, given in asked.items() if name not in SETTINGS}
    return rest | ({"changes": changes} if changes else {})


def _room(body: dict[str, Any]) -> OwnRoomView:
    wanted = {name: body[name] for name in OwnRoomView.__struct_fields__}
    return msgspec.convert(wanted, OwnRoomView)


ROUTES: list[HTTPRouteHandler] = [get_own_room, steer_room]
