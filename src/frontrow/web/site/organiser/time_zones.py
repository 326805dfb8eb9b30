"""The time zone of a venue: named in the form, else that of its city. It is never guessed beyond that."""

import zoneinfo
from collections import Counter
from functools import cache

from frontrow.boxoffice.model.person_names import folded_name
from frontrow.web.site.routes import Form


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


def zone_of(form: Form) -> str:
    """The zone that the form means. Empty when it names none and the city has none: the service refuses that."""
    return form.one("time_zone", 64) or zones_by_city().get(folded_name(form.one("city", 200)), "")
