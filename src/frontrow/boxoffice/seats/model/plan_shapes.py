"""Shapes on a plan: rows on arcs or in a grid, areas and decor, and the seat positions of each shape.

Positions are rounded to a hundredth of a plan unit, so that every encoding of a plan restores the same positions.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArcShape:
    """Rows on ellipses around the middle of the plan, from angle a0 to a1 (radians), `step` apart."""

    a0: float
    a1: float
    rx: float
    ry: float
    step: float


@dataclass(frozen=True, slots=True)
class GridShape:
    """Rows as straight lines from (x, y), seats `pitch` apart and rows `step` apart."""

    x: float
    y: float
    pitch: float
    step: float


@dataclass(frozen=True, slots=True)
class AreaShape:
    """The box in which a general-admission area is drawn."""

    x: float
    y: float
    width: float
    height: float


Shape = ArcShape | GridShape | AreaShape


@dataclass(frozen=True, slots=True)
class Decor:
    """Something drawn that is not a seat: a stage, a bar, an outline. `shape` is `rect`, `ellipse` or `text`."""

    shape: str
    x: float
    y: float
    width: float
    height: float
    label: str = ""


def row_points(
    shape: ArcShape | GridShape, row: int, count: int, width: float, height: float
) -> list[tuple[float, float]]:
    """The positions of the `count` seats of the row at position `row`, on a plan of that size."""
    if isinstance(shape, GridShape):
        y = round(shape.y + row * shape.step, 2)
        return [(round(shape.x + seat * shape.pitch, 2), y) for seat in range(count)]
    rx, ry, turn = shape.rx + row * shape.step, shape.ry + row * shape.step, (shape.a1 - shape.a0) / count
    angles = [shape.a0 + turn * (seat + 0.5) for seat in range(count)]
    return [(round(width / 2 + rx * math.cos(a), 2), round(height / 2 + ry * math.sin(a), 2)) for a in angles]
