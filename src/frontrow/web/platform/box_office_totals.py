"""What the team took at the box office, by day in the venue's time."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.box_office_sales import BoxOfficeTotal
from frontrow.core.clock import US_PER_S
from frontrow.web.platform.platform import Platform


async def box_office_totals(platform: Platform, event: Event, day: date | None) -> tuple[date, list[BoxOfficeTotal]]:
    """A day in the venue's time (None: today) and its totals."""
    venue = await platform.ledger.catalogue.venue(event.venue_id)
    zone = ZoneInfo(venue.time_zone if venue else "UTC")
    day = day or datetime.fromtimestamp(platform.clock() / US_PER_S, zone).date()
    begins = datetime(day.year, day.month, day.day, tzinfo=zone)
    after = day + timedelta(days=1)
    ends = datetime(after.year, after.month, after.day, tzinfo=zone)
    from_us, before_us = (int(moment.timestamp()) * US_PER_S for moment in (begins, ends))
    return day, await platform.organiser.box_office_sales.totals(event, from_us, before_us)
