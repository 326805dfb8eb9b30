"""Leading a room: take or extend a short lease, then slide the window if a slide is due.

The lease names its owner by UUID. A slide is written to the audit before it is made in the store, so no loss of the
store can take a window back. The store checks owner, slide number, due time and lengths again in one plan: a paused
ex-leader, a second leader or a wrong clock can move nothing. After a crash a room is without a leader for at most
TTL + interval; of the windows due meanwhile one is made up for (`RoomConfig.catch_up_us`).
"""

import uuid
from dataclasses import dataclass

from frontrow.core.log_lines import LEAD_LOST, LEAD_WON
from frontrow.waitingroom.model.admission import apply_plan, plan_slide
from frontrow.waitingroom.model.room_state import RoomState
from frontrow.waitingroom.ports import Audit, RoomRow, RoomStore, SlideResult


@dataclass(frozen=True, slots=True)
class LeaderTurn:
    """The outcome of one turn: whether this process leads, and the slide's result if one was due."""

    leading: bool
    result: SlideResult | None = None
    admitted: int = 0


class Leader:
    """Leads the rooms of one process, as far as it holds their leases."""

    def __init__(
        self, store: RoomStore, audit: Audit, *, owner: str | None = None, lease_ttl_us: int = 5_000_000
    ) -> None:
        self._store = store
        self._audit = audit
        self.owner = owner or uuid.uuid4().hex
        self.lease_ttl_us = lease_ttl_us
        self._led: set[str] = set()  # the rooms that this process leads, as far as it knows

    def may_lead(self, state: RoomState) -> bool:
        """Whether to ask for the lease: nobody else holds a running one."""
        return state.leader in ("", self.owner) or state.now_us >= state.leader_until_us

    async def take_turn(self, event: str, state: RoomState) -> LeaderTurn:
        """Take or keep the lead if possible; slide if it is due."""
        leads = self.may_lead(state) and await self._store.lease(event, self.owner, self.lease_ttl_us)
        self._log_change(event, leads)
        if not leads:
            return LeaderTurn(False)
        plan = plan_slide(state)
        if plan is None:
            return LeaderTurn(True)
        if plan.admitted or plan.los != tuple(lane.lo for lane in state.lanes):
            await self._audit.append(event, [RoomRow(apply_plan(state, plan), state.now_us)])
        result = await self._store.slide(event, self.owner, plan)
        return LeaderTurn(True, result, plan.admitted if result is SlideResult.SLID else 0)

    async def resign(self, event: str) -> None:
        """Give up the lead, so that another process can take it at once."""
        await self._store.resign(event, self.owner)
        self._log_change(event, leads=False)

    def _log_change(self, event: str, leads: bool) -> None:
        if leads and event not in self._led:
            self._led.add(event)
            LEAD_WON(event_id=event)
        elif not leads and event in self._led:
            self._led.discard(event)
            LEAD_LOST(event_id=event)
