"""What a check of an event's status found and changed, and when few seats are left."""

from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import Event, EventMove

FEW_PERCENT: Final = 5


class EventStatusChange(msgspec.Struct, frozen=True):
    """An event after its status was checked, its free seats (None: its plan is unknown) and the move that was made."""

    event: Event
    free: int | None
    move: EventMove | None = None


def is_nearly_sold_out(free: int, size: int) -> bool:
    """Whether a page says that few seats are left."""
    return free * 100 <= size * FEW_PERCENT
