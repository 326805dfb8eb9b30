"""What organisers see and change over HTTP, as JSON: the room, its phase and settings, its fan codes."""

import hmac
from typing import Any, Literal

import msgspec

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, Unauthorised
from frontrow.waitingroom.console.model.owners import Scope
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, Result, json_answer
from frontrow.web.http.request_bodies import check_size


class RoomChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body of PATCH room. `action` first, then the settings, each by its name in `RoomConfig`."""

    action: Literal["open", "pause", "resume", "queue_all", "close"] | None = None
    beacon: str = ""
    rate_per_s: int | None = None
    burst: int | None = None
    capacity: int | None = None
    message: str | None = None
    window_size: int | None = None
    interval_us: int | None = None
    min_slide: int | None = None
    active_windows: int | None = None
    grace_us: int | None = None
    catch_up_us: int | None = None
    pass_ttl_s: int | None = None
    max_stay_s: int | None = None
    idle_s: int | None = None
    leave_s: int | None = None
    depth_cap: int | None = None
    max_p95_ms: int | None = None
    max_error_percent: int | None = None
    min_capacity: int | None = None

    def settings(self) -> dict[str, Any]:
        """The settings that are given."""
        named = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("action", "beacon")}
        return {name: value for name, value in named.items() if value is not None}


# What has a method of its own, which a queue over several stores answers in its own way.
_BY_METHOD = ("rate_per_s", "burst", "capacity", "message")
_decode_change = msgspec.json.Decoder(RoomChange).decode


def room_body(view: RoomView) -> dict[str, Any]:
    """The organiser's view of a room."""
    state, config = view.state, view.state.config
    lanes = [
        {"name": rule.name, "weight": rule.weight, "issued": lane.issued, "hi": lane.hi, "lo": lane.lo}
        for rule, lane in zip(config.lanes, state.lanes, strict=True)
    ]
    return {
        "event": view.event,
        "phase": state.phase,
        "epoch": state.epoch,
        "lanes": lanes,
        "waiting": view.waiting,
        "active": state.active,
        "unclaimed": view.unclaimed,
        "show_rate": view.show_rate,
        "admitted_per_1000_s": view.rates_milli,
        "slide_no": state.slide_no,
        "capacity": config.capacity,
        "rate_per_s": config.rate_per_s,
        "burst": config.burst,
        "window_size": config.window_size,
        "min_slide": config.min_slide,
        "interval_us": config.interval_us,
        "active_windows": config.active_windows,
        "grace_us": config.grace_us,
        "catch_up_us": config.catch_up_us,
        "pass_ttl_s": config.pass_ttl_s,
        "max_stay_s": config.max_stay_s,
        "idle_s": config.idle_s,
        "leave_s": config.leave_s,
        "depth_cap": config.depth_cap,
        "message": config.message,
        "max_p95_ms": config.max_p95_ms,
        "max_error_percent": config.max_error_percent,
        "min_capacity": config.min_capacity,
        "shop": None
        if view.inflow is None
        else {
            "limit": min(config.capacity, view.inflow.limit),
            "p95_ms": view.inflow.p95_ms,
            "reporters": view.inflow.reporters,
        },
        "leader": view.leader,
        "is_leader": view.is_leader,
    }


async def patch_room(room: WaitingRoom, event: str, body: bytes) -> RoomView:
    """Apply a change. An invalid one is refused before anything is changed."""
    try:
        change = _decode_change(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the change is not what is expected here: {error}", param="body") from None
    view = room.control.view(event)
    view.state.config.changed(**change.settings())
    others = {name: value for name, value in change.settings().items() if name not in _BY_METHOD}
    if change.burst is not None and change.rate_per_s is None:
        raise InvalidInput("burst is changed together with rate_per_s", param="burst")
    if change.action == "open":
        view = await room.control.open(event, change.beacon)
    elif change.action is not None:
        view = await getattr(room.control, change.action)(event)  # actions are named as the methods
    if change.rate_per_s is not None:
        view = await room.control.set_rate(event, change.rate_per_s, change.burst)
    if change.capacity is not None:
        view = await room.control.set_capacity(event, change.capacity)
    if change.message is not None:
        view = await room.control.set_message(event, change.message)
    if others:
        view = await room.control.configure(event, **others)
    return view


class OrganiserEndpoints:
    """Endpoints for the organiser of every room of this process; all of them need the organiser key."""

    def __init__(self, context: RoomContext, organiser_key: str) -> None:
        self._context = context
        self._room = context.room
        self._key = organiser_key.encode()

    def check_organiser(self, request: EndpointRequest, event: str, scope: Scope) -> str:
        """Refuse everybody but the organiser and keys of the console with this scope; the name of the key. The
        organiser's own key is compared in constant time."""
        self._context.entry.count_ip(self._context.client_ip(request))
        given = request.header(b"authorization") or b""
        scheme, _, key = given.partition(b" ")
        if self._context.console is not None and scheme.lower() == b"bearer":
            made = self._context.console[1].key_of(key.strip().decode("latin-1"))
            if made is not None and not made.allows(scope, event):
                raise Forbidden(f"this key does not include {scope.value} of this room")
            if made is not None:
                return made.name
        if not self._key and self._context.console is None:
            raise Forbidden("no organiser key is set; start the room with FRONTROW_ROOM_ORGANISER_KEY")
        if not self._key or not hmac.compare_digest(key.strip(), self._key) or scheme.lower() != b"bearer":
            raise Unauthorised("send the organiser key as a bearer token")
        return "organiser key"

    def show_room(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET room: the organiser's view."""
        try:
            self.check_organiser(request, event, Scope.ROOM_READ)
            return json_answer(200, room_body(self._room.control.view(event)))
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)

    def change_room(self, event: str, request: EndpointRequest) -> Result:
        """PATCH room: open, pause, resume, queue-all, close; rate, capacity, message."""
        try:
            who = self.check_organiser(request, event, Scope.ROOM_WRITE)
            check_size(request)
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)
        return self._change_room(event, request, who)

    async def _change_room(self, event: str, request: EndpointRequest, who: str) -> EndpointResponse:
        try:
            if self._context.console is not None:
                await self._context.console[0].log(
                    f"key {who}", "change_by_key", event, request.body.decode("utf-8", "replace")
                )
            return json_answer(200, room_body(await patch_room(self._room, event, request.body)))
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)

    def import_codes(self, event: str, request: EndpointRequest) -> Result:
        """POST codes: the organiser's own fan codes as CSV, valid in every process from now on."""
        try:
            return self.import_lines(event, request, self.read_codes(event, request))
        except FrontrowError as error:
            return self._context.problem("codes", error, request, event)

    def read_codes(self, event: str, request: EndpointRequest) -> list[str]:
        """The lines of an organiser's CSV."""
        self.check_organiser(request, event, Scope.ROOM_WRITE)
        try:
            return request.body.decode().splitlines()
        except UnicodeDecodeError:
            raise InvalidInput("the file is not UTF-8", param="body") from None

    async def import_lines(self, event: str, request: EndpointRequest, lines: list[str]) -> EndpointResponse:
        """The answer to `import_codes`, for lines already read."""
        try:
            return json_answer(200, {"imported": await self._room.joins.import_codes(event, lines)})
        except FrontrowError as error:
            return self._context.problem("codes", error, request, event)
