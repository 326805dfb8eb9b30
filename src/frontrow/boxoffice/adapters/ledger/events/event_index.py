"""Updates the search index of events, inside the transaction that changes an event or a venue.

An event is indexed by its own words and those of its venue. The venue's row is locked while its words are copied, so
that an event and its venue can change at the same time without leaving old words behind.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.events.model.event_search import event_words, local_us, venue_words
from frontrow.boxoffice.events.model.events import Event, over_at_us
from frontrow.boxoffice.pricing.model.prices import PriceList
from frontrow.boxoffice.seats.model.venues import Venue

WORDS_AT_ONCE: Final = 20_000
EVENTS_AT_ONCE: Final = 5_000


def index_events(events: Sequence[Event]) -> Program[None]:
    """Index these events as they are now."""
    venues: dict[str, Venue] = {}
    for venue_id in sorted({event.venue_id for event in events}):
        rows = yield Query("locked_venue", params=(venue_id,))
        venues[venue_id] = Venue(*rows[0]) if rows else Venue(venue_id, "", "")
    yield Query("put_listings", [_listing(event, venues[event.venue_id]) for event in events])
    dates = [(event.id, event.show_id, event.starts_at_us) for event in events if event.show_id]
    if dates:
        yield Query("put_show_dates", dates)
    yield Query("drop_event_words", [(event.id,) for event in events])
    words_of_venue = {venue.id: venue_words(venue) for venue in venues.values()}
    words = [(word, event.id, "event") for event in events for word in event_words(event)]
    words += [(word, event.id, "venue") for event in events for word in words_of_venue[event.venue_id]]
    words.sort()  # the same order for all writers
    for start in range(0, len(words), WORDS_AT_ONCE):
        yield Query("put_event_words", words[start : start + WORDS_AT_ONCE])


def _listing(event: Event, venue: Venue) -> Row:
    prices = [tier.shown_minor for tier in PriceList(event).tiers.values()]
    return (
        event.id,
        event.plan_hash,
        event.status.value,
        event.starts_at_us,
        local_us(event.starts_at_us, venue.time_zone),
        event.sale_starts_at_us,
        event.sale_ends_at_us,
        over_at_us(event),
        event.currency,
        min(prices, default=-1),
        max(prices, default=-1),
        len(event.withheld),
    )


def index_venue(venue: Venue) -> Program[None]:
    """Index the events of this venue by its new name, place and time zone."""
    yield Query("drop_venue_words", params=(venue.id,))
    yield Query("put_venue_words", [(word,) for word in sorted(venue_words(venue))], (venue.id,))
    starts = yield Query("starts_at_venue", params=(venue.id,))
    for begin in range(0, len(starts), EVENTS_AT_ONCE):
        part = starts[begin : begin + EVENTS_AT_ONCE]
        yield Query("put_local_starts", [(row[0], local_us(row[1], venue.time_zone)) for row in part])
