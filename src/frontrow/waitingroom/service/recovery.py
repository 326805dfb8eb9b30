"""Rebuilds a room whose store lost all writes (wiped) or the last ones (a failover to a lagging replica).

Each counter gets the maximum of the audit and of this process' cache. The epoch grows by one. The first process writes
the room; later ones only raise its counters to those of their caches. Positions that were issued twice differ in their
epoch, so both places stay valid, and claims are kept per epoch.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.shared.log_lines import ROOM_REBUILT
from frontrow.waitingroom.model.errors import RoomRecovering
from frontrow.waitingroom.model.room_state import LaneState, RoomState, windows_fell
from frontrow.waitingroom.ports import Audit, Recovered, RoomRow, RoomStore
from frontrow.waitingroom.service.audit_writer import AuditWriter
from frontrow.waitingroom.service.room_cache import RoomCache

MAX_TRIES = 3

Result = TypeVar("Result")


class RoomRecovery:
    """Rebuilds the rooms of one process. Concurrent callers share one rebuild."""

    def __init__(
        self,
        *,
        store: RoomStore,
        audit: Audit,
        writer: AuditWriter,
        cache: RoomCache,
        clock: Clock,
        counts: Counter[str],
    ) -> None:
        self._store = store
        self._audit = audit
        self._writer = writer
        self._cache = cache
        self._clock = clock
        self._counts = counts
        self._locks: dict[str, asyncio.Lock] = {}

    async def find_or_rebuild(self, event: str) -> RoomState | None:
        """The room from the store or else from the audit; None if there never was one."""
        return await rebuild_room(self._store, self._audit, event, None, (), self._clock() // 1_000_000)

    async def rebuild(self, event: str) -> RoomState:
        """Rebuild the room in the store, unless an earlier caller already has. Raises RoomRecovering."""
        async with self._locks.setdefault(event, asyncio.Lock()):
            room = self._cache.find(event)
            seen, issued = room.state, list(room.issued)
            await self._writer.flush()
            state = await self._store.snapshot(event)
            if state is None or is_behind(state, seen, issued):
                now_s = self._clock() // 1_000_000
                state = await rebuild_room(self._store, self._audit, event, seen, issued, now_s)
                self._counts["recoveries"] += 1
                ROOM_REBUILT(event_id=event, epoch=state.epoch if state else 0)
            if state is None:
                raise RoomRecovering(f"room {event!r} is being rebuilt", retry_after_s=1)
            room.restart(state)
            return state

    async def call_with_rebuild(self, event: str, call: Callable[[], Awaitable[Result]]) -> Result:
        """The result of a store call; if the store lost the room, rebuild it and call once more."""
        try:
            return await call()
        except RoomRecovering:
            await self.rebuild(event)
            return await call()

    async def follow_audit(self, event: str) -> None:
        """While this process cannot reach the store, show the slides that others write to the audit. Otherwise it would
        go on answering with the window it saw last, and people who ask two servers would see their position get worse.
        """
        with contextlib.suppress(FrontrowError):  # the audit is away too: people see the last window that was known
            windows = await self._audit.windows(event)
            room = self._cache.rooms.get(event)
            if room is not None:
                room.follow(windows)

    def forget(self, event: str) -> None:
        self._locks.pop(event, None)


def raise_lanes(lanes: Sequence[LaneState], seen: Sequence[LaneState]) -> tuple[LaneState, ...]:
    """Each counter at the maximum of both."""
    both = zip(lanes, tuple(seen) + (LaneState(),) * (len(lanes) - len(seen)), strict=False)
    return tuple(
        LaneState(max(a.issued, b.issued), max(a.hi, b.hi), max(a.lo, b.lo), max(a.drawn, b.drawn)) for a, b in both
    )


def is_behind(state: RoomState, seen: RoomState, issued: Sequence[int]) -> bool:
    """Whether the store has lost writes that this process has seen."""
    if state.epoch != seen.epoch:
        return state.epoch < seen.epoch
    fewer = any(lane.issued < last for lane, last in zip(state.lanes, issued, strict=False))
    return state.slide_no < seen.slide_no or fewer or windows_fell(state, seen)


async def rebuild_room(
    store: RoomStore, audit: Audit, event: str, seen: RoomState | None, issued: Sequence[int], now_s: int
) -> RoomState | None:
    """The room, rebuilt if needed; None if neither the audit nor this process ever had it."""
    for _ in range(MAX_TRIES):
        state = await store.snapshot(event)
        if state is not None and seen is not None and is_behind(state, seen, issued):
            await store.forget(event, state.epoch)
            continue
        if state is not None and seen is None:
            return state
        if state is None:
            recovered = await _read_audit(store, audit, event, seen, now_s)
            if recovered is None:
                return None
            await store.create(event, recovered)
            await audit.append(event, [RoomRow(recovered.state, now_s * 1_000_000)])
        if seen is not None:
            await store.lift(event, raise_lanes([LaneState(last) for last in issued], seen.lanes))
        state = await store.snapshot(event)
        if state is not None:
            return state
    return None


async def _read_audit(
    store: RoomStore, audit: Audit, event: str, seen: RoomState | None, now_s: int
) -> Recovered | None:
    """The room to write: the audit's state under the next epoch, with counters raised to those of this process."""
    found = await audit.recover(event, now_s, with_people=store.one_place_per_person)
    if found is None and seen is None:
        return None
    base = found.state if found is not None else seen
    assert base is not None
    epoch = max(base.epoch, seen.epoch if seen else 0) + 1
    lanes = raise_lanes(base.lanes, seen.lanes) if seen else base.lanes
    fresh = replace(base, epoch=epoch, lanes=lanes, leader="", leader_until_us=0, slid_at_us=0, bucket_at_us=0)
    return replace(found, state=fresh) if found is not None else Recovered(fresh)
