"""Pure: how fast people are admitted, as measured and as shown.

The leader measures admissions per lane and departures as moving averages. The shown rate follows by the rules of
`wait_estimate.published`.
"""

from math import exp

from msgspec.structs import replace

from frontrow.waitingroom.model.measurements import Measured
from frontrow.waitingroom.model.no_shows import grace_of
from frontrow.waitingroom.model.room_state import RoomState
from frontrow.waitingroom.model.wait_estimate import REASON_US, Reason, published

RATE_MEMORY_S = 30.0
RECENT_US = 10_000_000  # the time over which `admitted_per_s` counts
SHOW_AFTER_TICKS = 10


def observe_rates(state: RoomState, old: Measured, gap_s: float) -> Measured:
    """The measured rates after another `gap_s` seconds: admissions per lane, departures, and what is shown of them."""
    his = tuple(lane.hi for lane in state.lanes)
    blend = 1.0 - exp(-gap_s / RATE_MEMORY_S)
    if gap_s <= 0 or len(old.his) != len(his) or old.ticks < 2:  # the first slides fill an empty shop: no measure
        blank = (0,) * len(his)
        ticks = old.ticks + (1 if any(his) else 0)
        return replace(
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
        idle = lane.waiting == 0 and now_milli < rate  # few people came, so few were admitted: not a measure of speed
        rates.append(rate if idle else round(rate + (now_milli - rate) * max(blend, 1.0 / (old.ticks + 1))))
    leaving = (state.released - old.released) / gap_s
    return _shown(
        state,
        replace(
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
    return replace(
        old,
        shown_milli=tuple(rate for rate, _ in pairs),
        reason=reason,
        reason_until_us=until_us,
        capacity=state.config.capacity,
        rate_per_s=state.config.rate_per_s,
    )


def admitted_per_s(state: RoomState, now_us: int) -> float:
    """The people admitted per second during about the last ten seconds. It is exact on every server, because the slides
    in the store have their times."""
    before_us = now_us - RECENT_US
    recent = [slide for slide in state.ring if slide.at_us > before_us]
    if not recent:
        return 0.0
    older = [slide for slide in state.ring if slide.at_us <= before_us]
    # Slides close together are merged (`window.push`), so the oldest recent one may begin a little earlier.
    passed_us = min(now_us - older[-1].at_us, RECENT_US + grace_of(state) // 32) if older else RECENT_US
    return sum(slide.size for slide in recent) * 1e6 / passed_us
