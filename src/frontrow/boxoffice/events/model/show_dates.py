"""The dates of a show that runs several times: from a list or a weekly rule to one event per date. Pure.

Dates are what the clock at the venue shows. A show at 19:30 is at 19:30 also after the clocks change. A time that the
clocks skip is refused; of a time that comes twice the first is meant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

MAX_DATES: Final = 100  # of one show
MAX_RULE_DAYS: Final = 3 * 366
_SHOWN: Final = "%Y-%m-%d %H:%M"


class SaleOpening(StrEnum):
    """When the sale of a further date opens."""

    SAME = "same"  # together with the first date's
    RELATIVE = "relative"  # as many days before the show, at the same time of day


@dataclass(frozen=True, slots=True)
class DateRule:
    """Every week on these days (0 is Monday) at these times, from the first day to the last, both included."""

    weekdays: frozenset[int]
    times: tuple[time, ...]
    first: date
    last: date


def dates_by_rule(rule: DateRule) -> list[datetime]:
    """The dates that the rule means, in order, without a zone."""
    if not rule.weekdays or not rule.weekdays <= set(range(7)):
        raise InvalidInput("choose at least one day of the week (0 is Monday, 6 is Sunday)", param="weekdays")
    if not rule.times:
        raise InvalidInput("a rule needs a time such as 19:30", param="times")
    days = (rule.last - rule.first).days
    if not 0 <= days <= MAX_RULE_DAYS:
        raise InvalidInput(f"the last day must be 0 to {MAX_RULE_DAYS} days after the first", param="last_day")
    on = [rule.first + timedelta(days=n) for n in range(days + 1)]
    found = [
        datetime.combine(day, at) for day in on if day.weekday() in rule.weekdays for at in sorted(set(rule.times))
    ]
    if not found:
        raise InvalidInput("no such day of the week is between the first and the last day", param="weekdays")
    return found


def venue_time_us(at: datetime, zone: str) -> int:
    """The moment at which the clock of `zone` shows `at`; refused if the clocks skip it."""
    moment = at.replace(tzinfo=ZoneInfo(zone), fold=0)
    back = moment.astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if back != at.replace(fold=0):
        shown = at.strftime(_SHOWN)
        raise InvalidInput(
            f"{shown} does not exist in {zone}: the clocks skip it", param="dates", reason="skipped_time", time=shown
        )
    return int(moment.timestamp()) * US_PER_S


def moments_of(dates: Sequence[datetime], zone: str) -> list[int]:
    """These dates as moments, in order and without repetitions. At most `MAX_DATES`."""
    found = sorted({venue_time_us(at, zone) for at in dates})
    if not 1 <= len(found) <= MAX_DATES:
        raise InvalidInput(f"give 1 to {MAX_DATES} dates, not {len(found)}", param="dates")
    return found


def further_dates(
    event: Event, ids: Sequence[str], starts: Sequence[int], zone: str, opening: SaleOpening
) -> list[Event]:
    """A draft per start, like `event` in everything else. The sale ends as long before the show as the event's."""
    return [_at(event, event_id, start_us, zone, opening) for event_id, start_us in zip(ids, starts, strict=True)]


def _at(event: Event, event_id: str, start_us: int, zone: str, opening: SaleOpening) -> Event:
    later_us = start_us - event.starts_at_us
    shift = timedelta() if opening is SaleOpening.SAME else _day(start_us, zone) - _day(event.starts_at_us, zone)
    presale_us = event.presale_starts_at_us
    return replace(
        event,
        id=event_id,
        status=EventStatus.DRAFT,
        paused=False,
        starts_at_us=start_us,
        ends_at_us=event.ends_at_us + later_us if event.ends_at_us else 0,
        sale_starts_at_us=_shifted(event.sale_starts_at_us, shift, zone),
        sale_ends_at_us=event.sale_ends_at_us + later_us,
        presale_starts_at_us=_shifted(presale_us, shift, zone) if presale_us else 0,
    )


def _local(at_us: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at_us / US_PER_S, UTC).astimezone(ZoneInfo(zone))


def _day(at_us: int, zone: str) -> date:
    return _local(at_us, zone).date()


def _shifted(at_us: int, by: timedelta, zone: str) -> int:
    """The same time of day, so many days later. A time that the clocks skip is read with the clock before."""
    if not by:
        return at_us
    local = (_local(at_us, zone).replace(tzinfo=None) + by).replace(tzinfo=ZoneInfo(zone))
    return int(local.timestamp()) * US_PER_S
