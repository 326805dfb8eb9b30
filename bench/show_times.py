"""When the shows of the pictures begin."""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from frontrow.core.clock import US_PER_S

HALL_ZONE: Final = ZoneInfo("Europe/Vienna")  # of the hall that `put_hall` makes
EVENING_HOUR: Final = 20


def evening_us(now_us: int, days: int) -> int:
    """Eight in the evening at the hall, in so many days."""
    day = datetime.fromtimestamp(now_us // US_PER_S, HALL_ZONE) + timedelta(days=days)
    return int(day.replace(hour=EVENING_HOUR, minute=0, second=0).timestamp()) * US_PER_S
