"""Pure: how many people to admit now, and the whole plan of the next slide.

    n = min(due windows × size, permits in the bucket, room for them, people waiting)
    due windows = intervals since the last slide; at most one, or those of the last second where an interval is shorter
    room for them = capacity + margin − active − knocking − expected claims + expected departures until those claims

An admitted person may come at once, late or never. The leader measures how likely an unclaimed place still is to be
claimed: claims per unclaimed place and second, by age (`Measured`). So no-shows are neither waited for nor counted
twice when they return. Until there is a measurement everybody is expected to come. The margin corrects the remaining
error: it grows while the shop has gaps and shrinks while people with an active place find it full. A wrong estimate can
delay somebody for a moment; it can never exceed the capacity, which the store checks at each claim.
"""

from dataclasses import dataclass, replace
from math import exp

import msgspec

from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.lanes import share
from frontrow.waitingroom.model.room_state import RoomState, SlidePlan
from frontrow.waitingroom.model.window import Reason, Slide, lo_by_count, lo_by_time, published, push

AGES = 18  # age classes: below 1 s, then doubling: [1, 2), [2, 4) … seconds
MEMORY_S = 600.0  # how long a measured show rate counts
RATE_MEMORY_S = 30.0
RECENT_US = 10_000_000  # what "now" means for people who are let in
MIN_EXPOSURE_S = 5.0  # person-seconds below which an age class says nothing yet
REASON_US = 60_000_000  # how long a stated reason stays up
SHOW_AFTER_TICKS = 10
AT_THE_DOOR = 0.005  # share of the capacity that may find the shop full, so that a gap is filled at once
MARGIN_LOW, MARGIN_HIGH, MARGIN_S = -0.2, 0.5, 120.0


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the leader has measured. The store carries it as JSON, so that the next leader goes on with it."""

    at_us: int = 0
    ticks: int = 0
    exposure_s: tuple[float, ...] = (0.0,) * AGES
    claims: tuple[float, ...] = (0.0,) * AGES
    seen: dict[str, int] = {}  # slide number -> claims counted so far
    released: int = 0
    release_per_s: float = 0.0
    his: tuple[int, ...] = ()
    rate_milli: tuple[int, ...] = ()
    shown_milli: tuple[int, ...] = ()
    reason: str = ""
    reason_until_us: int = 0
    capacity: int = 0
    rate_per_s: int = 0
    credits: tuple[int, ...] = ()
    margin: float = AT_THE_DOOR  # share of the capacity


def read_note(note: str) -> Measured:
    """The measurements in a store's note; none if it is empty or of another version."""
    try:
        return msgspec.json.decode(note, type=Measured) if note else Measured()
    except msgspec.MsgspecError:
        return Measured()


def write_note(measured: Measured) -> str:
    return msgspec.json.encode(measured).decode()


