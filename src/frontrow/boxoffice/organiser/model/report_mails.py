"""When a report is mailed: every morning, or on Monday mornings, by the venue's clock. Pure."""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from frontrow.core.clock import US_PER_S

MORNING: Final = time(7, 0)
WEEK: Final = 7


class ReportFrequency(StrEnum):
    DAILY = "daily"
    WEEKLY = "weekly"


class ReportMail(msgspec.Struct, frozen=True):
    """A member of the team wants an event's report by mail; `next_at_us` is when the next one is due."""

    staff_id: str
    event_id: str
    frequency: ReportFrequency
    locale: str
    next_at_us: int


def next_mail_at_us(frequency: ReportFrequency, after_us: int, zone: ZoneInfo) -> int:
    """The first morning after that time: any day's, or a Monday's."""
    local = datetime.fromtimestamp(after_us / US_PER_S, UTC).astimezone(zone)
    days = 0 if frequency is ReportFrequency.DAILY else -local.weekday() % WEEK
    day = local.date() + timedelta(days)
    at_us = _morning_us(day, zone)
    if at_us > after_us:
        return at_us
    return _morning_us(day + timedelta(1 if frequency is ReportFrequency.DAILY else WEEK), zone)


def days_reported(frequency: ReportFrequency, now_us: int, zone: ZoneInfo) -> tuple[date, date]:
    """The first and the last day of the newest complete period: yesterday, or the last week from Monday to Sunday."""
    today = datetime.fromtimestamp(now_us / US_PER_S, UTC).astimezone(zone).date()
    if frequency is ReportFrequency.DAILY:
        return today - timedelta(1), today - timedelta(1)
    sunday = today - timedelta(today.weekday() + 1)
    return sunday - timedelta(WEEK - 1), sunday


def _morning_us(day: date, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, MORNING, zone).timestamp()) * US_PER_S
