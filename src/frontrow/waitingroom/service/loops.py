"""One loop per room and process: refresh the cache, rebuild a lost store, lead and slide.

The loop also reports the visitors' activity to the store, and reads which visits have ended in other processes.

A room is idle when it is empty and nobody has asked about it for some turns. The loop of an idle room waits for the
next visitor and does not lead. One task checks idle rooms twice per minute, many with one call, and wakes the loops of
those that have changed. So a server can offer hundreds of events at little cost.
"""

import asyncio
import contextlib
import functools
from collections import Counter
from dataclasses import replace
from zlib import crc32

from frontrow.core.background_tasks import start_loop
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import ClaimRow, RoomStore, SlideResult, VisitCommand, VisitOp
from frontrow.waitingroom.service.audit_writer import AuditWriter
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.service.recovery import RoomRecovery, is_behind, raise_lanes
from frontrow.waitingroom.service.room_cache import IDLE_AFTER_TURNS, CachedRoom, RoomCache
from frontrow.waitingroom.service.store_clock import StoreClock

ENDED_PER_CALL = 10_000
HEARD_PER_CALL = 1_000
HEARD_EVERY_US = 1_000_000  # how often activity is reported to the store; well below any `leave_s`
CHECK_IDLE_EVERY_S = 30  # how often an idle room is checked
ROOM_JOB = "room"  # the job of every room's loop, where failures are counted
HURRIED_PAUSE_S = 0.05  # the pause when somebody could be admitted at once


