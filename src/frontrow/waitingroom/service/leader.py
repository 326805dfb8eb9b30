"""The leader of a room: one process takes the leadership for a few seconds, extends it, and slides the window.

The store keeps the leader's UUID and the end of its leadership. The leader writes a slide to the audit before it makes
the slide in the store, so a store that loses its memory cannot move a window back. The store checks owner, slide
number, due time and lengths in the same step: a suspended former leader, a second leader or a wrong clock cannot move
the window. A new leader first compares the store with the audit: a failover may have lost slides that only others saw,
and the window would move a second time. After a crash a room has no leader for at most TTL + interval. The next leader
makes up for one of the windows that fell due (`RoomConfig.catch_up_us`).
"""

import uuid
from dataclasses import dataclass

from frontrow.shared.log_lines import LEAD_LOST, LEAD_WON
from frontrow.waitingroom.model.admission import apply_plan, is_due, plan_slide
from frontrow.waitingroom.model.room_state import LaneState, RoomState, raise_windows
from frontrow.waitingroom.ports import Audit, RoomRow, RoomStore, SlideResult


@dataclass(frozen=True, slots=True)
class LeaderTurn:
    """The result of one turn: whether this process leads, and the result of the slide if one was due. `lost` are the
    lanes as the audit has them, if the store of a new leader lost slides: then the room is to be rebuilt."""

    leading: bool
    result: SlideResult | None = None
    admitted: int = 0
    lost: tuple[LaneState, ...] = ()


class Leader:
    """Leads those rooms of one process whose leadership it gets."""

    def __init__(
        self, store: RoomStore, audit: Audit, *, owner: str | None = None, leadership_ttl_us: int = 5_000_000
    ) -> None:
        self._store = store
        self._audit = audit
        self.owner = owner or uuid.uuid4().hex
        self.leadership_ttl_us = leadership_ttl_us
        self._led: set[str] = set()  # the rooms that this process led at its last turn

    def may_lead(self, state: RoomState) -> bool:
        """Whether to ask for the leadership: no other process has it now."""
        return state.leader in ("", self.owner) or state.now_us >= state.leader_until_us

    async def take_turn(self, event: str, state: RoomState) -> LeaderTurn:
        """Take or extend the leadership if possible; slide if a slide is due."""
        leads = self.may_lead(state) and await self._store.take_lead(event, self.owner, self.leadership_ttl_us)
        if leads and event not in self._led:
            lost = await self._windows_lost(event, state)
            if lost:
                return LeaderTurn(True, lost=lost)
        self._log_change(event, leads)
        if not leads:
            return LeaderTurn(False)
        reports = await self._store.reports(event) if state.config.max_p95_ms and is_due(state) else ()
        plan = plan_slide(state, reports)
        if plan is None:
            return LeaderTurn(True)
        if plan.admitted or plan.los != tuple(lane.lo for lane in state.lanes):
            await self._audit.append(event, [RoomRow(apply_plan(state, plan), state.now_us)])
        result = await self._store.slide(event, self.owner, plan)
        return LeaderTurn(True, result, plan.admitted if result is SlideResult.SLID else 0)

    async def _windows_lost(self, event: str, state: RoomState) -> tuple[LaneState, ...]:
        """The lanes with the windows of the audit, if any of them is further than the store's; else nothing."""
        audited = raise_windows(state.lanes, await self._audit.windows(event))
        return audited if audited != state.lanes else ()

    async def resign(self, event: str) -> None:
        """Give up the leadership, so that another process can take it at once."""
        await self._store.resign(event, self.owner)
        self._log_change(event, leads=False)

    def _log_change(self, event: str, leads: bool) -> None:
        if leads and event not in self._led:
            self._led.add(event)
            LEAD_WON(event_id=event)
        elif not leads and event in self._led:
            self._led.discard(event)
            LEAD_LOST(event_id=event)
