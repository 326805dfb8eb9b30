"""Queue by identity (W8): one place for each person, however often they join; rank in O(log N); leave.

The window works as always, because a roster only adds who holds which position: in Redis a sorted set for each lane,
score = position (the order of arrival). Costs about 140 bytes for each person waiting; the anonymous stores cost none.
These stores do it for every room; the others for rooms whose settings say `one_place_per_person`.
"""

from frontrow.waitingroom.stores.memory import MemoryStore
from frontrow.waitingroom.stores.redis import RedisStore


class RosterMemoryStore(MemoryStore):
    """The memory store with one place for each person in every room."""

    one_place_per_person = True


class RosterRedisStore(RedisStore):
    """The Redis store with a sorted set of people for each lane of every room."""

    one_place_per_person = True
