"""Which events issue tickets with rotating codes. A published event cannot change this, so the answer is cached."""

from typing import Final, Protocol

from frontrow.boxoffice.model.events import Event
from frontrow.core.errors import NotFound

MAX_CACHED: Final = 10_000  # events


class EventReader(Protocol):
    async def event(self, event_id: str) -> Event: ...


class RotatingCodes:
    """Reads the choice of an event once, then answers from memory."""

    def __init__(self, events: EventReader) -> None:
        self._events = events
        self._cached: dict[str, bool] = {}

    async def uses_rotating_codes(self, event_id: str) -> bool:
        """Whether the tickets of this event show a code that changes."""
        rotating = self._cached.get(event_id)
        if rotating is None:
            try:
                rotating = (await self._events.event(event_id)).rotating_codes
            except NotFound:  # sold without a catalogue: the default
                return False
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[event_id] = rotating
        return rotating
