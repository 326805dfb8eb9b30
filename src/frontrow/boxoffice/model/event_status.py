"""What a check of an event's status found and changed."""

import msgspec

from frontrow.boxoffice.model.events import Event, EventMove


class SettledEvent(msgspec.Struct, frozen=True):
    """An event as it is after the look, its free seats (None: its plan is not known) and the move that was made."""

    event: Event
    free: int | None
    move: EventMove | None = None
