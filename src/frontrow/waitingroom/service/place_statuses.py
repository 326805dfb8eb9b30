"""The status of a place: its state, its position, how many people are ahead and how long the wait is.

A status needs no store call: it follows from the verified place and the room's last state in the cache.
"""

from frontrow.waitingroom.credentials.places import PlaceSigner
from frontrow.waitingroom.model.results import PlaceStatus
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.service.room_cache import RoomCache


class PlaceStatuses:
    """Reads places. Every method raises PlaceInvalid, PlaceForeign or RoomUnknown."""

    def __init__(self, places: PlaceSigner, cache: RoomCache) -> None:
        self._places = places
        self._cache = cache
        self._rooms = cache.rooms

    def of(self, place_jwt: str, event: str | None = None) -> PlaceStatus:
        """The status of a place."""
        place = self._places.verify(place_jwt, event)
        return self._cache.find(place.event).status(place)

    def json_of(self, place_jwt: str, event: str | None = None) -> bytes:
        """The JSON body of `of`, made faster."""
        place = self._places.recent.get(place_jwt)
        if place is None or place.event != event:
            place = self._places.verify(place_jwt, event)
        return (self._rooms.get(place.event) or self._cache.find(place.event)).status_json(place)

    def key_of(self, place_jwt: str, event: str | None = None) -> PlaceKey:
        """The key of a place in the store."""
        place = self._places.verify(place_jwt, event)
        return PlaceKey(place.lane, place.epoch, self._cache.find(place.event).position_of(place))
