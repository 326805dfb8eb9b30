"""What fans see before the sale: the events, found and filtered, and one event with its countdown."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from babel.numbers import get_currency_precision
from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.events.model.event_search import (
    END_OF_TIME_US,
    MAX_PAGES,
    MAX_PLACE_CHARS,
    MAX_QUERY_CHARS,
    EventSearch,
)
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.seats.model.venues import SectionKind
from frontrow.core.clock import US_PER_S
from frontrow.shared.local_time import local_time, time_text
from frontrow.web.platform.event_access import shown_event
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.event_display import Shown, shown
from frontrow.web.site.event_markup import EventMarkups
from frontrow.web.site.fans.signups import before_sale
from frontrow.web.site.languages import N_
from frontrow.web.site.render import GUESTS, render, words_for
from frontrow.web.site.routes import page

Asked = Request[Any, Any, Any]
DAY_US: Final = 86_400 * US_PER_S
PAGE: Final = 24
GONE: Final = ("cancelled", "completed", "over")  # states of other dates that are not offered
MAX_SEATS: Final = 100
WEEK_DAYS: Final = 7
MANY_SHOWS: Final = 6  # of one month, from which on they are told apart by city
MAX_CITIES: Final = 12  # offered beside the search
MAX_PRICE: Final = Decimal(10**9)
MARKUPS: Final = EventMarkups()
WHENS: Final = {
    "": (N_("Any date"), 0, 0),
    "week": (N_("Next 7 days"), 0, 7),
    "month": (N_("Next 30 days"), 0, 30),
    "later": (N_("Later"), 30, 0),
}
SHOWS: Final = {
    "": N_("All events"),
    "sale": N_("On sale now"),
    "soon": N_("Sale opens soon"),
    "sold_out": N_("Sold out"),
}


class EventFilter(msgspec.Struct, frozen=True):
    """The search form as filled in; an unreadable field counts as empty."""

    q: str = ""
    city: str = ""
    venue: str = ""
    when: str = ""
    first: date | None = None
    last: date | None = None
    price: Decimal | None = None
    currency: str = ""
    seats: int = 0
    show: str = ""
    page: int = 1

    @property
    def narrow(self) -> bool:
        """Whether any filter is set."""
        return bool(self.params(1))

    @property
    def more(self) -> bool:
        """Whether one of the fields that are folded away was filled in."""
        return bool(
            self.venue or self.first or self.last or self.price is not None or self.seats or self.show or self.when
        )

    def params(self, number: int) -> str:
        """The address of a page of the same search."""
        given = {
            "q": self.q,
            "city": self.city,
            "venue": self.venue,
            "when": self.when,
            "from": self.first.isoformat() if self.first else "",
            "to": self.last.isoformat() if self.last else "",
            "price": f"{self.price:f}" if self.price is not None else "",
            "currency": self.currency if self.price is not None else "",
            "seats": str(self.seats or ""),
            "show": self.show,
            "page": str(number) if number > 1 else "",
        }
        return urlencode({name: value for name, value in given.items() if value})

    def in_city(self, city: str) -> str:
        """The address of the same search in one city; empty: in all of them."""
        return msgspec.structs.replace(self, city=city).params(1)

    def search(self, now_us: int) -> EventSearch:
        """What the index is asked for: shows to come, on sale or sold out, unless the form asks for more."""
        _, first_day, last_day = WHENS[self.when]
        search = EventSearch(
            words=self.q,
            status=EventStatus.SOLD_OUT if self.show == "sold_out" else None,
            city=self.city,
            venue=self.venue,
            from_us=now_us + first_day * DAY_US,
            before_us=now_us + last_day * DAY_US if last_day else END_OF_TIME_US,
            local_from_us=_midnight_us(self.first) if self.first else -END_OF_TIME_US,
            local_before_us=_midnight_us(self.last) + DAY_US if self.last else END_OF_TIME_US,
            free=self.seats,
            page=self.page,
            limit=PAGE,
        )
        if self.price is not None:
            minor = int(self.price.scaleb(get_currency_precision(self.currency)))
            search = msgspec.structs.replace(search, currency=self.currency, max_price_minor=minor)
        if self.show == "sale":
            begun = {"sale_before_us": now_us + 1, "sale_ends_after_us": now_us}
            return msgspec.structs.replace(search, status=EventStatus.ON_SALE, **begun)
        return msgspec.structs.replace(search, sale_from_us=now_us + 1) if self.show == "soon" else search


class EventGroup(msgspec.Struct, frozen=True):
    """Events of one week or month; `cities` has one entry with no name if they are not told apart by city."""

    soon: bool  # within the week
    at_us: int
    zone: str
    leads: bool  # the first of the page
    cities: list[tuple[str, list[Shown]]]


def one_per_show(found: Sequence[Shown]) -> tuple[list[Shown], dict[str, int]]:
    """The first date of each show, and how many more of the same are among these, by the first one's id."""
    first: dict[str, Shown] = {}
    more: dict[str, int] = {}
    for one in found:
        kept = first.setdefault(one.event.show_id or one.event.id, one)
        if kept is not one:
            more[kept.event.id] = more.get(kept.event.id, 0) + 1
    return list(first.values()), more


