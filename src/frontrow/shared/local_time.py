"""Times in the time zone of a place, and as machines read them."""

import functools
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from frontrow.core.clock import US_PER_S

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone(name: str) -> tzinfo:
    """The time zone of this name, or UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def local_time(time_us: int, time_zone: str) -> datetime:
    """The time in the venue's time zone, limited to what a calendar can represent."""
    seconds = max(0, min(time_us // US_PER_S, 250_000_000_000))
    return (EPOCH + timedelta(seconds=seconds)).astimezone(zone(time_zone))


def time_text(at_us: int) -> str:
    """RFC 3339 in UTC, to the microsecond only where there are any."""
    second, rest_us = divmod(at_us, US_PER_S)
    return f"{_second_text(second)}.{rest_us:06d}Z" if rest_us else f"{_second_text(second)}Z"


@functools.lru_cache(1_000)
def _second_text(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).replace(tzinfo=None).isoformat()
