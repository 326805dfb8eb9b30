"""Sharding of a queue by key (W11): one event's queue spread over several rooms, each in a Redis or slot of its own.

Each shard is a complete room (`<event>.<n>`) with its own positions, window, leader and a slice of the capacity. Shards
share nothing, so a failed one affects only its own people. A person always gets the same shard (rendezvous hashing).
Places name the shard's room, so status, claim and pass need no lookup. `rebalance` moves unused capacity to shards
where people wait: it cuts slices first and then raises others by what was freed, so the sum never exceeds the whole.
"""

import hashlib
import secrets
from collections.abc import Sequence

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom

MAX_SHARDS = 64


def shard_of(key: str, shards: int) -> int:
    """The shard of a key. With one more shard, 1/(n+1) of the keys move."""
    weights = [hashlib.blake2s(f"{shard}\n{key}".encode(), digest_size=8).digest() for shard in range(shards)]
    return max(range(shards), key=weights.__getitem__)


def slices(capacity: int, wanted: Sequence[int]) -> tuple[int, ...]:
    """`capacity` split in proportion to `wanted` (evenly if nobody wants any), to the last unit."""
    total = sum(wanted)
    weights = list(wanted) if total else [1] * len(wanted)
    total = total or len(wanted)
    parts = [capacity * weight // total for weight in weights]
    for index in range(capacity - sum(parts)):  # fewer than there are shards
        parts[index % len(parts)] += 1
    return tuple(parts)


class ShardedRoom:
    """One event over several `WaitingRoom`s (one for each store; the same one may serve several shards)."""

    def __init__(self, event: str, rooms: Sequence[WaitingRoom]) -> None:
        if not 1 <= len(rooms) <= MAX_SHARDS:
            raise ConfigError(f"a line is spread over 1 to {MAX_SHARDS} shards, not {len(rooms)}")
        self.event = event
        self.rooms = tuple(rooms)
        self.names = tuple(f"{event}.{number}" for number in range(len(rooms)))

    async def create(self, config: RoomConfig, phase: Phase = Phase.OPEN) -> tuple[RoomView, ...]:
        """Create every shard with an even slice of capacity, rate and depth."""
        even = [1] * len(self.rooms)
        parts = zip(self.rooms, self.names, slices(config.capacity, even), slices(config.rate_per_s, even), strict=True)
        depth_cap = -(-config.depth_cap // len(self.rooms))
        return tuple(
            [
                await room.control.create(
                    name,
                    config.changed(
                        capacity=capacity, shared_capacity=config.capacity, rate_per_s=rate_per_s, depth_cap=depth_cap
                    ),
                    phase,
                )
                for room, name, capacity, rate_per_s in parts
            ]
        )

    def shard_for(self, person: str, ip: str) -> int:
        """The shard of a person, else of an address, else a random one."""
        return shard_of(person or ip or secrets.token_hex(8), len(self.rooms))

    def views(self) -> tuple[RoomView, ...]:
        return tuple(room.control.view(name) for room, name in zip(self.rooms, self.names, strict=True))

    def whole(self) -> int:
        """The capacity that all shards share. The settings of each shard have it."""
        return max(view.state.config.shared_capacity for view in self.views())

    async def set_capacity(self, capacity: int) -> tuple[int, ...]:
        """Share another capacity: cut every slice to its even part, then raise those where people wait."""
        parts = zip(self.rooms, self.names, slices(capacity, [1] * len(self.rooms)), self.views(), strict=True)
        for room, name, part, view in parts:
            least = min(part, view.state.config.capacity)
            await room.control.configure(name, shared_capacity=capacity, capacity=least)
        return await self.rebalance()

    async def rebalance(self) -> tuple[int, ...]:
        """Give each shard the capacity its people need now; returns the slices in force."""
        views, whole = self.views(), self.whole()
        used = [view.state.active + view.state.knocking for view in views]
        wanted = slices(whole, [u + view.waiting for u, view in zip(used, views, strict=True)])
        now = [view.state.config.capacity for view in views]
        for index, (have, want) in enumerate(zip(now, wanted, strict=True)):
            if want < have:
                await self.rooms[index].control.set_capacity(self.names[index], want)
                now[index] = max(want, self.views()[index].state.active)  # people inside still count
        for index, want in enumerate(wanted):
            spare = whole - sum(now)
            if want > now[index] and spare > 0:
                now[index] += min(spare, want - now[index])
                await self.rooms[index].control.set_capacity(self.names[index], now[index])
        return tuple(now)
