"""Direct entry to a shop without a queue: join, be admitted and claim the pass in one call.

The place is an ordinary one at the end of the queue, and the ordinary slide admits it, so nobody is overtaken. If
people are waiting, or the slide does not come within a moment, the caller keeps the place and waits in the room.
"""

import asyncio

from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.model.results import Entered
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.service.joins import Joins
from frontrow.waitingroom.service.room_cache import CachedRoom, RoomCache
from frontrow.waitingroom.service.visits import Visits

ENTER_WITHIN_S = 1.5  # longer than the usual interval between two slides


class DirectEntry:
    """Admits people who need not wait. `within_s` bounds the wait for the next slide."""

    def __init__(
        self,
        *,
        joins: Joins,
        visits: Visits,
        cache: RoomCache,
        places: PlaceSigner,
        within_s: float = ENTER_WITHIN_S,
    ) -> None:
        self._joins = joins
        self._visits = visits
        self._cache = cache
        self._places = places
        self.within_s = within_s

    async def enter(self, event: str, person: str = "", ip: str = "", cnf: str | None = None) -> Entered:
        """A place, and its pass if nobody has to wait. Raises as a join without a code does. Once the place is issued
        nothing is raised: without a pass the caller waits in the room."""
        joined = await self._joins.join(event, person, ip, cnf=cnf)
        place = self._places.verify(joined.place_jwt, event)
        try:
            if not await self._is_admitted(self._cache.find(event), place):
                return Entered(joined)
            return Entered(joined, await self._visits.claim_place(place))
        except FrontrowError:
            return Entered(joined)

    async def _is_admitted(self, room: CachedRoom, place: Place) -> bool:
        """Whether the place becomes active within `within_s`. If people are waiting, False at once."""
        moved = asyncio.Event()
        stop = room.subscribe(lambda _: moved.set())
        try:
            async with asyncio.timeout(self.within_s):
                while room.status(place).state is PlaceState.WAITING:
                    if not room.has_no_line():
                        return False
                    room.hurry()
                    await moved.wait()
                    moved.clear()
        except TimeoutError:
            return False
        finally:
            stop()
        return room.status(place).state is PlaceState.ACTIVE
