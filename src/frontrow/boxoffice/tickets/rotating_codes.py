"""Which events issue tickets with rotating codes. The choice is fixed once an event is published, so it is kept."""

from typing import Final, Protocol

from frontrow.boxoffice.model.events import Event
from frontrow.core.errors import NotFound

MAX_KEPT: Final = 10_000


class Events(Protocol):
    async def event(self, event_id: str) -> Event: ...


class RotatingCodes:
    """Answers from memory after the first question about an event."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._known: dict[str, bool] = {}

    async def of(self, event_id: str) -> bool:
        """Whether this event's tickets show a code that changes."""
        known = self._known.get(event_id)
        if known is None:
            try:
                known = (await self._events.event(event_id)).rotating_codes
            except NotFound:  # sold without a catalogue: nothing was chosen
                return False
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            self._known[event_id] = known
        return known
