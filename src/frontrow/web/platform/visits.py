"""The visits of the waiting room as the box office asks for them: kept while a hold lives, ended after a purchase."""

import contextlib
from collections.abc import Sequence

from frontrow.core.clock import US_PER_S
from frontrow.waitingroom.credentials.passes import Pass, place_of
from frontrow.waitingroom.model.errors import RoomUnknown
from frontrow.waitingroom.service.room import WaitingRoom


class RoomVisits:
    """Implements `boxoffice.checkout.ports.KeptVisits`. A booking names its visit by `Pass.id`."""

    def __init__(self, room: WaitingRoom) -> None:
        self._room = room

    def visited(self) -> list[str]:
        """The events whose shop somebody is in."""
        return [event_id for event_id, room in self._room.cache.rooms.items() if room.state.active or room.state.kept]

    def is_mine(self, event_id: str) -> bool:
        room = self._room.cache.rooms.get(event_id)
        if room is None or room.state.leader != self._room.leader.owner:
            return False
        return bool(room.state.active or room.state.kept)

    async def kept(self, event_id: str) -> Sequence[tuple[str, int, str]]:
        found = await self._room.store.kept(event_id)
        now_s = self._room.clock() // US_PER_S
        return [(Pass(event_id, "", one.place, now_s, now_s, now_s).id, one.until_s, one.hold) for one in found]

    async def keep(self, visit: str, until_s: int, booking_id: str) -> None:
        with contextlib.suppress(ValueError, RoomUnknown):  # made beside the room: by an offer, an import, a test
            place_of(visit)
            await self._room.visits.keep(visit, until_s, booking_id)

    async def end(self, visit: str) -> None:
        await self._room.visits.end_visit(visit)
