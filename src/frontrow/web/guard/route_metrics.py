"""How many requests each route answered and how long they took, by way in and kind of status: plain integers.

Routes are the API's operation ids, and the ways in are "hot" (the fast path) and "app" (the framework), so the table of
routes bounds the number of series. Nothing about the caller is kept.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

BUCKETS: Final = 20  # bucket i holds requests shorter than 2^(i + 15) ns: from 33 µs to 17 s
SHIFT: Final = 15
MAX_ROUTES: Final = 500
OTHER: Final = "other"


class RouteTraffic:
    """One route by one way in."""

    __slots__ = ("buckets", "statuses", "total_ns")

    def __init__(self) -> None:
        self.buckets = [0] * 64  # as many as a nanosecond count has bits: no bound to check
        self.total_ns = 0
        self.statuses = [0] * 6  # by the status' first digit

    def took(self, ns: int, status: int) -> None:
        self.buckets[(ns >> SHIFT).bit_length()] += 1
        self.total_ns += ns
        self.statuses[status // 100] += 1


class TrafficRow(NamedTuple):
    """The counts of a route so far. `buckets` are cumulative; the last one counts everything."""

    route: str
    door: str
    statuses: dict[str, int]
    buckets: list[int]
    total_ns: int


class Traffic:
    """Every route's counts of this process."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, str], RouteTraffic] = {}

    def of(self, route: str, door: str) -> RouteTraffic:
        """The counts of a route; keep the object. Beyond MAX_ROUTES, all further routes are counted as one."""
        found = self._routes.get((route, door))
        if found is None:
            if len(self._routes) >= MAX_ROUTES:
                route = OTHER
            found = self._routes.setdefault((route, door), RouteTraffic())
        return found

    def rows(self) -> Iterator[TrafficRow]:
        for (route, door), counts in sorted(self._routes.items()):
            statuses = {f"{digit}xx": count for digit, count in enumerate(counts.statuses) if count}
            running, buckets = 0, []
            for count in counts.buckets[:BUCKETS]:
                running += count
                buckets.append(running)
            yield TrafficRow(route, door, statuses, [*buckets, sum(counts.buckets)], counts.total_ns)


def together(buckets: Iterable[list[int]]) -> list[int]:
    """The sum of the cumulative buckets of several rows; empty without rows."""
    return [sum(column) for column in zip(*buckets, strict=True)]


def bounds_s() -> list[float]:
    """The upper bounds of the buckets, in seconds."""
    return [(1 << power + SHIFT) / 1e9 for power in range(BUCKETS)]
