"""Queue by identity (W8): one place for each person, however often they join; rank in O(log N); leave.

The window works as always, because a roster only adds who holds which position: in Redis a sorted set for each lane,
score = position (the order of arrival). Costs about 140 bytes for each person waiting; the anonymous stores cost none.
"""

from bisect import bisect_left
from typing import cast

from frontrow.waitingroom.stores.memory import MemoryStore
from frontrow.waitingroom.stores.redis import RedisStore, room_key, roster_key


class RosterMemoryStore(MemoryStore):
    """The memory store with one place for each person. Implements `RoomStore` and `Roster`."""

    one_place_per_person = True

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        room = self._room(event)
        held = room.people.get(person)
        if held is None or held.lane != lane:
            return None
        line, hi = room.lines[lane], room.state.lanes[lane].hi
        return max(0, bisect_left(line, held.position) - bisect_left(line, hi + 1))

    async def leave(self, event: str, lane: int, person: str) -> bool:
        room = self._room(event)
        held = room.people.get(person)
        if held is None or held.lane != lane:
            return False
        del room.people[person]
        line = room.lines[lane]
        line.pop(bisect_left(line, held.position))
        return True


class RosterRedisStore(RedisStore):
    """The Redis store with a sorted set of people for each lane. Implements `RoomStore` and `Roster`."""

    one_place_per_person = True

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        found = await self._run("rank", [room_key(event), roster_key(event, lane)], [lane, person])
        return None if found is None else int(found)

    async def leave(self, event: str, lane: int, person: str) -> bool:
        return cast(int, await self._send("ZREM", roster_key(event, lane), person)) == 1
