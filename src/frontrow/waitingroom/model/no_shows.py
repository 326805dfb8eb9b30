"""Pure: how many admitted people are still expected to claim their place, and how many never come.

An admitted person may come at once, late or never. The leader measures, by age, how many claims an unclaimed place
gets per second. So the room does not keep capacity for no-shows, and does not count them twice when they come back.
Until there is a measurement, everybody is expected to come.
"""

from math import exp

from msgspec.structs import replace

from frontrow.waitingroom.model.measurements import AGES, Measured
from frontrow.waitingroom.model.room_state import RoomState

MEMORY_S = 600.0  # how long a measured show rate counts
MIN_EXPOSURE_S = 5.0  # person-seconds below which an age class is not used


def age_class(age_us: int) -> int:
    return min(AGES - 1, (max(0, age_us) // 1_000_000).bit_length())


def still_coming(measured: Measured, age_us: int, grace_us: int) -> float:
    """The probability that a place, unclaimed `age_us` after its admission, is claimed before its grace ends."""
    first, last, total, hazard, is_measured = age_class(age_us), age_class(grace_us), 0.0, 0.0, False
    for index in range(AGES):
        if measured.exposure_s[index] >= MIN_EXPOSURE_S:
            hazard, is_measured = measured.claims[index] / measured.exposure_s[index], True
        else:
            hazard /= 4  # no place was that old yet: assume that interest fades
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
    """The share of admitted people who claim their place."""
    return still_coming(measured, 0, grace_us)


def observe_claims(state: RoomState, old: Measured, gap_s: float) -> Measured:
    """The measured claims after another `gap_s` seconds."""
    keep = exp(-gap_s / MEMORY_S)
    exposure_s, claims = [x * keep for x in old.exposure_s], [x * keep for x in old.claims]
    for slide in state.ring:
        took = state.took.get(slide.number, 0)
        index = age_class(state.now_us - slide.at_us)
        claims[index] += max(0, took - old.seen.get(str(slide.number), 0))
        exposure_s[index] += max(0, slide.size - took) * gap_s
    seen = {str(slide.number): state.took.get(slide.number, 0) for slide in state.ring}
    return replace(old, exposure_s=tuple(exposure_s), claims=tuple(claims), seen=seen)
