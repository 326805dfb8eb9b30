"""What a check of an event's status found and changed."""

import msgspec

from frontrow.boxoffice.events.model.events import Event, EventMove


class EventStatusChange(msgspec.Struct, frozen=True):
    """An event after its status was checked, its free seats (None: its plan is unknown) and the move that was made."""

    event: Event
    free: int | None
    move: EventMove | None = None
