"""Places on a pretix plan in our units: one factor for the whole plan, so that all proportions stay.

pretix draws a seat with its `radius` (10 if none is given); our maps draw every seat with the same radius. The factor
makes both equal. If seats would still overlap, the plan's radius says nothing, and the distance of neighbours decides.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
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
        x, y = add_positions(*parts)
        return round((x - self.left) * self.factor, 2), round((y - self.top) * self.factor, 2)

    def place_all(self, corner: Point, seats: Iterable[Json]) -> list[Point]:
        """The points of seats whose positions are relative to `corner`."""
        left, top, factor = self.left - corner[0], self.top - corner[1], self.factor
        positions = [seat["position"] for seat in seats]
        return [(round((at["x"] - left) * factor, 2), round((at["y"] - top) * factor, 2)) for at in positions]

    def length(self, distance: float) -> float:
        return round(distance * self.factor, 2)


def add_positions(*parts: Json | None) -> Point:
    """The sum of positions, of which some may be missing."""
    given = [part for part in parts if part]
    return sum(part["x"] for part in given), sum(part["y"] for part in given)


def measure(document: Json) -> PretixScale:
    """The scale of a plan. What lies left of its edge or above it moves the whole plan, so that nothing is cut off."""
    rows = [(zone, row) for zone in document["zones"] for row in zone["rows"] if row["seats"]]
    radius = median(
        [seat.get("radius") or PRETIX_RADIUS for _, row in rows for seat in row["seats"]] or [PRETIX_RADIUS]
    )
    gaps = [gap for _, row in rows for gap in _gaps(row["seats"])]
    factor = SEAT_RADIUS / radius if radius > 0 else OUR_SCALE
    if gaps and median(gaps) * factor < 2 * SEAT_RADIUS:
        factor = PITCH / median(gaps)
    if abs(factor / OUR_SCALE - 1) < 1e-9:
        factor = OUR_SCALE
    corners = [add_positions(zone["position"], row.get("position")) for zone, row in rows]
    firsts = [[min(seat["position"][axis] for seat in row["seats"]) for axis in "xy"] for _, row in rows]
    left = min((corner[0] + first[0] for corner, first in zip(corners, firsts, strict=True)), default=0.0)
    top = min((corner[1] + first[1] for corner, first in zip(corners, firsts, strict=True)), default=0.0)
    margin = 2 * radius
    return PretixScale(factor, left - margin if left < 0 else 0.0, top - margin if top < 0 else 0.0)


def _gaps(seats: Sequence[Json]) -> list[float]:
    """The distances between neighbours of a row."""
    points = [(seat["position"]["x"], seat["position"]["y"]) for seat in seats]
    distances = [math.hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)]
    return [distance for distance in distances if 0 < distance < math.inf]
