"""Several stores as one (W11): shard `<event>.<n>` is in store n, any other room in one chosen by its name.

With one more store, 1/(n+1) of the rooms move to it and are rebuilt there from the audit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.inflow import ShopReport
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan
from frontrow.waitingroom.ports import (
    EndedVisit,
    JoinCommand,
    JoinReply,
    KeptVisit,
    Recovered,
    RoomStore,
    SlideResult,
    VisitCommand,
    VisitReply,
)
from frontrow.waitingroom.service.sharding import shard_of


class ShardedRoomStore:
    """Implements `RoomStore`: every method calls the store of its room."""

    def __init__(self, stores: Sequence[RoomStore]) -> None:
        if not stores:
            raise ConfigError("a line is spread over at least one store")
        self._stores = tuple(stores)
        self.one_place_per_person = stores[0].one_place_per_person

    def store_of(self, event: str) -> RoomStore:
        """The store that has this room."""
        queue, _, number = event.rpartition(".")
        if queue and number.isdecimal():
            return self._stores[int(number) % len(self._stores)]
        return self._stores[shard_of(event, len(self._stores))]

    async def create(self, event: str, room: Recovered) -> bool:
        return await self.store_of(event).create(event, room)

    async def forget(self, event: str, epoch: int) -> None:
        await self.store_of(event).forget(event, epoch)

    async def lift(self, event: str, lanes: Sequence[LaneState]) -> None:
        await self.store_of(event).lift(event, lanes)

    async def snapshot(self, event: str) -> RoomState | None:
        return await self.store_of(event).snapshot(event)

    async def unchanged_at_us(self, event: str, state: RoomState) -> int:
        return await self.store_of(event).unchanged_at_us(event, state)

    async def join(
        self, event: str, commands: Sequence[JoinCommand], seen: Sequence[int] = ()
    ) -> Sequence[JoinReply | FrontrowError]:
        return await self.store_of(event).join(event, commands, seen)

    async def visit(self, event: str, commands: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        return await self.store_of(event).visit(event, commands)

    async def ended(self, event: str, after: int, most: int) -> tuple[int, Sequence[EndedVisit]]:
        return await self.store_of(event).ended(event, after, most)

    async def kept(self, event: str) -> Sequence[KeptVisit]:
        return await self.store_of(event).kept(event)

    async def take_lead(self, event: str, owner: str, ttl_us: int) -> bool:
        return await self.store_of(event).take_lead(event, owner, ttl_us)

    async def resign(self, event: str, owner: str) -> None:
        await self.store_of(event).resign(event, owner)

    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        return await self.store_of(event).slide(event, owner, plan)

    async def put_report(self, event: str, report: ShopReport) -> bool:
        return await self.store_of(event).put_report(event, report)

    async def reports(self, event: str) -> Sequence[ShopReport]:
        return await self.store_of(event).reports(event)

    async def configure(
        self,
        event: str,
        *,
        config: RoomConfig | None = None,
        changes: Mapping[str, Any] | None = None,
        phase: Phase | None = None,
        beacon: str | None = None,
    ) -> RoomState:
        return await self.store_of(event).configure(event, config=config, changes=changes, phase=phase, beacon=beacon)

    async def rank(self, event: str, lane: int, person: str) -> int | None:
        return await self.store_of(event).rank(event, lane, person)

    async def leave(self, event: str, lane: int, person: str) -> bool:
        return await self.store_of(event).leave(event, lane, person)

    async def aclose(self) -> None:
        for store in self._stores:
            await store.aclose()
