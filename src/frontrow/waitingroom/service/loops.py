"""The room's loop: refresh what is known, recover a lost store, lead and slide. One task a room and process."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.errors import RoomRecovering, RoomUnknown
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import Audit, AuditRow, ClaimRow, RoomStore, SlideResult, VisitAsk, VisitOp
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.service.recovery import raised, recover, went_back
from frontrow.waitingroom.service.room_cache import KnownRoom

log = logging.getLogger("frontrow.room")

MAX_LATER = 10_000
ENDED_A_CALL = 10_000
HEARD_A_CALL = 1_000
HEARD_EVERY_US = 1_000_000  # how often the store is told who was heard; well below any `leave_s`
LATER_S = 0.1  # a commit costs about a millisecond of CPU: one for all batches of this long


class RoomLoops:
    """Keeps `KnownRoom`s true. `counts` are this process' totals, for the metrics."""

    def __init__(
        self,
        store: RoomStore,
        audit: Audit,
        keys: RoomKeys,
        clock: Clock,
        *,
        owner: str | None,
        lease_ttl_us: int,
        refresh_us: int,
    ) -> None:
        self.store = store
        self.audit = audit
        self.keys = keys
        self.clock = clock
        self.leader = Leader(store, audit, owner=owner, lease_ttl_us=lease_ttl_us)
        self.counts: Counter[str] = Counter()
        self._refresh_us = refresh_us
        self._known: dict[str, KnownRoom] = {}
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._recovering: dict[str, asyncio.Lock] = {}
        self._later: set[asyncio.Task[None]] = set()
        self._gathered: dict[str, list[AuditRow]] = {}
        self._writing = asyncio.Lock()
        self._unwritten: list[tuple[str, Sequence[AuditRow]]] = []
        self._started = False

    def known(self, event: str) -> KnownRoom:
        """The room as last seen. Raises RoomUnknown."""
        known = self._known.get(event)
        if known is None:
            raise RoomUnknown(f"there is no waiting room for {event[:40]!r}", event=event[:40])
        return known

    def events(self) -> tuple[str, ...]:
        """The rooms this process knows."""
        return tuple(self._known)

    def take(self, event: str, state: RoomState) -> KnownRoom:
        """Go on with a state just read; starts the loop of a new room once `start` was called."""
        known = self._known.get(event)
        if known is None:
            known = KnownRoom(event, state, self.keys.document_key, self.keys.master_secret)
            self._known[event] = known
            if self._started:
                self._loops[event] = asyncio.create_task(self._loop(event), name=f"room {event}")
        else:
            known.take(state)
        return known

    # -- one turn ------------------------------------------------------------------------------------------------------

    async def tick(self, event: str) -> None:
        """One turn of the loop: refresh the cache, recover if needed, lead and slide if it is due and ours."""
        known = self.known(event)
        seen, issued = known.state, list(known.issued)  # before asking: joins go on while the answer travels
        state = await self.store.snapshot(event)
        if state is None or went_back(state, seen, issued):
            state = await self.recover(event)
        elif state.epoch > seen.epoch:  # somebody else rebuilt the room
            mine = [LaneState(last, lane.hi, lane.lo) for last, lane in zip(issued, seen.lanes, strict=True)]
            await self.store.lift(event, raised(state.lanes, mine))
        known.take(state)
        await self._lift_to_shown(known)
        led = await self.leader.turn(event, known.state)
        if led.result is not None:
            self.counts[f"slide_{led.result.value}"] += 1
            self.counts["admitted"] += led.admitted
        if led.result is SlideResult.SLID:
            after = await self.store.snapshot(event)
            if after is not None:
                known.take(after)
        await self._tell_heard(known)
        await self.follow_ended(known)

    async def follow_ended(self, known: KnownRoom) -> None:
        """Learn which visits have ended anywhere, so that this process refuses their passes."""
        known.end((), known.state.now_us // 1_000_000)
        while known.ended_no < known.state.ended_no:
            last, ended = await self.store.ended(known.event, known.ended_no, ENDED_A_CALL)
            known.end(ended, known.state.now_us // 1_000_000)
            known.ended_no = max(last, known.ended_no + 1)
            if known.state.leader == self.leader.owner:  # who gave a pass back wrote so; nobody did for the others
                at_us = self.clock()
                rows = [ClaimRow(one.place, 0, at_us) for one in ended if one.timed_out]
                if rows:
                    self.append_later(known.event, rows)

    async def _tell_heard(self, known: KnownRoom) -> None:
        """Tell the store who was heard since the last time: one call for all of them, now and then."""
        if not known.heard or known.state.now_us < known.heard_at_us + HEARD_EVERY_US:
            return
        known.heard_at_us = known.state.now_us
        heard, known.heard = list(known.heard.items()), {}
        for start in range(0, len(heard), HEARD_A_CALL):
            some = heard[start : start + HEARD_A_CALL]
            await self.store.visit(known.event, [VisitAsk(VisitOp.HEAR, place, until_s=at_s) for place, at_s in some])

    async def look_again(self, event: str) -> None:
        """Read the window anew, once for all who ask in this moment: another server may just have moved it."""
        looking = self._looking.get(event)
        if looking is None:
            looking = self._looking[event] = asyncio.create_task(self._look(event))
            looking.add_done_callback(lambda _: self._looking.pop(event, None))
        await asyncio.shield(looking)

    async def _look(self, event: str) -> None:
        known = self.known(event)
        seen, issued = known.state, list(known.issued)
        with contextlib.suppress(FrontrowError):  # the loop sees to a store that is away or lost
            state = await self.store.snapshot(event)
            if state is not None and not went_back(state, seen, issued):
                known.take(state)

    async def _lift_to_shown(self, known: KnownRoom) -> None:
        """A genuine place beyond the last one issued proves a loss nobody recorded: people come before bookkeeping."""
        pairs = list(zip(known.state.lanes, known.shown, strict=True))
        if any(shown > lane.issued for lane, shown in pairs):
            lanes = tuple(replace(lane, issued=max(lane.issued, shown)) for lane, shown in pairs)
            await self.store.lift(known.event, lanes)
            known.take(replace(known.state, lanes=lanes))

    async def recover(self, event: str) -> RoomState:
        """Rebuild the room in the store, once however many ask."""
        async with self._recovering.setdefault(event, asyncio.Lock()):
            known = self.known(event)
            seen, issued = known.state, list(known.issued)
            await self._write_unwritten()
            state = await self.store.snapshot(event)
            if state is None or went_back(state, seen, issued):
                state = await recover(self.store, self.audit, event, seen, issued, self.clock() // 1_000_000)
                self.counts["recoveries"] += 1
                log.warning("room rebuilt", extra={"event": event, "epoch": state.epoch if state else 0})
            if state is None:
                raise RoomRecovering(f"room {event!r} is being rebuilt", retry_after_s=1)
            known.restart(state)
            return state

    # -- the audit, behind people's backs ------------------------------------------------------------------------------

    def append_later(self, event: str, rows: Sequence[AuditRow]) -> None:
        """Write rows without making anybody wait, many batches in one transaction; what fails is kept (bounded) and
        written later."""
        self._gathered.setdefault(event, []).extend(rows)
        if not self._later:
            task = asyncio.create_task(self._append_gathered())
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def _append_gathered(self) -> None:
        while self._gathered:
            await asyncio.sleep(LATER_S)
            await self._write_gathered()

    async def _write_gathered(self) -> None:
        """What was gathered until now, after whatever is being written; what comes meanwhile waits for the next."""
        async with self._writing:
            gathered, self._gathered = self._gathered, {}
            for event, rows in gathered.items():
                await self._append(event, rows)

    async def _append(self, event: str, rows: Sequence[AuditRow]) -> None:
        try:
            await self.audit.append(event, rows)
        except FrontrowError as error:
            self.counts["audit_errors"] += 1
            log.warning("audit rows wait", extra={"event": event, "problem": str(error)})
            if len(self._unwritten) < MAX_LATER:
                self._unwritten.append((event, rows))

    async def _write_unwritten(self) -> None:
        """Everything this process still owes the audit."""
        await self._write_gathered()
        waiting, self._unwritten = self._unwritten, []
        for event, rows in waiting:
            await self._append(event, rows)

    # -- running -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the loop of every known room (and of those created later)."""
        self._started = True
        for event in self._known:
            if event not in self._loops:
                self._loops[event] = asyncio.create_task(self._loop(event), name=f"room {event}")

    async def _loop(self, event: str) -> None:
        # A cancellation may be swallowed by a library that was just timing out; the flag and the room are not.
        while self._started and event in self._known:
            try:
                await self.tick(event)
                if self._unwritten:
                    await self._write_unwritten()
            except FrontrowError as error:
                self.counts["tick_errors"] += 1
                log.warning("room not refreshed", extra={"event": event, "problem": str(error)})
            await asyncio.sleep(self._refresh_us / 1e6)

    async def forget(self, event: str) -> None:
        """The event is over: stop its loop and know nothing of its room any more; the store keeps it."""
        if self._known.pop(event, None) is None:
            return
        task = self._loops.pop(event, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for kept in (self._looking, self._recovering):
            kept.pop(event, None)
        try:
            await self.leader.resign(event)
        except FrontrowError:
            self.counts["tick_errors"] += 1  # the lease runs out by itself

    async def aclose(self) -> None:
        """Stop the loops, resign, write what the audit is owed, close store and audit."""
        self._started = False
        for task in self._loops.values():
            task.cancel()
        await asyncio.gather(*self._loops.values(), return_exceptions=True)
        self._loops.clear()
        for event in self._known:
            try:
                await self.leader.resign(event)
            except FrontrowError:
                self.counts["tick_errors"] += 1  # the lease runs out by itself
        await self._write_unwritten()
        sleeping = tuple(self._later)
        for task in sleeping:
            task.cancel()
        await asyncio.gather(*sleeping, return_exceptions=True)
        await self.store.aclose()
        await self.audit.aclose()
