"""What organisers do with a room: create, open, pause, resume, hold everybody, close, change its settings."""

import secrets
from typing import Any

from frontrow.waitingroom.credentials.now_serving import check_fits
from frontrow.waitingroom.model.config import Phase, RoomConfig, check_event
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import Audit, Recovered, RoomRow, RoomStore
from frontrow.waitingroom.service.loops import RoomLoops
from frontrow.waitingroom.service.recovery import RoomRecovery
from frontrow.waitingroom.service.room_cache import RoomCache

FIRST_EPOCH = 1


class RoomControl:
    """Makes every change in the store, then writes it to the audit, then updates the cache."""

    def __init__(
        self,
        *,
        store: RoomStore,
        audit: Audit,
        cache: RoomCache,
        loops: RoomLoops,
        recovery: RoomRecovery,
        owner: str,
    ) -> None:
        """`owner` names this process as a leader; a view says whether it leads."""
        self._store = store
        self._audit = audit
        self._cache = cache
        self._loops = loops
        self._recovery = recovery
        self._owner = owner

    async def create(self, event: str, config: RoomConfig, phase: Phase = Phase.OPEN) -> RoomView:
        """Create a room, or find the existing one. PREQUEUE commits to the draw."""
        check_fits(check_event(event), config)
        state = await self._recovery.find_or_rebuild(event)
        if state is None:
            salted = config if config.draw_salt else config.changed(draw_salt=secrets.token_hex(16))
            lanes = (LaneState(),) * len(config.lanes)
            fresh = RoomState(FIRST_EPOCH, phase, salted, lanes, bucket_milli=config.burst * 1000)
            await self._store.create(event, Recovered(fresh))
            state = await self._store.snapshot(event)
            assert state is not None, "a room that was just created exists"
            await self._audit.append(event, [RoomRow(state, state.now_us)])
        room = self._loops.track(event, state)
        await self._loops.follow_ended(room)
        return room.view(self._owner)

    async def open(self, event: str, beacon: str = "") -> RoomView:
        """Open the room. From PREQUEUE this draws the order; `beacon` is public randomness nobody could know before."""
        return await self._change(event, phase=Phase.OPEN, beacon=beacon)

    async def hold_prequeue(self, event: str) -> RoomView:
        """Let people into the draw, until `open`. Raises Refused where somebody has a place."""
        return await self._change(event, phase=Phase.PREQUEUE)

    async def pause(self, event: str) -> RoomView:
        """Admit nobody new until `resume`."""
        return await self._change(event, phase=Phase.PAUSED)

    async def resume(self, event: str) -> RoomView:
        """Open the room again after `pause`, `queue_all` or `close`."""
        return await self._change(event, phase=Phase.OPEN)

    async def queue_all(self, event: str) -> RoomView:
        """Make everybody wait until `resume`, even with an active place. No active place expires meanwhile."""
        return await self._change(event, phase=Phase.QUEUE_ALL)

    async def close(self, event: str) -> RoomView:
        """Refuse joins and admit nobody."""
        return await self._change(event, phase=Phase.CLOSED)

    async def set_rate(self, event: str, rate_per_s: int, burst: int | None = None) -> RoomView:
        """Set how many people are admitted per second at most; `burst` is how many at once."""
        changes = {"rate_per_s": rate_per_s} | ({} if burst is None else {"burst": burst})
        return await self.configure(event, **changes)

    async def set_capacity(self, event: str, capacity: int) -> RoomView:
        """Set how many people may be in the shop at once."""
        return await self.configure(event, capacity=capacity)

    async def set_message(self, event: str, message: str) -> RoomView:
        """Set the organiser's message on the page. Its number in the now-serving document changes."""
        return await self.configure(event, message=message)

    async def configure(self, event: str, **changes: Any) -> RoomView:
        """Change any settings of `RoomConfig`."""
        config = self._cache.find(event).state.config.changed(**changes)  # a wrong value is refused here
        check_fits(event, config)
        return await self._change(event, changes=changes)

    def view(self, event: str) -> RoomView:
        """The room in the state last read. Raises RoomUnknown."""
        return self._cache.find(event).view(self._owner)

    def draw_record(self, event: str) -> dict[str, Any]:
        """The published record of the pre-queue draw: before the opening only the commitment, after it everything."""
        return self._cache.find(event).draw_record()

    async def _change(self, event: str, **changes: Any) -> RoomView:
        self._cache.find(event)
        state = await self._store.configure(event, **changes)
        await self._audit.append(event, [RoomRow(state, state.now_us)])
        return self._loops.track(event, state).view(self._owner)
