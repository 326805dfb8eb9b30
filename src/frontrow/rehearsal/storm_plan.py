"""What a storm does: the crowd of a `SalePlan`, against one server, within bounds. Values, validated on creation."""

import dataclasses
import os

from frontrow.core.errors import InvalidInput
from frontrow.rehearsal.http_client import Target
from frontrow.rehearsal.sale_plan import SalePlan

# People of a storm think faster than those of a rehearsal, so that a few minutes show whole purchases.
STORM_PLAN = SalePlan(
    people=1_000,
    before_s=0.0,
    after_s=30.0,
    reaction_s=1.0,
    browse_s=3.0,
    payment_s=3.0,
    patience_s=600.0,
    poll_s=5.0,
)
MAX_PEOPLE = 1_000_000
MAX_LENGTH_S = 3_600.0
MAX_CONNECTIONS = 50_000
MAX_REQUESTS_PER_S = 100_000.0
MAX_PROCESSES = 64


@dataclasses.dataclass(frozen=True, slots=True)
class StormPlan:
    """One storm. `pays` is false where the server would take real money: then fans give their seats back."""

    target: Target
    event_id: str
    sale: SalePlan = STORM_PLAN
    length_s: float = 120.0
    connections: int = 500
    requests_per_s: float = 2_000.0
    processes: int = dataclasses.field(default_factory=lambda: min(4, os.cpu_count() or 1))
    pays: bool = True

    def __post_init__(self) -> None:
        for name, low, high in _BOUNDS:
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidInput(f"{name} must be from {low:g} to {high:g}, not {value!r}", param=name)
        if self.sale.people > MAX_PEOPLE:
            raise InvalidInput(f"a storm has at most {MAX_PEOPLE:,} people, not {self.sale.people:,}", param="people")

    def changed(self, **changes: object) -> "StormPlan":
        """A copy with some figures changed, checked again."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


_BOUNDS = (
    ("length_s", 1.0, MAX_LENGTH_S),
    ("connections", 1, MAX_CONNECTIONS),
    ("requests_per_s", 1.0, MAX_REQUESTS_PER_S),
    ("processes", 1, MAX_PROCESSES),
)
