"""What organisers see and change over HTTP, as JSON: the room, its phase and settings, its fan codes."""

import hmac
from typing import Any, Literal

import msgspec

from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, Unauthorised
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.http.messages import EndpointRequest, EndpointResponse, Result, json_answer
from frontrow.web.http.request_bodies import check_size


class RoomChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body of PATCH room. `action` first, then the settings."""

    action: Literal["open", "pause", "resume", "queue_all", "close"] | None = None
    beacon: str = ""
    rate_per_s: int | None = None
    burst: int | None = None
    capacity: int | None = None
    message: str | None = None


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
        "depth_cap": config.depth_cap,
        "message": config.message,
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
    wanted = {name: getattr(change, name) for name in ("rate_per_s", "burst", "capacity", "message")}
    view.state.config.changed(**{name: value for name, value in wanted.items() if value is not None})
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
    return view


class OrganiserEndpoints:
    """Endpoints for the organiser of every room of this process; all of them need the organiser key."""

    def __init__(self, context: RoomContext, organiser_key: str) -> None:
        self._context = context
        self._room = context.room
        self._key = organiser_key.encode()

    def check_organiser(self, request: EndpointRequest) -> None:
        """Refuse everybody but the organiser, in constant time; without a key set, refuse everybody."""
        self._context.entry.count_ip(self._context.client_ip(request))
        given = request.header(b"authorization") or b""
        scheme, _, key = given.partition(b" ")
        if not self._key:
            raise Forbidden("no organiser key is set; start the room with FRONTROW_ROOM_ORGANISER_KEY")
        if not hmac.compare_digest(key.strip(), self._key) or scheme.lower() != b"bearer":
            raise Unauthorised("send the organiser key as a bearer token")

    def show_room(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """GET room: the organiser's view."""
        try:
            self.check_organiser(request)
            return json_answer(200, room_body(self._room.control.view(event)))
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)

    def change_room(self, event: str, request: EndpointRequest) -> Result:
        """PATCH room: open, pause, resume, queue-all, close; rate, capacity, message."""
        try:
            self.check_organiser(request)
            check_size(request)
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)
        return self._change_room(event, request)

    async def _change_room(self, event: str, request: EndpointRequest) -> EndpointResponse:
        try:
            return json_answer(200, room_body(await patch_room(self._room, event, request.body)))
        except FrontrowError as error:
            return self._context.problem("room", error, request, event)

    def import_codes(self, event: str, request: EndpointRequest) -> Result:
        """POST codes: the organiser's own fan codes as CSV, valid in every process from now on."""
        try:
            return self.import_lines(event, request, self.read_codes(request))
        except FrontrowError as error:
            return self._context.problem("codes", error, request, event)

    def read_codes(self, request: EndpointRequest) -> list[str]:
        """The lines of an organiser's CSV."""
        self.check_organiser(request)
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