def age_class(age_us: int) -> int:
    return min(AGES - 1, (max(0, age_us) // 1_000_000).bit_length())


def still_coming(measured: Measured, age_us: int, grace_us: int) -> float:
    """How likely a place, unclaimed `age_us` after its admission, is to be claimed before its grace ends."""
    first, last, total, hazard, is_measured = age_class(age_us), age_class(grace_us), 0.0, 0.0, False
    for index in range(AGES):
        if measured.exposure_s[index] >= MIN_EXPOSURE_S:
            hazard, is_measured = measured.claims[index] / measured.exposure_s[index], True
        else:
            hazard /= 4  # nobody was that old yet: assume that interest fades
        if first <= index <= last:
            low_s = 0.0 if index == 0 else float(2 ** (index - 1))
            start_s, end_s = max(low_s, age_us / 1e6), min(float(2**index), grace_us / 1e6)
            total += hazard * max(0.0, end_s - start_s)
    return 1.0 - exp(-total) if is_measured else 1.0


def grace_of(state: RoomState) -> int:
    """How long a slide stays active: the set grace, or the time its number of windows takes."""
    config = state.config
    return config.active_windows * config.interval_us if config.active_windows else config.grace_us


def expected_claims(state: RoomState, measured: Measured) -> float:
    """How many admitted, unclaimed places are still to be claimed."""
    grace_us, total = grace_of(state), 0.0
    los = tuple(lane.lo for lane in state.lanes)
    for slide in state.ring:
        if any(hi > lo for hi, lo in zip(slide.his, los, strict=True)):
            unclaimed = max(0, slide.size - state.took.get(slide.number, 0))
            total += unclaimed * still_coming(measured, state.now_us - slide.at_us, grace_us)
    return total


def claim_delay_s(measured: Measured) -> float:
    """The mean time from admission to claim."""
    claims = sum(measured.claims)
    middles = ((0.5 if index == 0 else 0.75 * 2**index) for index in range(AGES))
    return sum(c * m for c, m in zip(measured.claims, middles, strict=True)) / claims if claims > 0 else 0.0


def show_rate(measured: Measured, grace_us: int) -> float:
    """The share of admitted people who come at all."""
    return still_coming(measured, 0, grace_us)


def observe(state: RoomState, old: Measured) -> Measured:
    """The measurements brought up to the snapshot's time."""
    gap_s = max(0.0, (state.now_us - old.at_us) / 1e6) if old.at_us else 0.0
    keep = exp(-gap_s / MEMORY_S)
    exposure_s, claims = [x * keep for x in old.exposure_s], [x * keep for x in old.claims]
    for slide in state.ring:
        took = state.took.get(slide.number, 0)
        index = age_class(state.now_us - slide.at_us)
        claims[index] += max(0, took - old.seen.get(str(slide.number), 0))
        exposure_s[index] += max(0, slide.size - took) * gap_s
    seen = {str(slide.number): state.took.get(slide.number, 0) for slide in state.ring}
    fresh = replace_struct(
        old,
        at_us=state.now_us,
        exposure_s=tuple(exposure_s),
        claims=tuple(claims),
        seen=seen,
        margin=_margin(state, old.margin, gap_s),
    )
    return _rates(state, fresh, gap_s)


def _margin(state: RoomState, margin: float, gap_s: float) -> float:
    """Up while the shop has gaps, down while people find it full; unchanged while nobody waits."""
    capacity = state.config.capacity
    if not capacity or not any(lane.waiting for lane in state.lanes) or not state.ring:
        return margin
    gaps = max(0, capacity - state.active - state.knocking) / capacity
    crowd = state.knocking / capacity - AT_THE_DOOR
    return max(MARGIN_LOW, min(MARGIN_HIGH, margin + (gaps - crowd) * min(gap_s, 5.0) / MARGIN_S))


def replace_struct(measured: Measured, **changes: object) -> Measured:
    return msgspec.structs.replace(measured, **changes)


def _rates(state: RoomState, old: Measured, gap_s: float) -> Measured:
    """Admissions per lane and departures, as moving averages; what is shown of them, and why it fell if it did."""
    his = tuple(lane.hi for lane in state.lanes)
    blend = 1.0 - exp(-gap_s / RATE_MEMORY_S)
    if gap_s <= 0 or len(old.his) != len(his) or old.ticks < 2:  # the first slides fill an empty shop: no measure
        blank = (0,) * len(his)
        ticks = old.ticks + (1 if any(his) else 0)
        return replace_struct(
            old,
            his=his,
            released=state.released,
            rate_milli=blank,
            shown_milli=blank,
            ticks=ticks,
            capacity=state.config.capacity,
            rate_per_s=state.config.rate_per_s,
        )
    rates = []
    for lane, was, rate in zip(state.lanes, old.his, old.rate_milli, strict=True):
        now_milli = (lane.hi - was) * 1000 / gap_s
        idle = lane.waiting == 0 and now_milli < rate  # few came, so few were admitted: says nothing of our speed
        rates.append(rate if idle else round(rate + (now_milli - rate) * max(blend, 1.0 / (old.ticks + 1))))
    leaving = (state.released - old.released) / gap_s
    return _shown(
        state,
        replace_struct(
            old,
            his=his,
            released=state.released,
            rate_milli=tuple(rates),
            ticks=old.ticks + 1,
            release_per_s=old.release_per_s + (leaving - old.release_per_s) * max(blend, 1.0 / (old.ticks + 1)),
        ),
    )


def _shown(state: RoomState, old: Measured) -> Measured:
    if old.ticks < SHOW_AFTER_TICKS:
        return old
    pairs = [published(shown, rate) for shown, rate in zip(old.shown_milli, old.rate_milli, strict=True)]
    fell = any(reason for _, reason in pairs)
    reason, until_us = (old.reason, old.reason_until_us) if state.now_us < old.reason_until_us else ("", 0)
    if state.config.capacity < old.capacity:
        reason, until_us = Reason.CAPACITY_CUT.value, state.now_us + REASON_US
    elif state.config.rate_per_s < old.rate_per_s:
        reason, until_us = Reason.RATE_CUT.value, state.now_us + REASON_US
    elif fell:
        reason, until_us = reason or Reason.SLOWER.value, state.now_us + REASON_US
    return replace_struct(
        old,
        shown_milli=tuple(rate for rate, _ in pairs),
        reason=reason,
        reason_until_us=until_us,
        capacity=state.config.capacity,
        rate_per_s=state.config.rate_per_s,
    )


def admitted_per_s(state: RoomState, now_us: int) -> float:
    """How many people per second were let in during about the last ten seconds. Exact for every server: the slides in
    the store say how far the window had come at which time."""
    before_us = now_us - RECENT_US
    recent = [slide for slide in state.ring if slide.at_us > before_us]
    if not recent:
        return 0.0
    older = [slide for slide in state.ring if slide.at_us <= before_us]
    # Slides close together are kept as one (`window.push`), so the oldest recent one may reach back a little further.
    passed_us = min(now_us - older[-1].at_us, RECENT_US + grace_of(state) // 32) if older else RECENT_US
    return sum(slide.size for slide in recent) * 1e6 / passed_us


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
    """What limits the next slide."""
    config = state.config
    leaving = measured.release_per_s * claim_delay_s(measured)
    coming = expected_claims(state, measured) - min(leaving, config.capacity / 4)
    free = config.capacity * (1 + measured.margin) - state.active - state.knocking - coming
    waiting = sum(lane.waiting for lane in state.lanes)
    return SlideBounds(
        due * config.window_size,
        bucket_permits(state) // 1000,
        int(free),
        waiting if waiting >= config.min_slide else 0,
    )


def admits_everybody(state: RoomState, measured: Measured, waiting: int) -> bool:
    """Whether the next slide is expected to admit all of `waiting` people, so that there is no line."""
    if state.phase is not Phase.OPEN or waiting < state.config.min_slide:
        return False
    bounds = slide_bounds(state, measured, due=1)
    return waiting <= min(bounds.due, bounds.permits, bounds.free)


def plan_slide(state: RoomState) -> SlidePlan | None:
    """The next slide, if one is due. It uses up all intervals that have passed, however few windows it admits
    (`most_windows`). With nobody to admit it still stores the measurements and uses up its intervals, except the last
    one while nobody waits: who comes next is admitted by that, at once."""
    config = state.config
    due = (state.now_us - state.slid_at_us) // config.interval_us
    if not any(lane.waiting for lane in state.lanes):
        due -= 1
    if state.phase is not Phase.OPEN or due < 1:
        return None
    measured = observe(state, read_note(state.note))
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
        note=write_note(replace_struct(measured, credits=credits)),
        admitted=admitted,
    )


def apply_plan(state: RoomState, plan: SlidePlan) -> RoomState:
    """The state after this plan, which the audit records before the store makes the slide."""
    lanes = tuple(replace(lane, hi=hi, lo=lo) for lane, hi, lo in zip(state.lanes, plan.his, plan.los, strict=True))
    return replace(state, lanes=lanes, ring=plan.ring, slide_no=state.slide_no + 1, note=plan.note)
