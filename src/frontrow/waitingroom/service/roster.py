"""The people in the queue of a room with one place per person (W8): their rank, and leaving the queue.

An anonymous room stores nothing per person, so it has no roster.
"""

from frontrow.core.errors import NotFound
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.ports import RoomStore
from frontrow.waitingroom.service.room_cache import RoomCache


class Roster:
    """Asks the store about people by their place. Every method raises NotFound for an anonymous room."""

    def __init__(self, *, store: RoomStore, cache: RoomCache, places: PlaceSigner) -> None:
        self._store = store
        self._cache = cache
        self._places = places

    async def rank(self, place_jwt: str) -> int | None:
        """How many people still in the queue are before this place; None if its person has left."""
        place = self._verify(place_jwt)
        return await self._store.rank(place.event, place.lane, place.person)

    async def leave(self, place_jwt: str) -> bool:
        """Leave the queue; True if the person was in it."""
        place = self._verify(place_jwt)
        return await self._store.leave(place.event, place.lane, place.person)

    def _verify(self, place_jwt: str) -> Place:
        place = self._places.verify(place_jwt)
        config = self._cache.find(place.event).state.config
        if not (self._store.one_place_per_person or config.one_place_per_person):
            raise NotFound("this room is anonymous: it has no roster")
        return place
