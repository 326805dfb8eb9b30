"""The names of an organiser's events to choose from: the dates of one show have the same name and are told apart."""

from collections import Counter
from collections.abc import Sequence

from frontrow.boxoffice.events.model.events import Event
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import Words


async def names_of_events(platform: Platform, events: Sequence[Event], words: Words) -> dict[str, str]:
    """Names by id; one that several events have is followed by its date."""
    times, zones = Counter(one.name for one in events), dict[str, str]()
    names: dict[str, str] = {}
    for one in events:
        names[one.id] = one.name
        if times[one.name] > 1:
            if one.venue_id not in zones:
                venue = await platform.ledger.catalogue.venue(one.venue_id)
                zones[one.venue_id] = (venue.time_zone if venue else "") or "UTC"
            names[one.id] += f" · {words.zoned(one.starts_at_us, zones[one.venue_id])}"
    return names
