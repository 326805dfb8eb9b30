"""The settings of a room: window, rate, capacity, lanes. Values only, validated on creation, stored as JSON."""

import dataclasses
import functools
import json
import re
from enum import StrEnum
from typing import Any

from frontrow.core.errors import InvalidInput

EVENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,34}")
MAX_LANES = 3
MAX_MESSAGE_CHARS = 280
MAX_NUMBER = 10**9
MAX_TIME_US = 10**17


class Phase(StrEnum):
    """What a room does now."""

    PREQUEUE = "prequeue"  # before the opening: people join, and the opening draws their order
    OPEN = "open"
    PAUSED = "paused"  # nobody new is admitted; active places can still be claimed
    QUEUE_ALL = "queue_all"  # everybody waits, also active places
    CLOSED = "closed"  # no joins, no admissions


@dataclasses.dataclass(frozen=True, slots=True)
class LaneRule:
    """One priority lane. Lanes share admissions by weight while they have people waiting."""

    name: str
    weight: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class RoomConfig:
    """The organiser's settings of one room.

    A slide happens every `interval_us` and admits at most `window_size` people, at most what the bucket (`rate_per_s`,
    `burst`) permits and what fits `capacity`. After a time without a leader, the next slide makes up for the windows
    that fell due during the last `catch_up_us`, and for at least one. With `active_windows` set, that many slides are
    active; otherwise each slide stays active for `grace_us`.
    """

    capacity: int = 1_000
    shared_capacity: int = 0  # of a shard: the capacity of all shards together
    window_size: int = 100
    interval_us: int = 1_000_000
    rate_per_s: int = 100_000
    burst: int = 100_000
    active_windows: int = 0
    grace_us: int = 300_000_000
    catch_up_us: int = 1_000_000
    min_slide: int = 1  # slides are skipped while fewer people wait; equal to window_size: whole windows only
    lanes: tuple[LaneRule, ...] = (LaneRule("general"),)
    pass_ttl_s: int = 900
    max_stay_s: int = 3_600
    idle_s: int = 0  # a visit ends after so long without a request, if others wait; 0: only its pass ends it
    leave_s: int = 10  # a visit ends so long after its page was closed, unless the visitor makes a request
    depth_cap: int = 0  # more people waiting than this get the overflow page; 0: no cap
    message: str = ""
    draw_salt: str = ""  # makes each sale's draw different; filled in when the room is created
    codes_until_us: int = 0  # the end of a presale, in which only people with a code may join; 0: no presale
    one_place_per_person: bool = False  # everybody must sign in, and gets the same place again
    max_p95_ms: int = 0  # hold the shop's reported p95 under this (`inflow`); 0: the settings alone decide
    max_error_percent: int = 5  # of the shop's requests; more counts as too slow
    min_capacity: int = 10  # the fewest people in the shop at once, whatever the reports say

    def __post_init__(self) -> None:
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise InvalidInput(f"{name} must be a whole number from {low} to {high}, not {value!r}", param=name)
        if not 1 <= len(self.lanes) <= MAX_LANES or len({lane.name for lane in self.lanes}) != len(self.lanes):
            raise InvalidInput(f"a room has 1 to {MAX_LANES} lanes with different names", param="lanes")
        if any(not 1 <= lane.weight <= 1000 or not EVENT_NAME.fullmatch(lane.name) for lane in self.lanes):
            raise InvalidInput("a lane has a plain name and a weight from 1 to 1000", param="lanes")
        if len(self.message) > MAX_MESSAGE_CHARS:
            raise InvalidInput(f"message has at most {MAX_MESSAGE_CHARS} characters", param="message")
        if self.max_stay_s < self.pass_ttl_s:
            raise InvalidInput("max_stay_s must not be below pass_ttl_s", param="max_stay_s")

    @property
    def most_windows(self) -> int:
        """The most windows that one slide admits, however many intervals have passed since the last one."""
        return max(1, self.catch_up_us // self.interval_us)

    def lane_index(self, name: str) -> int:
        """Which lane has this name."""
        for index, lane in enumerate(self.lanes):
            if lane.name == name:
                return index
        raise InvalidInput(f"lane {name!r} is not one of {', '.join(x.name for x in self.lanes)}", param="lane")

    def changed(self, **changes: Any) -> "RoomConfig":
        """A copy with some settings changed, checked again."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """The settings as text. Unused settings of newer versions are left out, so that older servers can read it."""
        fields = {name: value for name in _FIELDS if (value := getattr(self, name)) != _ADDED.get(name)}
        fields["lanes"] = [{"name": lane.name, "weight": lane.weight} for lane in self.lanes]
        return json.dumps(fields, separators=(",", ":"), sort_keys=True)

    @classmethod
    @functools.lru_cache(maxsize=4096)  # a room is read often, and its settings rarely change
    def from_json(cls, text: str | bytes) -> "RoomConfig":
        fields = json.loads(text)
        fields["lanes"] = tuple(LaneRule(**lane) for lane in fields["lanes"])
        return cls(**fields)


_FIELDS = tuple(field.name for field in dataclasses.fields(RoomConfig))
_ADDED: dict[str, Any] = {
    "codes_until_us": 0,
    "one_place_per_person": False,
    "idle_s": 0,
    "leave_s": 10,
    "catch_up_us": 1_000_000,
    "max_p95_ms": 0,
    "max_error_percent": 5,
    "min_capacity": 10,
}

_BOUNDS = (
    ("capacity", 0, MAX_NUMBER),
    ("shared_capacity", 0, MAX_NUMBER),
    ("window_size", 1, MAX_NUMBER),
    ("interval_us", 1_000, 3_600_000_000),
    ("rate_per_s", 0, MAX_NUMBER),
    ("burst", 1, MAX_NUMBER),
    ("active_windows", 0, 64),
    ("grace_us", 1_000_000, 86_400_000_000),
    ("catch_up_us", 0, 3_600_000_000),
    ("min_slide", 1, MAX_NUMBER),
    ("pass_ttl_s", 1, 86_400),
    ("max_stay_s", 1, 604_800),
    ("depth_cap", 0, MAX_NUMBER),
    ("codes_until_us", 0, MAX_TIME_US),
    ("idle_s", 0, 86_400),
    ("leave_s", 1, 3_600),
    ("max_p95_ms", 0, 600_000),
    ("max_error_percent", 1, 100),
    ("min_capacity", 1, MAX_NUMBER),
)


def check_event(event: str) -> str:
    """`event` if it can name a room: it becomes part of store keys and paths."""
    if not EVENT_NAME.fullmatch(event):
        raise InvalidInput("an event is named by 1 to 35 letters, digits, dots, dashes or underscores", param="event")
    return event
