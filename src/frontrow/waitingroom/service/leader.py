"""Leading a room: a lease with an owner's UUID and a short TTL, taken if free and extended if mine; then the slide.

The slide is written to the audit before the store is asked to make it, so no loss of the store can ever take a window
back. The store checks owner, slide number, due time and lengths again in one step: a paused ex-leader, a second leader
or a wrong clock can move nothing. A gap lasts at most TTL + interval, and the windows due meanwhile are made up for.
"""

import uuid
from dataclasses import dataclass

from frontrow.waitingroom.model.admission import applied, plan
from frontrow.waitingroom.model.room_state import RoomState
from frontrow.waitingroom.ports import Audit, RoomRow, RoomStore, SlideResult


@dataclass(frozen=True, slots=True)
class Led:
    """What one turn at the helm came to: whether we lead, and the slide's result if one was due."""

    leading: bool
    result: SlideResult | None = None
    admitted: int = 0


class Leader:
    """One process' candidacy for all its rooms."""

    def __init__(
        self, store: RoomStore, audit: Audit, *, owner: str | None = None, lease_ttl_us: int = 5_000_000
    ) -> None:
        self._store = store
        self._audit = audit
        self.owner = owner or uuid.uuid4().hex
        self.lease_ttl_us = lease_ttl_us

    def may_lead(self, state: RoomState) -> bool:
        """Whether asking for the lease makes sense: nobody else has a running one."""
        return state.leader in ("", self.owner) or state.now_us >= state.leader_until_us

    async def turn(self, event: str, state: RoomState) -> Led:
        """Take or keep the lead if possible and slide if it is due."""
        if not self.may_lead(state) or not await self._store.lease(event, self.owner, self.lease_ttl_us):
            return Led(False)
        step = plan(state)
        if step is None:
            return Led(True)
        if step.admitted or step.los != tuple(lane.lo for lane in state.lanes):
            await self._audit.append(event, [RoomRow(applied(state, step), state.now_us)])
        result = await self._store.slide(event, self.owner, step)
        return Led(True, result, step.admitted if result is SlideResult.SLID else 0)

    async def resign(self, event: str) -> None:
        """Let somebody else lead at once."""
        await self._store.resign(event, self.owner)
