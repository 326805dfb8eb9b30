"""A room as the fields of one Redis hash (and of an audit row)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.window import Slide

_LANE_FIELDS = (("i", "issued"), ("h", "hi"), ("l", "lo"), ("d", "drawn"))
_NUMBERS = (
    ("epoch", "epoch"),
    ("released", "released"),
    ("idle_hi", "admitted_at_idle_end"),
    ("slide_no", "slide_no"),
    ("slid_at", "slid_at_us"),
    ("held_at", "held_at_us"),
    ("bucket", "bucket_milli"),
    ("bucket_at", "bucket_at_us"),
    ("message_no", "message_no"),
)


def ring_text(ring: Sequence[Slide]) -> str:
    return json.dumps([[s.number, s.at_us, list(s.his), s.size] for s in ring], separators=(",", ":"))


def ring_of(text: str | bytes) -> tuple[Slide, ...]:
    return tuple(Slide(number, at_us, tuple(his), size) for number, at_us, his, size in json.loads(text))


def config_fields(config: RoomConfig) -> dict[str, Any]:
    """The settings: all of them as JSON, and the few that the scripts read."""
    return {
        "config": config.to_json(),
        "n": len(config.lanes),
        "capacity": config.capacity,
        "interval": config.interval_us,
        "depth": config.depth_cap,
        "idle": config.idle_s,
        "leave": config.leave_s,
    }


def fields_of(state: RoomState) -> dict[str, Any]:
    """Every field except those with keys of their own (claims of slides, ends, chunks) and the current leader."""
    fields: dict[str, Any] = {name: getattr(state, attribute) for name, attribute in _NUMBERS}
    fields |= {"phase": state.phase.value, "ring": ring_text(state.ring), "note": state.note, "beacon": state.beacon}
    for index, lane in enumerate(state.lanes):
        fields |= {f"{name}{index}": getattr(lane, attribute) for name, attribute in _LANE_FIELDS}
    return fields | config_fields(state.config)


def state_of(fields: Mapping[str, str], took: Mapping[int, int], now_us: int, kept: int = 0) -> RoomState:
    """The room of these fields."""
    config = RoomConfig.from_json(fields["config"])
    lanes = tuple(
        LaneState(**{attribute: int(fields.get(f"{name}{index}", 0)) for name, attribute in _LANE_FIELDS})
        for index in range(len(config.lanes))
    )
    return RoomState(
        phase=Phase(fields["phase"]),
        config=config,
        lanes=lanes,
        active=int(fields.get("active", 0)),
        knocking=int(fields.get("knocking", 0)),
        ended_no=int(fields.get("ended_no", 0)),
        ring=ring_of(fields["ring"]),
        kept=kept,
        took=took,
        note=fields["note"],
        beacon=fields["beacon"],
        leader=fields.get("leader", ""),
        leader_until_us=int(fields.get("leader_until", 0)),
        now_us=now_us,
        **{attribute: int(fields.get(name, 0)) for name, attribute in _NUMBERS},
    )
