"""When a room changes its phase by itself: the pre-queue begins, the room opens, the room closes.

A step acts once. It never undoes what somebody did by hand: a paused room stays paused when its opening comes, and a
pre-queue begins only where nobody has joined yet, because the draw would move places that were given out.
"""

from enum import StrEnum

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model.config import MAX_TIME_US, Phase
from frontrow.waitingroom.model.room_state import RoomState


class ScheduleStep(StrEnum):
    PREQUEUE = "prequeue"
    OPEN = "open"
    CLOSE = "close"


PHASES = {ScheduleStep.PREQUEUE: Phase.PREQUEUE, ScheduleStep.OPEN: Phase.OPEN, ScheduleStep.CLOSE: Phase.CLOSED}
_FROM = {
    ScheduleStep.PREQUEUE: {Phase.CLOSED},
    ScheduleStep.OPEN: {Phase.PREQUEUE, Phase.CLOSED},
    ScheduleStep.CLOSE: set(Phase),
}


class Schedule(msgspec.Struct, frozen=True):
    """The times of the steps; 0: no such step."""

    prequeue_at_us: int = 0
    opens_at_us: int = 0
    closes_at_us: int = 0

    def steps(self) -> list[tuple[int, ScheduleStep]]:
        """The steps that are set, in the order of their times."""
        times = (self.prequeue_at_us, self.opens_at_us, self.closes_at_us)
        return sorted((at_us, step) for at_us, step in zip(times, ScheduleStep, strict=True) if at_us)

    def due(self, now_us: int) -> list[tuple[int, ScheduleStep]]:
        """The steps whose time has come, the earliest first."""
        return [(at_us, step) for at_us, step in self.steps() if at_us <= now_us]

    def first_phase(self, now_us: int) -> Phase:
        """The phase of a room that is created now: what the past steps have made of it, closed before the first."""
        due = self.due(now_us)
        if due:
            return PHASES[due[-1][1]]
        return Phase.CLOSED if self.prequeue_at_us or self.opens_at_us else Phase.OPEN


def checked_schedule(schedule: Schedule) -> Schedule:
    """The schedule, if its steps are in order: pre-queue, opening, closing."""
    prequeue, opens, closes = schedule.prequeue_at_us, schedule.opens_at_us, schedule.closes_at_us
    if any(not 0 <= at_us <= MAX_TIME_US for at_us in (prequeue, opens, closes)):
        raise InvalidInput("a time of the schedule is out of range", param="opens_at")
    if prequeue and not opens:
        raise InvalidInput("a pre-queue needs a time at which the room opens", param="opens_at")
    if prequeue and prequeue >= opens:
        raise InvalidInput("the pre-queue begins before the room opens", param="prequeue_at")
    if closes and closes <= max(prequeue, opens):
        raise InvalidInput("the room closes after it has opened", param="closes_at")
    return schedule


def why_not(step: ScheduleStep, state: RoomState) -> str:
    """Why this step leaves the room as it is; nothing if it acts."""
    if state.phase is PHASES[step]:
        return "the room is in this phase already"
    if state.phase not in _FROM[step]:
        return "the room was changed by hand and stays as it is"
    if step is ScheduleStep.PREQUEUE and any(lane.issued for lane in state.lanes):
        return "people have places already, which a draw would move"
    return ""
