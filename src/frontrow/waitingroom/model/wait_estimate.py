"""Pure: the estimated wait of a place, from the people ahead and the rate of admissions that is shown.

The shown rate of a lane falls only together with a stated reason, so an estimate never rises silently.
"""

from enum import StrEnum
from math import ceil

import msgspec

BAND_PERCENT = 25
REASON_US = 60_000_000  # how long a stated reason for a slower line is shown


class Reason(StrEnum):
    """Why an estimate may have risen."""

    NONE = ""
    PAUSED = "paused"
    HELD = "held"
    CAPACITY_CUT = "capacity"
    RATE_CUT = "rate"
    SLOWER = "slower"


class Wait(msgspec.Struct, frozen=True, gc=False):
    """An estimated wait from `low_s` to `high_s` seconds; both None if the wait is not known."""

    low_s: int | None
    high_s: int | None
    reason: Reason = Reason.NONE


def estimate(ahead: int, rate_milli: int, reason: Reason) -> Wait:
    """The wait with `ahead` people in front at `rate_milli` admissions per 1000 seconds."""
    if rate_milli <= 0 or reason in (Reason.PAUSED, Reason.HELD):
        return Wait(None, None, reason)
    low_s, high_s = band_s(ahead, rate_milli)
    return Wait(low_s, high_s, reason)


def band_s(ahead: int, rate_milli: int) -> tuple[int, int]:
    """The least and the most seconds of the wait."""
    exact = (ahead + 1) * 1000 / rate_milli
    return int(exact * (100 - BAND_PERCENT) / 100), ceil(exact * (100 + BAND_PERCENT) / 100)


def published(shown_milli: int, measured_milli: int) -> tuple[int, Reason]:
    """The rate to show next. It rises at once, stays while the measured one is inside the band, and falls only with the
    reason `slower`."""
    if measured_milli >= shown_milli:
        return measured_milli, Reason.NONE
    if measured_milli * 100 >= shown_milli * (100 - BAND_PERCENT):
        return shown_milli, Reason.NONE
    return measured_milli, Reason.SLOWER
