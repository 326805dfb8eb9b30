"""A member's feeds (B13): the calendar of all events, and a table of sales, at an address that only the member knows.

The address contains a secret of 256 bits; the ledger keeps its hash. What a feed shows follows the member's role at the
time of each request. A new address ends the old one.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.organiser.model.csv_cells import amount_cell, to_csv
from frontrow.boxoffice.organiser.model.sales_figures import EventFigures
from frontrow.boxoffice.organiser.ports.reports import ReportBook
from frontrow.boxoffice.people.model.people import Staff, secret_hash
from frontrow.boxoffice.people.model.roles import ROLES
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound

PREFIX: Final = "frf_"
HASHED_AS: Final = "feed"
PERMISSIONS: Final = {"events.ics": "events:read", "sales.csv": "figures:read"}
MAX_EVENTS: Final = 500  # in a calendar
MAX_SALES: Final = 100  # in a table of sales
PAST_US: Final = 366 * 86_400 * US_PER_S
HOUR_US: Final = 3600 * US_PER_S
SALES_HEADER: Final = (
    "event",
    "name",
    "starts_at",
    "state",
    "seats",
    "sold",
    "held",
    "free",
    "revenue",
    "refunded",
    "currency",
)


FiguresOf = Callable[[Event], Awaitable[EventFigures]]


class Feeds:
    """Makes, ends and reads feeds."""

    def __init__(self, book: ReportBook, catalogue: Catalogue, figures_of: FiguresOf, clock: Clock) -> None:
        self._book, self._catalogue, self._figures_of, self._clock = book, catalogue, figures_of, clock

    async def create(self, staff_id: str) -> str:
        """A new secret for this member's feeds. It is shown once; an earlier one ends."""
        secret = PREFIX + secrets.token_urlsafe(32)
        await self._book.save_feed_address(staff_id, secret_hash(HASHED_AS, secret), self._clock())
        return secret

    async def revoke(self, staff_id: str) -> None:
        await self._book.drop_feed_address(staff_id, self._clock())

    async def made_at_us(self, staff_id: str) -> int | None:
        """When this member's address was made; None without one."""
        return await self._book.feed_made_at_us(staff_id)

    async def member(self, secret: str, file: str) -> Staff:
        """The member whose feed this is and who may still see it; else `NotFound`."""
        permission = PERMISSIONS.get(file)
        member = await self._book.member_of_feed(secret_hash(HASHED_AS, secret)) if permission else None
        if member is None or permission not in ROLES[member.role]:
            raise NotFound("there is no such feed; make a new address under Feeds")
        return member

    async def calendar(self, organiser_id: str, public_url: str) -> bytes:
        """The organiser's events as a calendar: those of the last year and all to come."""
        from icalendar import Calendar, vText  # not at the start of a server: it takes a tenth of a second
        from icalendar import Event as Entry

        calendar = Calendar()
        for name, value in (("prodid", "-//Frontrow//Events//EN"), ("version", "2.0"), ("method", "PUBLISH")):
            calendar.add(name, value)
        for event in await self._events(organiser_id, MAX_EVENTS):
            venue = await self._catalogue.venue(event.venue_id)
            entry = Entry()
            entry.add("uid", f"{event.id}@frontrow")
            entry.add("dtstamp", _time(self._clock()))
            entry.add("dtstart", _time(event.starts_at_us))
            entry.add("dtend", _time(max(event.ends_at_us, event.starts_at_us + 2 * HOUR_US)))
            entry.add("summary", event.name)
            entry.add("url", f"{public_url}/organiser/events/{event.id}")
            entry.add("status", _STATUS.get(event.status, "CONFIRMED"))
            if venue is not None:
                entry["location"] = vText(", ".join(part for part in (venue.name, venue.city) if part))
            calendar.add_component(entry)
        return bytes(calendar.to_ical())

    async def sales(self, organiser_id: str) -> str:
        """One row per event with what is sold, in units of its currency."""
        rows = []
        for event in await self._events(organiser_id, MAX_SALES):
            figures = await self._figures_of(event)
            seats = figures.seats
            money = [one for one in figures.money if one.currency == event.currency]
            rows.append(
                (
                    event.id,
                    event.name,
                    _time(event.starts_at_us),
                    event.status.value,
                    seats.seats - seats.withheld,
                    seats.sold,
                    seats.held,
                    seats.free,
                    amount_cell(sum(one.net_minor for one in money), event.currency),
                    amount_cell(sum(one.refunded_minor + one.refunds_open_minor for one in money), event.currency),
                    event.currency,
                )
            )
        return to_csv(SALES_HEADER, rows)

    async def _events(self, organiser_id: str, most: int) -> Sequence[Event]:
        return await self._catalogue.events_of_organiser(organiser_id, (self._clock() - PAST_US, ""), most)


_STATUS: Final = {EventStatus.DRAFT: "TENTATIVE", EventStatus.CANCELLED: "CANCELLED"}


def _time(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us / US_PER_S, UTC)
