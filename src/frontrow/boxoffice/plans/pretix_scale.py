"""Places on a pretix plan in our units: one factor for the whole plan, so that all proportions stay.

pretix draws a seat with its `radius` (10 if none is given); our maps draw every seat with the same radius. The factor
makes both equal. If seats would still overlap, the plan's radius says nothing, and the distance of neighbours decides.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final

SEAT_RADIUS: Final = 3.7
PITCH: Final = 9.0
PRETIX_RADIUS: Final = 10.0
OUR_SCALE: Final = SEAT_RADIUS / PRETIX_RADIUS  # of plans that we write
Json = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PretixScale:
    """How a point of a pretix plan becomes a point of ours: moved, then scaled."""

    factor: float
    left: float = 0.0
    top: float = 0.0

    def place(self, *parts: Json | None) -> Point:
        """The point at the sum of these positions: of the zone, the row or area, and the seat or text."""
        given = [part for part in parts if part]
        x, y = sum(part["x"] for part in given), sum(part["y"] for part in given)
        return self.length(x - self.left), self.length(y - self.top)

    def length(self, distance: float) -> float:
        return round(distance * self.factor, 2)


def measure(document: Json) -> PretixScale:
    """The scale of a plan. What lies left of its edge or above it moves the whole plan, so that nothing is cut off."""
    rows = [
        [(seat["position"], seat.get("radius")) for seat in row["seats"]]
        for zone in document["zones"]
        for row in zone["rows"]
    ]
    radii = [radius or PRETIX_RADIUS for row in rows for _, radius in row]
    gaps = [gap for row in rows for gap in _gaps(at for at, _ in row)]
    radius = median(radii) if radii else PRETIX_RADIUS
    factor = SEAT_RADIUS / radius if radius > 0 else OUR_SCALE
    if gaps and median(gaps) * factor < 2 * SEAT_RADIUS:
        factor = PITCH / median(gaps)
    if abs(factor / OUR_SCALE - 1) < 1e-9:
        factor = OUR_SCALE
    whole = PretixScale(1.0)
    places = [
        whole.place(zone["position"], row.get("position"), seat["position"])
        for zone in document["zones"]
        for row in zone["rows"]
        for seat in row["seats"]
    ]
    margin = 2 * radius
    left, top = (min([p[axis] for p in places], default=0.0) for axis in (0, 1))
    return PretixScale(factor, left - margin if left < 0 else 0.0, top - margin if top < 0 else 0.0)


def _gaps(row: Iterable[Json]) -> list[float]:
    """The distances between neighbours of a row."""
    distances = [math.hypot(b["x"] - a["x"], b["y"] - a["y"]) for a, b in pairwise(row)]
    return [distance for distance in distances if 0 < distance < math.inf]
