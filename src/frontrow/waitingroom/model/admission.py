"""Pure: how many people to admit now, and the whole plan of the next slide.

    n = min(due windows × size, permits in the bucket, room for them, people waiting)
    due windows = intervals since the last slide; at most one, or those of the last second where an interval is shorter
    room for them = capacity + margin − active − knocking − expected claims + expected departures until those claims

`no_shows` estimates the expected claims. The margin corrects the remaining error: it grows while the shop has gaps and
shrinks while people with an active place find it full. A wrong estimate delays somebody for a moment. It cannot exceed
the capacity, which the store checks at each claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from frontrow.waitingroom.model.admission_rate import observe_rates
from frontrow.waitingroom.model.config import MAX_NUMBER, Phase
from frontrow.waitingroom.model.inflow import Inflow, ShopReport, next_inflow, permits_per_s
from frontrow.waitingroom.model.lanes import share
from frontrow.waitingroom.model.measurements import KNOCKING_SHARE, Measured, read_note, write_note
from frontrow.waitingroom.model.no_shows import claim_delay_s, expected_claims, grace_of, observe_claims
from frontrow.waitingroom.model.room_state import RoomState, SlidePlan
from frontrow.waitingroom.model.window import Slide, lo_by_count, lo_by_time, push

MAX_PACED_S = 5.0  # a longer gap between slides admits no more at once
MARGIN_LOW, MARGIN_HIGH, MARGIN_S = -0.2, 0.5, 120.0


def observe(state: RoomState, old: Measured, reports: Sequence[ShopReport] = ()) -> Measured:
    """The measurements brought up to the snapshot's time, with what the shop reported."""
    gap_s = max(0.0, (state.now_us - old.at_us) / 1e6) if old.at_us else 0.0
    counted = observe_claims(state, old, gap_s)
    waiting = sum(lane.waiting for lane in state.lanes)
    inflow = next_inflow(old.inflow, reports, state.config, active=state.active, waiting=waiting, now_us=state.now_us)
    margin = _margin(state, old.margin, gap_s, capacity_of(state, inflow))
    timed = msgspec.structs.replace(counted, at_us=state.now_us, margin=margin, inflow=inflow)
    return observe_rates(state, timed, gap_s)


def capacity_of(state: RoomState, inflow: Inflow | None) -> int:
    """How many people may be in the shop at once: the setting, or fewer while the shop reports that it is slow."""
    return min(state.config.capacity, inflow.limit) if inflow is not None else state.config.capacity


def _margin(state: RoomState, margin: float, gap_s: float, capacity: int) -> float:
    """The new margin: larger if the shop has gaps, smaller if people find it full, unchanged if nobody waits."""
    if not capacity or not any(lane.waiting for lane in state.lanes) or not state.ring:
        return margin
    gaps = max(0, capacity - state.active - state.knocking) / capacity
    crowd = state.knocking / capacity - KNOCKING_SHARE
    return max(MARGIN_LOW, min(MARGIN_HIGH, margin + (gaps - crowd) * min(gap_s, 5.0) / MARGIN_S))


@dataclass(frozen=True, slots=True)
class SlideBounds:
    """The four bounds of a slide; the smallest is how many people are admitted."""

    due: int
    permits: int
    free: int
    waiting: int

    @property
    def admit(self) -> int:
        return max(0, min(self.due, self.permits, self.free, self.waiting))


def bucket_permits(state: RoomState) -> int:
    """Permits in the bucket now, in thousandths."""
    elapsed_us = max(0, state.now_us - state.bucket_at_us)
    return min(state.config.burst * 1000, state.bucket_milli + elapsed_us * state.config.rate_per_s // 1000)


def slide_bounds(state: RoomState, measured: Measured, due: int) -> SlideBounds:
    """The bounds of the next slide."""
    config, capacity = state.config, capacity_of(state, measured.inflow)
    leaving = measured.release_per_s * claim_delay_s(measured)
    coming = expected_claims(state, measured) - min(leaving, capacity / 4)
    free = capacity * (1 + measured.margin) - state.active - state.knocking - coming
    waiting = sum(lane.waiting for lane in state.lanes)
    return SlideBounds(
        due * config.window_size,
        min(bucket_permits(state) // 1000, _paced(state, measured)),
        int(free),
        waiting if waiting >= config.min_slide else 0,
    )


def _paced(state: RoomState, measured: Measured) -> int:
    """The most people of one slide while the room holds the shop's latency; else no bound."""
    if measured.inflow is None:
        return MAX_NUMBER
    seconds = min(MAX_PACED_S, (state.now_us - state.slid_at_us) / 1e6)
    return max(1, round(permits_per_s(measured.inflow, measured.release_per_s) * seconds))


def admits_everybody(state: RoomState, measured: Measured, waiting: int) -> bool:
    """Whether the next slide is expected to admit all of `waiting` people, so that nobody has to queue."""
    if state.phase is not Phase.OPEN or waiting < state.config.min_slide:
        return False
    bounds = slide_bounds(state, measured, due=1)
    return waiting <= min(bounds.due, bounds.permits, bounds.free)


def _due(state: RoomState) -> int:
    """The intervals since the last slide that the next one uses up."""
    due = (state.now_us - state.slid_at_us) // state.config.interval_us
    return due if any(lane.waiting for lane in state.lanes) else due - 1


def is_due(state: RoomState) -> bool:
    """Whether a slide is due."""
    return state.phase is Phase.OPEN and _due(state) >= 1


def plan_slide(state: RoomState, reports: Sequence[ShopReport] = ()) -> SlidePlan | None:
    """The next slide, if one is due. It uses up all intervals that have passed, however few windows it admits
    (`most_windows`). With nobody to admit it still stores the measurements and uses up its intervals. While nobody
    waits, it leaves one interval, so the next arrival is admitted immediately."""
    config, due = state.config, _due(state)
    if not is_due(state):
        return None
    measured = observe(state, read_note(state.note), reports)
    credits = measured.credits if len(measured.credits) == len(state.lanes) else (0,) * len(state.lanes)
    total = slide_bounds(state, measured, min(due, config.most_windows)).admit
    given, credits = share(total, [x.waiting for x in state.lanes], [x.weight for x in config.lanes], credits)
    his = tuple(lane.hi + n for lane, n in zip(state.lanes, given, strict=True))
    los = tuple(lane.lo for lane in state.lanes)
    admitted, ring, grace_us = sum(given), state.ring, grace_of(state)
    if admitted:
        slide = Slide(state.slide_no + 1, state.now_us, his, admitted)
        ring = push(ring, slide, grace_us=0 if config.active_windows else grace_us)
    los = (
        lo_by_count(ring, config.active_windows, los)
        if config.active_windows
        else lo_by_time(ring, state.now_us, grace_us, los)
    )
    return SlidePlan(
        expected_slide_no=state.slide_no,
        due=due,
        his=his,
        los=los,
        ring=ring,
        bucket_milli=bucket_permits(state) - admitted * 1000,
        bucket_at_us=state.now_us,
        note=write_note(msgspec.structs.replace(measured, credits=credits)),
        admitted=admitted,
    )


def apply_plan(state: RoomState, plan: SlidePlan) -> RoomState:
    """The state after this plan, which the audit records before the store makes the slide."""
    lanes = tuple(replace(lane, hi=hi, lo=lo) for lane, hi, lo in zip(state.lanes, plan.his, plan.los, strict=True))
    return replace(state, lanes=lanes, ring=plan.ring, slide_no=state.slide_no + 1, note=plan.note)
