"""What organisers do with a room: make, open, pause, resume, hold everybody, close, change rate, capacity, message."""

import secrets
from typing import Any

from frontrow.waitingroom.credentials.now_serving import check_fits
from frontrow.waitingroom.model.config import Phase, RoomConfig, check_event
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import Recovered, RoomRow
from frontrow.waitingroom.service.loops import RoomLoops
from frontrow.waitingroom.service.recovery import recover

FIRST_EPOCH = 1


class Organiser(RoomLoops):
    """Every change is made in the store, then written to the audit, then shown."""

    async def create(self, event: str, config: RoomConfig, phase: Phase = Phase.OPEN) -> RoomView:
        """Make a room, or find the one that is there, also after a restart. PREQUEUE commits to the draw."""
        check_fits(check_event(event), config)
        state = await recover(self.store, self.audit, event, None, (), self.clock() // 1_000_000)
        if state is None:
            salted = config if config.draw_salt else config.changed(draw_salt=secrets.token_hex(16))
            lanes = (LaneState(),) * len(config.lanes)
            fresh = RoomState(FIRST_EPOCH, phase, salted, lanes, bucket_milli=config.burst * 1000)
            await self.store.create(event, Recovered(fresh))
            state = await self.store.snapshot(event)
            assert state is not None, "a room just made is there"
            await self.audit.append(event, [RoomRow(state, state.now_us)])
        known = self.take(event, state)
        await self.follow_ended(known)
        return known.view(self.leader.owner)

    async def open(self, event: str, beacon: str = "") -> RoomView:
        """Open the doors; from PREQUEUE this draws the order. `beacon`: public randomness nobody could know before."""
        return await self._change(event, phase=Phase.OPEN, beacon=beacon)

    async def pause(self, event: str) -> RoomView:
        """Admit nobody new until `resume`."""
        return await self._change(event, phase=Phase.PAUSED)

    async def resume(self, event: str) -> RoomView:
        """Go on after `pause`, `queue_all` or `close`."""
        return await self._change(event, phase=Phase.OPEN)

    async def queue_all(self, event: str) -> RoomView:
        """Everybody waits, also those whose place is active, until `resume`; nobody's grace runs out meanwhile."""
        return await self._change(event, phase=Phase.QUEUE_ALL)

    async def close(self, event: str) -> RoomView:
        """No more joins and admissions."""
        return await self._change(event, phase=Phase.CLOSED)

    async def set_rate(self, event: str, rate_per_s: int, burst: int | None = None) -> RoomView:
        """Admissions per second, at most; `burst` how many at once."""
        changes = {"rate_per_s": rate_per_s} | ({} if burst is None else {"burst": burst})
        return await self.configure(event, **changes)

    async def set_capacity(self, event: str, capacity: int) -> RoomView:
        """How many may be in the shop at once."""
        return await self.configure(event, capacity=capacity)

    async def set_message(self, event: str, message: str) -> RoomView:
        """What the page says besides; its number in the now-serving document changes."""
        return await self.configure(event, message=message)

    async def configure(self, event: str, **changes: Any) -> RoomView:
        """Change any settings of `RoomConfig`."""
        config = self.known(event).state.config.changed(**changes)  # says what is wrong before anything is asked
        check_fits(event, config)
        return await self._change(event, changes=changes)

    def view(self, event: str) -> RoomView:
        """The room as last seen. Raises RoomUnknown."""
        return self.known(event).view(self.leader.owner)

    def draw_record(self, event: str) -> dict[str, Any]:
        """The published record of the pre-queue draw: the commitment before the opening, everything after."""
        return self.known(event).draw_record()

    async def _change(self, event: str, **changes: Any) -> RoomView:
        self.known(event)
        state = await self.store.configure(event, **changes)
        await self.audit.append(event, [RoomRow(state, state.now_us)])
        return self.take(event, state).view(self.leader.owner)
