"""The time zone of a venue: the one it names, else that of its city. It is never guessed beyond that."""

import zoneinfo
from collections import Counter
from functools import cache

from frontrow.boxoffice.people.model.person_names import folded_name
from frontrow.core.errors import InvalidInput


@cache
def zones() -> list[str]:
    """The time zones people choose from."""
    return sorted(name for name in zoneinfo.available_timezones() if "/" in name and not name.startswith("Etc/"))


@cache
def zones_by_city() -> dict[str, str]:
    """The zone that is named after a city, by the city's folded name; none where two zones have that name."""
    named = [(folded_name(name.rpartition("/")[2].replace("_", " ")), name) for name in zones() if name.count("/") == 1]
    times = Counter(city for city, _ in named)
    return {city: name for city, name in named if times[city] == 1}


def checked_zone(name: str, city: str) -> str:
    """The named zone; if none is named, the city's."""
    zone = name or zones_by_city().get(folded_name(city), "")
    if zone in zoneinfo.available_timezones():
        return zone
    if name:
        raise InvalidInput(f"{name[:60]!r} is not an IANA time zone such as Europe/Vienna", param="time_zone")
    raise InvalidInput("name the venue's time zone, such as Europe/Vienna: its city has none", param="time_zone")
