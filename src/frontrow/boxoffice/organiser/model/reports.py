"""An event's report as values: sales by day, price tier and channel, refunds, check-ins. Pure.

A day is a day at the venue, so a sale at half past midnight belongs to the day that the box office would say. The
ledger counts by quarter of an hour; every time zone's days begin on one.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from frontrow.boxoffice.organiser.model.csv_cells import amount_cell
from frontrow.boxoffice.organiser.model.sales_figures import Amount, Group
from frontrow.core.clock import US_PER_S

QUARTER_US: Final = 900 * US_PER_S
MAX_QUARTERS: Final = 40_000  # with sales in them: more than a year without a break
MAX_DAYS: Final = 1_000
BESIDES: Final = "add_ons_and_booking_fees"  # the row of what is no seat
CHANNELS: Final = ("online", "presale", "waitlist", "box_office", "guests")


class DaySales(msgspec.Struct, frozen=True):
    """What was sold and refunded on one day at the venue (`day` is like 2026-11-16)."""

    day: str
    bookings: int = 0
    seats: int = 0
    sold_minor: int = 0
    refunds: int = 0
    refunded_minor: int = 0


class ChannelSales(msgspec.Struct, frozen=True):
    """What was sold in one way: in the general sale, before it, from the waitlist, by staff, or given to guests."""

    channel: str
    bookings: int
    seats: int
    sold_minor: int


class CheckIns(msgspec.Struct, frozen=True):
    """How many valid tickets were let in. `no_shows` is known once the show is over. `steps` are (time, admitted by
    then)."""

    tickets: int
    admitted: int
    no_shows: int | None
    steps: list[tuple[int, int]]


class EventReport(msgspec.Struct, frozen=True):
    """Everything an organiser reads about one event's sale."""

    event_id: str
    at_us: int
    time_zone: str
    currency: str
    seats: Group
    tiers: list[Group]
    days: list[DaySales]
    channels: list[ChannelSales]
    money: list[Amount]
    check_ins: CheckIns
    besides_minor: int = 0  # what sold bookings are worth besides their seats: add-ons and fees per booking


class Table(msgspec.Struct, frozen=True):
    """A table of a report, for a file."""

    name: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def day_at(at_us: int, zone: ZoneInfo) -> date:
    """The day that the venue's calendar shows."""
    return datetime.fromtimestamp(at_us / US_PER_S, UTC).astimezone(zone).date()


def sales_by_day(
    sold: Sequence[Sequence[Any]], refunded: Sequence[Sequence[Any]], zone: ZoneInfo, last: date
) -> list[DaySales]:
    """Every day from the first sale to `last`, from (quarter, bookings, seats, amount) and (quarter, refunds, amount).
    Days without a sale are there too; of very long sales, the last MAX_DAYS."""
    sums: dict[date, list[int]] = {}
    for rows, first in ((sold, 0), (refunded, 3)):
        for quarter, *counts in rows:
            of_day = sums.setdefault(day_at(int(quarter) * QUARTER_US, zone), [0] * 5)
            for at, count in enumerate(counts, first):
                of_day[at] += int(count)
    if not sums:
        return []
    begin = max(min(sums), last - timedelta(MAX_DAYS - 1))
    days = [begin + timedelta(number) for number in range((max(last, begin) - begin).days + 1)]
    return [DaySales(day.isoformat(), *sums.get(day, ())) for day in days]


def check_ins(counts: Sequence[Any], quarters: Sequence[Sequence[Any]], *, is_over: bool) -> CheckIns:
    """From (valid tickets, admitted) and the admissions of each quarter of an hour."""
    tickets, admitted = int(counts[0]), int(counts[1])
    steps, so_far = [], 0
    for quarter, count in quarters:
        so_far += int(count)
        steps.append(((int(quarter) + 1) * QUARTER_US, so_far))
    return CheckIns(tickets, admitted, tickets - admitted if is_over else None, steps)


def report_tables(report: EventReport, tier_names: Mapping[str, str]) -> list[Table]:
    """The report as tables. Amounts are in units of the currency, such as 140.00."""

    def amount(minor: int) -> Any:
        return amount_cell(minor, report.currency)

    checked = report.check_ins
    zone = ZoneInfo(report.time_zone)
    return [
        Table(
            "days",
            ("day", "bookings", "tickets", "sold", "refunds", "refunded", "currency"),
            [
                (
                    one.day,
                    one.bookings,
                    one.seats,
                    amount(one.sold_minor),
                    one.refunds,
                    amount(one.refunded_minor),
                    report.currency,
                )
                for one in report.days
            ],
        ),
        Table(
            "tiers",
            ("price_tier", "seats", "sold", "held", "free", "revenue", "currency"),
            [
                (
                    tier_names.get(one.name) or one.name,
                    one.seats - one.withheld,
                    one.sold,
                    one.held,
                    one.free,
                    amount(one.sold_minor),
                    report.currency,
                )
                for one in report.tiers
            ]
            + [(BESIDES, "", "", "", "", amount(minor), report.currency) for minor in [report.besides_minor] if minor],
        ),
        Table(
            "channels",
            ("channel", "bookings", "tickets", "sold", "currency"),
            [
                (one.channel, one.bookings, one.seats, amount(one.sold_minor), report.currency)
                for one in report.channels
            ],
        ),
        Table(
            "money",
            ("currency", "captured", "refunded", "refunds_open", "fees_kept", "net"),
            [
                (
                    one.currency,
                    *(
                        amount_cell(minor, one.currency)
                        for minor in (
                            one.captured_minor,
                            one.refunded_minor,
                            one.refunds_open_minor,
                            one.fees_kept_minor,
                            one.net_minor,
                        )
                    ),
                )
                for one in report.money
            ],
        ),
        Table(
            "check-in",
            ("until", "admitted", "tickets", "no_shows"),
            [
                *((_local(at_us, zone), admitted, checked.tickets, "") for at_us, admitted in checked.steps),
                ("", checked.admitted, checked.tickets, "" if checked.no_shows is None else checked.no_shows),
            ],
        ),
    ]


def _local(at_us: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_us / US_PER_S, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
