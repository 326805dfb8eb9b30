"""An event's report (B13): sales by day, tier and channel, refunds, no-shows and check-ins, added up by the ledger."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.reports import (
    CHANNELS,
    QUARTER_US,
    ChannelSales,
    EventReport,
    check_ins,
    day_at,
    sales_by_day,
)
from frontrow.boxoffice.organiser.ports.figures import FiguresBook
from frontrow.boxoffice.organiser.sales_figures import SalesFigures
from frontrow.core.clock import US_PER_S, Clock


class Reports:
    """Makes reports. The figures give what a report shares with the live sale."""

    def __init__(self, book: FiguresBook, figures: SalesFigures, clock: Clock) -> None:
        self._book, self._figures, self._clock = book, figures, clock

    async def of(self, event: Event, time_zone: str) -> EventReport:
        """The report of an event. `time_zone` is the venue's."""
        now_us, book, zone = self._clock(), self._book, ZoneInfo(time_zone)
        figures = await self._figures.of(event)
        sold, refunded = await book.sold_by_quarter(event.id), await book.refunded_by_quarter(event.id)
        last = datetime.fromtimestamp(now_us / US_PER_S, UTC).astimezone(zone).date()
        if max(event.sale_ends_at_us, event.starts_at_us) < now_us:  # nothing more happens: end with the last sale
            last = max([day_at(int(row[0]) * QUARTER_US, zone) for row in (*sold[:1], *refunded[:1])] or [last])
        by_channel = {row[0]: row for row in await book.sold_by_channel(event.id, event.sale_starts_at_us)}
        names = [*CHANNELS, *sorted(by_channel.keys() - set(CHANNELS))]
        return EventReport(
            event.id,
            now_us,
            time_zone,
            event.currency,
            figures.seats,
            figures.tiers,
            sales_by_day(sold, refunded, zone, last),
            [ChannelSales(name, *map(int, by_channel[name][1:])) for name in names if name in by_channel],
            figures.money,
            check_ins(
                await book.checked_in(event.id),
                await book.checked_in_by_quarter(event.id),
                is_over=max(event.starts_at_us, event.ends_at_us) < now_us,
            ),
            figures.besides_minor,
        )
