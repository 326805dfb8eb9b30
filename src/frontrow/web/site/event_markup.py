"""What search engines and social networks read in the head of an event's page: description, Open Graph, JSON-LD.

The JSON-LD is a schema.org `Event` with one offer per price tier. It changes only with the event, its venue and what is
sold out, so it is kept until one of them does: the page of a hot event does not pay for it.
"""

import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

from babel.numbers import get_currency_precision
from markupsafe import Markup

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.shared.local_time import local_time
from frontrow.web.site.event_display import Shown
from frontrow.web.site.render import as_json

MAX_DESCRIPTION_CHARS: Final = 200
MAX_CACHED: Final = 2_048  # events
SCHEMA: Final = "https://schema.org"
GONE: Final = frozenset({"over", "completed", "cancelled", "sold_out"})
MAX_READ_CHARS: Final = 20 * MAX_DESCRIPTION_CHARS  # of a description, for its beginning
# Each part stops at a mark that could begin the next match, or at the end of the line: no text is read again and again.
_MARKS: Final = re.compile(
    r"!?\[([^\[\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)|^#{1,6}[ \t]+|^[ \t]*[-*+>][ \t]+|[*_`]{1,3}",
    re.MULTILINE,
)


class EventMarkup(NamedTuple):
    """The head of an event's page. `json_ld` is safe inside a script element."""

    url: str
    image: str
    description: str
    json_ld: Markup


class EventMarkups:
    """Makes the markup of events and keeps it while nothing in it changes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Event, Venue | None, tuple[Any, ...], EventMarkup]] = {}

    def of(self, one: Shown, public_url: str) -> EventMarkup:
        about = (public_url, one.state, tuple(tier.free > 0 for tier in one.free.tiers) if one.free else ())
        kept = self._kept.get(one.event.id)
        if kept is not None and kept[0] is one.event and kept[1] == one.venue and kept[2] == about:
            return kept[3]
        made = make_markup(one, public_url.rstrip("/"))
        if len(self._kept) >= MAX_CACHED:
            self._kept.clear()
        self._kept[one.event.id] = (one.event, one.venue, about, made)
        return made


def make_markup(one: Shown, site: str) -> EventMarkup:
    """The markup of one event, on the site with this address."""
    event = one.event
    url = f"{site}/events/{event.id}"
    image = f"{site}/pictures/{event.picture}" if event.picture else f"{url}/poster.png"
    description = plain_text(event.description) or ", ".join(part for part in (event.name, one.place) if part)
    about: dict[str, Any] = {
        "@context": SCHEMA,
        "@type": "Event",
        "name": event.name,
        "url": url,
        "image": [image],
        "description": description,
        "startDate": local_time(event.starts_at_us, one.zone).isoformat(),
        "eventStatus": f"{SCHEMA}/{'EventCancelled' if event.status is EventStatus.CANCELLED else 'EventScheduled'}",
        "eventAttendanceMode": f"{SCHEMA}/OfflineEventAttendanceMode",
        "offers": _offers(one, url),
    }
    if event.line_up:
        about["performer"] = [{"@type": "PerformingGroup", "name": name} for name in event.line_up]
    if event.ends_at_us:
        about["endDate"] = local_time(event.ends_at_us, one.zone).isoformat()
    if one.venue is not None:
        about["location"] = _place(one.venue)
    return EventMarkup(url, image, description, as_json(about))


def _place(venue: Venue) -> dict[str, Any]:
    address = {"@type": "PostalAddress", "addressLocality": venue.city, "addressCountry": venue.country}
    return {"@type": "Place", "name": venue.name, "address": {name: text for name, text in address.items() if text}}


def _offers(one: Shown, url: str) -> list[dict[str, Any]]:
    """One offer per price tier, at what one seat costs with its fees."""
    free = {tier.name: tier.free for tier in one.free.tiers} if one.free else {}
    event, digits = one.event, get_currency_precision(one.event.currency)
    return [
        {
            "@type": "Offer",
            "name": tier.name or tier.key,
            "price": f"{Decimal(tier.each_minor).scaleb(-digits):f}",
            "priceCurrency": event.currency,
            "availability": f"{SCHEMA}/{_availability(one.state, free.get(tier.key))}",
            "validFrom": local_time(event.opens_at_us, one.zone).isoformat(),
            "validThrough": local_time(event.sale_ends_at_us, one.zone).isoformat(),
            "url": url,
        }
        for tier in one.prices.tiers.values()
    ]


def _availability(state: str, free: int | None) -> str:
    if state in GONE:
        return "SoldOut" if state == "sold_out" else "Discontinued"
    if state in ("soon", "presale"):
        return "PreSale" if state == "presale" else "PreOrder"
    return "SoldOut" if free == 0 else "InStock"


def plain_text(markdown: str) -> str:
    """The beginning of a description without its marks, on one line, cut at a word."""
    text = " ".join(_MARKS.sub(lambda mark: mark[1] or "", markdown[:MAX_READ_CHARS]).split())
    if len(text) <= MAX_DESCRIPTION_CHARS:
        return text if len(markdown) <= MAX_READ_CHARS else f"{text} …".lstrip()
    return text[:MAX_DESCRIPTION_CHARS].rpartition(" ")[0] + " …"
