"""Times in the time zone of a place."""

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
