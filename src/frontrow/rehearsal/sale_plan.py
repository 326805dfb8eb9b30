"""The sale to rehearse: who comes, what they do, what goes wrong. Values only, validated on creation.

Each figure has a default that fits a large concert. `SalePlan.from_dict` reads the table `[rehearsal]` of a
frontrow.toml; the room's own settings come as a `RoomConfig`, exactly as the server uses them.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model.config import RoomConfig

MAX_PEOPLE = 50_000_000
MAX_LENGTH_S = 86_400.0


class ArrivalShape:
    """How people come. `SPIKE`: most are there before the opening. `STEADY`: evenly. `BOTS`: a spike led by bots."""

    SPIKE = "spike"
    STEADY = "steady"
    BOTS = "bots"
    ALL = (SPIKE, STEADY, BOTS)


@dataclasses.dataclass(frozen=True, slots=True)
class Outage:
    """Something is away from `start_s` for `length_s` seconds after the opening."""

    start_s: float = 0.0
    length_s: float = 0.0

    @property
    def end_s(self) -> float:
        return self.start_s + self.length_s


DEFAULT_ROOM = RoomConfig(capacity=5_000, window_size=500)


@dataclasses.dataclass(frozen=True, slots=True)
class SalePlan:
    """One sale to rehearse. Times are in seconds; the opening is at 0."""

    room: RoomConfig = DEFAULT_ROOM
    seats: int = 50_000
    seats_per_booking: int = 6
    hold_s: float = 600.0
    people: int = 1_000_000
    arrivals: str = ArrivalShape.SPIKE
    before_s: float = 1_800.0  # how long before the opening people begin to gather
    after_s: float = 3_600.0  # until when people still arrive
    early_share: float = 0.6  # of the spike: who is there before the opening
    bots: float = 0.0  # share of all identities in the line that belong to bots
    bots_stopped: float = 0.0  # share of those that the human check keeps out
    patience_s: float = 5_400.0  # the median time somebody stays in the line
    reaction_s: float = 6.0  # the mean time from being admitted to coming in
    browse_s: float = 45.0  # the median time to pick seats
    payment_s: float = 60.0  # the median time from hold to payment
    leave_without_buying: float = 0.10  # comes in, looks, goes
    abandon_hold: float = 0.05  # holds seats and never pays
    payment_fails: float = 0.04
    group_weights: tuple[float, ...] = (0.22, 0.48, 0.10, 0.20)  # of 1, 2, 3 … seats
    provider_outage: Outage = Outage()
    server_outage: Outage = Outage()  # nobody is admitted and nobody comes in
    poll_s: float = 10.0  # how often a waiting page asks
    seed: int = 1

    def __post_init__(self) -> None:
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInput(f"{name} must be from {low:g} to {high:g}, not {value!r}", param=name)
        if self.arrivals not in ArrivalShape.ALL:
            shapes = ", ".join(ArrivalShape.ALL)
            raise InvalidInput(f"arrivals must be one of {shapes}, not {self.arrivals!r}", param="arrivals")
        if not self.group_weights or min(self.group_weights) < 0 or sum(self.group_weights) <= 0:
            raise InvalidInput(
                "group_weights needs a weight for each group size, like [0.3, 0.7]", param="group_weights"
            )
        if len(self.room.lanes) != 1:
            raise InvalidInput("a rehearsal has one lane; leave out room.lanes", param="lanes")

    def changed(self, **changes: Any) -> "SalePlan":
        """A copy with some figures changed, checked again."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], room: RoomConfig | None = None) -> "SalePlan":
        """The plan in a TOML table; unknown names are refused."""
        names = {field.name for field in dataclasses.fields(cls)} - {"room"}
        for name in table:
            if name not in names:
                raise InvalidInput(
                    f"{name!r} is not a setting of a rehearsal; there are {', '.join(sorted(names))}", param=name
                )
        values = dict(table)
        for name in ("provider_outage", "server_outage"):
            if name in values:
                values[name] = _read_outage(name, values[name])
        if "group_weights" in values:
            values["group_weights"] = tuple(values["group_weights"])
        return cls(room=room or DEFAULT_ROOM, **values)


def _read_outage(name: str, value: Any) -> Outage:
    try:
        return Outage(float(value["start_s"]), float(value["length_s"]))
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{name} is like {{start_s = 300, length_s = 60}}", param=name) from None


_BOUNDS = (
    ("seats", 1, 10_000_000),
    ("seats_per_booking", 1, 100),
    ("hold_s", 10, 86_400),
    ("people", 1, MAX_PEOPLE),
    ("before_s", 0, MAX_LENGTH_S),
    ("after_s", 1, MAX_LENGTH_S),
    ("early_share", 0, 1),
    ("bots", 0, 0.99),
    ("bots_stopped", 0, 1),
    ("patience_s", 1, MAX_LENGTH_S),
    ("reaction_s", 0, 3_600),
    ("browse_s", 0.1, 3_600),
    ("payment_s", 0.1, 3_600),
    ("leave_without_buying", 0, 1),
    ("abandon_hold", 0, 1),
    ("payment_fails", 0, 1),
    ("poll_s", 1, 3_600),
    ("seed", 0, 2**63),
)