def group_events(found: Sequence[Shown], now_us: int) -> list[EventGroup]:
    """The events by date: those of the next seven days, then month by month; many of one month by city too."""
    groups: dict[tuple[int, int], list[Shown]] = {}
    for one in found:
        local = local_time(one.event.starts_at_us, one.zone)
        soon = one.event.starts_at_us < now_us + WEEK_DAYS * DAY_US
        groups.setdefault((0, 0) if soon else (local.year, local.month), []).append(one)
    made: list[EventGroup] = []
    for key, shows in sorted(groups.items()):
        first = shows[0]
        made.append(EventGroup(key == (0, 0), first.event.starts_at_us, first.zone, not made, _by_city(shows)))
    return made


def _by_city(shows: list[Shown]) -> list[tuple[str, list[Shown]]]:
    cities: dict[str, list[Shown]] = {}
    for one in shows:
        cities.setdefault(one.city, []).append(one)
    if len(shows) < MANY_SHOWS or len(cities) < 2 or len(cities) > len(shows) // 2:
        return [("", shows)]
    return sorted(cities.items())


@page("/", "events")
async def events(request: Asked, platform: FromPlatform) -> Response[bytes]:
    """The events that can be bought or are to come, and those that match what is looked for."""
    currencies = await platform.ledger.browsing.catalogue.listed_currencies()
    wanted = _filter(request.query_params, currencies)
    now_us = platform.clock()
    found = await platform.box_office.browse.search(wanted.search(now_us))
    listed = [shown(platform, one.event, one.venue) for one in found.listings]
    kept, more_dates = one_per_show(listed)
    more = found.after is not None and wanted.page < MAX_PAGES
    return render(
        request,
        "events.html",
        script="js/home.js",
        cache=GUESTS,
        found=listed,
        groups=group_events(kept, now_us),
        more_dates=more_dates,
        cities=sorted({one.city for one in listed if one.city} | {wanted.city} - {""})[:MAX_CITIES],
        wanted=wanted,
        before=wanted.params(wanted.page - 1) if wanted.page > 1 else None,
        after=wanted.params(wanted.page + 1) if more else None,
        currencies=currencies,
        canonical=f"{platform.settings.public_url.rstrip('/')}/" + (f"?page={wanted.page}" if wanted.page > 1 else ""),
        whens=WHENS,
        shows=SHOWS,
    )


def _filter(given: Mapping[str, str], currencies: list[str]) -> EventFilter:
    currency = given.get("currency", "")
    when, show = given.get("when", ""), given.get("show", "")
    return EventFilter(
        q=given.get("q", "")[:MAX_QUERY_CHARS].strip(),
        city=given.get("city", "")[:MAX_PLACE_CHARS].strip(),
        venue=given.get("venue", "")[:MAX_PLACE_CHARS].strip(),
        when=when if when in WHENS else "",
        first=_date(given.get("from", "")),
        last=_date(given.get("to", "")),
        price=_price(given.get("price", "")) if currencies else None,
        currency=currency if currency in currencies else (currencies[0] if currencies else ""),
        seats=min(_number(given.get("seats", "")), MAX_SEATS),
        show=show if show in SHOWS else "",
        page=max(1, min(_number(given.get("page", "")), MAX_PAGES)),
    )


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2027-01-31") else None
    except ValueError:
        return None


def _midnight_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * US_PER_S


def _price(text: str) -> Decimal | None:
    try:
        price = Decimal(text.strip().replace(",", "."))
    except InvalidOperation:
        return None
    return price if price.is_finite() and 0 <= price <= MAX_PRICE else None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


@page("/events/{event_id:str}", "event")
async def event(request: Asked, platform: FromPlatform, caller: FromCaller, event_id: FromPath[str]) -> Response[bytes]:
    """One event, with the link into its sale."""
    catalogue = platform.ledger.browsing.catalogue
    event = await shown_event(platform, event_id, catalogue)
    one = shown(platform, event, await catalogue.venue(event.venue_id))
    visit = caller.shop_pass
    inside = visit is not None and visit.event_id == event.id and visit.expires_at_us > platform.clock()
    tiers = {tier.name: tier for tier in one.free.tiers} if one.free else {}
    return render(
        request,
        "event.html",
        script="js/event.js",
        cache=GUESTS,
        visit_of=event.id if inside else "",
        one=one,
        inside=inside,
        tiers=tiers,
        standing=_is_standing_only(platform, event),
        opens_at=time_text(event.opens_at_us if one.state == "soon" else event.sale_starts_at_us),
        now=time_text(platform.clock()),
        before=await before_sale(platform, caller, event, one.state),
        dates=(dates := await _other_dates(platform, event)),
        months=_by_month(request, dates),
        markup=(markup := MARKUPS.of(one, platform.settings.public_url)),
        page_url=markup.url,
    )


def _is_standing_only(platform: Platform, event: Event) -> bool:
    """Whether nobody sits there, as far as this server sells it."""
    if event.id not in platform.box_office.openings:
        return False
    sections = platform.box_office.sales.get(event.id).plan.sections
    return all(section.kind is SectionKind.AREA for section in sections)


def _by_month(request: Asked, dates: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    """The dates of a show under the name of their month."""
    words, months = words_for(request), dict[str, list[Shown]]()
    for one in dates:
        months.setdefault(words.month(one.event.starts_at_us, one.zone), []).append(one)
    return list(months.items())


async def _other_dates(platform: Platform, event: Event) -> list[Shown]:
    """The dates of the same show that can still be visited, without this one."""
    if not event.show_id:
        return []
    found = await platform.box_office.browse.dates_of(event, platform.clock())
    dates = [shown(platform, one.event, one.venue) for one in found if one.event.id != event.id]
    return [one for one in dates if one.state not in GONE]


ROUTES: list[HTTPRouteHandler] = [events, event]