class RoomLoops:
    """Keeps the cached rooms up to date."""

    def __init__(
        self,
        *,
        store: RoomStore,
        cache: RoomCache,
        leader: Leader,
        recovery: RoomRecovery,
        writer: AuditWriter,
        clock: Clock,
        store_clock: StoreClock,
        counts: Counter[str],
        refresh_us: int,
    ) -> None:
        self._store = store
        self._cache = cache
        self._leader = leader
        self._recovery = recovery
        self._writer = writer
        self._clock = clock
        self._store_clock = store_clock
        self._counts = counts
        self._refresh_us = refresh_us
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._idle: list[set[str]] = [set() for _ in range(CHECK_IDLE_EVERY_S)]  # rooms by the second of their check
        self._checking: asyncio.Task[None] | None = None
        self._refreshes: dict[str, asyncio.Task[None]] = {}
        self._started = False

    def track(self, event: str, state: RoomState) -> CachedRoom:
        """Cache a state just read. Start the loop of a new room if the loops have been started."""
        self._store_clock.follow(state.now_us)
        room = self._cache.update(event, state)
        if self._started and event not in self._loops:
            self._start_loop(event)
        return room

    # -- one turn ------------------------------------------------------------------------------------------------------

    async def tick(self, event: str) -> None:
        """One turn of the loop: refresh the cache, recover if needed, lead, and slide if a slide is due."""
        room = self._cache.find(event)
        seen, issued = room.state, list(room.issued)  # before the call: people join while it is under way
        state = await self._store.snapshot(event)
        if state is not None:
            self._store_clock.follow(state.now_us)
        if state is None or is_behind(state, seen, issued):
            state = await self._recovery.rebuild(event)
        elif state.epoch > seen.epoch:  # another process rebuilt the room
            mine = [LaneState(last, lane.hi, lane.lo) for last, lane in zip(issued, seen.lanes, strict=True)]
            await self._store.lift(event, raise_lanes(state.lanes, mine))
        room.update(state)
        await self._lift_to_shown(room)
        if room.unused_turns > IDLE_AFTER_TURNS and room.is_empty() and not room.used:
            return  # nobody waits: no leader is needed
        turn = await self._leader.take_turn(event, room.state)
        if turn.lost:  # the store has lost slides that this process never saw
            room.update(replace(room.state, lanes=turn.lost))
            await self._recovery.rebuild(event)
        if turn.result is not None:
            self._counts[f"slide_{turn.result.value}"] += 1
            self._counts["admitted"] += turn.admitted
        if turn.result is SlideResult.SLID:
            after = await self._store.snapshot(event)
            if after is not None:
                room.update(after)
        await self._report_heard(room)
        await self.follow_ended(room)

    async def follow_ended(self, room: CachedRoom) -> None:
        """Read which visits have ended in any process, so that this one refuses their passes."""
        room.end_visits((), room.state.now_us // 1_000_000)
        while room.ended_no < room.state.ended_no:
            last, ended = await self._store.ended(room.event, room.ended_no, ENDED_PER_CALL)
            room.end_visits(ended, room.state.now_us // 1_000_000)
            room.ended_no = max(last, room.ended_no + 1)
            if room.state.leader == self._leader.owner:  # the audit has passes given back, but not timeouts
                at_us = self._clock()
                rows = [ClaimRow(visit.place, 0, at_us) for visit in ended if visit.timed_out]
                if rows:
                    self._writer.append_later(room.event, rows)

    async def _report_heard(self, room: CachedRoom) -> None:
        """Report the activity since the last report to the store, at most once per `HEARD_EVERY_US`."""
        if not room.heard or room.state.now_us < room.heard_at_us + HEARD_EVERY_US:
            return
        room.heard_at_us = room.state.now_us
        heard, room.heard = list(room.heard.items()), {}
        for start in range(0, len(heard), HEARD_PER_CALL):
            some = heard[start : start + HEARD_PER_CALL]
            commands = [VisitCommand(VisitOp.HEAR, place, until_s=at_s) for place, at_s in some]
            await self._store.visit(room.event, commands)

    async def refresh(self, event: str) -> None:
        """Read the room again: another process may just have moved its window. Concurrent callers share one read."""
        refresh = self._refreshes.get(event)
        if refresh is None:
            refresh = self._refreshes[event] = asyncio.create_task(self._refresh(event))
            refresh.add_done_callback(lambda _: self._refreshes.pop(event, None))
        await asyncio.shield(refresh)

    async def _refresh(self, event: str) -> None:
        room = self._cache.find(event)
        seen, issued = room.state, list(room.issued)
        with contextlib.suppress(FrontrowError):  # the loop handles a store that is down or lost
            state = await self._store.snapshot(event)
            if state is not None and not is_behind(state, seen, issued):
                room.update(state)

    async def _lift_to_shown(self, room: CachedRoom) -> None:
        """Raise `issued` to the highest valid place presented: a place beyond it proves that the store lost writes."""
        pairs = list(zip(room.state.lanes, room.shown, strict=True))
        if any(shown > lane.issued for lane, shown in pairs):
            lanes = tuple(replace(lane, issued=max(lane.issued, shown)) for lane, shown in pairs)
            await self._store.lift(room.event, lanes)
            room.update(replace(room.state, lanes=lanes))

    # -- running -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the loop of every cached room, and of those created later."""
        self._started = True
        if self._checking is None:
            self._checking = start_loop(self._check_idle, "resting rooms")
        for event in self._cache.events():
            if event not in self._loops:
                self._start_loop(event)

    def _start_loop(self, event: str) -> None:
        self._loops[event] = start_loop(functools.partial(self._loop, event), ROOM_JOB, event_id=event)

    async def _loop(self, event: str) -> None:
        room = self._cache.rooms.get(event)
        if room is not None and self._is_idle(room):  # it was read a moment ago and is empty
            await self._wait_while_idle(room)
        # A library may swallow a cancellation while it times out. These two conditions end the loop all the same.
        has_failed = False
        while self._started and event in self._cache.rooms:
            try:
                await self.tick(event)
                if self._writer.has_failed_rows:
                    await self._writer.flush()
                if has_failed:  # other rooms share the job's name and may still fail
                    has_failed = False
                    note_success()
            except Exception as error:  # people wait in this room, so the next turn tries again
                has_failed = True
                self._counts["tick_errors"] += 1
                note_failure(error, event_id=event)
                await self._recovery.follow_audit(event)
            await self._pause(event)

    async def _pause(self, event: str) -> None:
        """Wait until the next turn: the usual pause, or until the room is no longer idle."""
        room = self._cache.rooms.get(event)
        if room is None:
            return
        if not self._is_idle(room):
            await self._short_pause(room)
            return
        await self._wait_while_idle(room)

    async def _wait_while_idle(self, room: CachedRoom) -> None:
        """Wait until a visitor comes or the room has changed."""
        idle = self._idle[crc32(room.event.encode()) % CHECK_IDLE_EVERY_S]
        idle.add(room.event)
        room.woken.clear()
        try:
            await room.woken.wait()
        finally:
            idle.discard(room.event)

    async def wake_changed(self, second: int) -> None:
        """Wake the loops of those idle rooms of this second that have changed."""
        events = [event for event in self._idle[second % CHECK_IDLE_EVERY_S] if event in self._cache.rooms]
        found = await asyncio.gather(*map(self._has_changed, events), return_exceptions=True)
        for event, changed in zip(events, found, strict=True):
            room = self._cache.rooms.get(event)
            if isinstance(changed, BaseException):
                self._counts["tick_errors"] += 1  # the store is down: the next check tries again
                note_failure(changed, event_id=event)
            elif changed and room is not None:
                room.woken.set()

    async def _has_changed(self, event: str) -> bool:
        now_us = await self._store.unchanged_at_us(event, self._cache.rooms[event].state)
        if now_us:
            self._store_clock.follow(now_us)
        return not now_us

    async def _check_idle(self) -> None:
        while self._started:
            await asyncio.sleep(1)
            await self.wake_changed(int(asyncio.get_running_loop().time()))

    async def _short_pause(self, room: CachedRoom) -> None:
        """Wait for the usual pause, or less if somebody has joined who could be admitted at once."""
        pause_s = self._refresh_us / 1e6
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await room.hurried.wait()
                await asyncio.sleep(HURRIED_PAUSE_S)
        room.hurried.clear()

    def _is_idle(self, room: CachedRoom) -> bool:
        busy = room.used or not room.is_empty()
        room.used = False
        room.unused_turns = 0 if busy else room.unused_turns + 1
        return room.unused_turns > IDLE_AFTER_TURNS

    async def forget(self, event: str) -> None:
        """Stop the loop of an event that is over and drop its room from the cache. The store keeps the room."""
        if not self._cache.forget(event):
            return
        task = self._loops.pop(event, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._refreshes.pop(event, None)
        self._recovery.forget(event)
        await self._resign(event)

    async def aclose(self) -> None:
        """Stop the loops and resign from all rooms."""
        self._started = False
        tasks = [*self._loops.values(), *([self._checking] if self._checking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._checking = None
        self._loops.clear()
        for event in self._cache.events():
            await self._resign(event)

    async def _resign(self, event: str) -> None:
        try:
            await self._leader.resign(event)
        except FrontrowError:
            self._counts["tick_errors"] += 1  # the leadership ends with its TTL
