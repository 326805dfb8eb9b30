"""What organisers see and change, as JSON."""

from typing import Any, Literal

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom


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
        "interval_us": config.interval_us,
        "depth_cap": config.depth_cap,
        "message": config.message,
        "leader": view.leader,
        "is_leader": view.is_leader,
    }


async def patch_room(room: WaitingRoom, event: str, body: bytes) -> RoomView:
    """Apply a change; what cannot be right is refused before anything is changed."""
    try:
        change = _decode_change(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the change is not what is expected here: {error}", param="body") from None
    view = room.view(event)
    wanted = {name: getattr(change, name) for name in ("rate_per_s", "burst", "capacity", "message")}
    view.state.config.changed(**{name: value for name, value in wanted.items() if value is not None})
    if change.burst is not None and change.rate_per_s is None:
        raise InvalidInput("burst is changed together with rate_per_s", param="burst")
    if change.action == "open":
        view = await room.open(event, change.beacon)
    elif change.action is not None:
        act = {"pause": room.pause, "resume": room.resume, "queue_all": room.queue_all, "close": room.close}
        view = await act[change.action](event)
    if change.rate_per_s is not None:
        view = await room.set_rate(event, change.rate_per_s, change.burst)
    if change.capacity is not None:
        view = await room.set_capacity(event, change.capacity)
    if change.message is not None:
        view = await room.set_message(event, change.message)
    return view
