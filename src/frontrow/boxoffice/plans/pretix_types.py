"""The pretix format as types, for a quick check: what these accept the schema accepts too (a test holds them to it).

Validating 50,000 seats by JSON schema takes seconds, by these types milliseconds. What they do not accept is not yet
wrong: the schema has the last word, and the better error.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

Text = str | UnsetType
TextOrNull = str | UnsetType | None
Number = float | UnsetType


class Point(Struct, forbid_unknown_fields=True):
    x: float
    y: float


class Category(Struct, forbid_unknown_fields=True):
    name: str
    color: Text = UNSET


class Seat(Struct, forbid_unknown_fields=True):
    seat_guid: Annotated[str, msgspec.Meta(pattern="^[^ ].*[^ ]$")]
    seat_number: str
    position: Point
    category: str
    uuid: Text = UNSET
    start_direction: TextOrNull = UNSET
    radius: Number = UNSET


class Row(Struct, forbid_unknown_fields=True):
    row_number: str
    seats: list[Seat]
    row_label: TextOrNull = UNSET
    seat_label: TextOrNull = UNSET
    uuid: Text = UNSET
    row_number_position: Literal["start", "end", "both"] | UnsetType | None = UNSET
    position: Point | UnsetType = UNSET


class Polygon(Struct, forbid_unknown_fields=True):
    points: list[Point]


class Rectangle(Struct, forbid_unknown_fields=True):
    width: float
    height: float


class Ellipse(Struct, forbid_unknown_fields=True):
    radius: Point


class Circle(Struct, forbid_unknown_fields=True):
    radius: float


class AreaText(Struct, forbid_unknown_fields=True):
    text: str
    position: Point
    color: Text = UNSET
    size: Number = UNSET


class Area(Struct, forbid_unknown_fields=True):
    color: Text = UNSET
    border_color: Text = UNSET
    rotation: Number = UNSET
    position: Point | UnsetType = UNSET
    uuid: Text = UNSET
    shape: Literal["polygon", "rectangle", "ellipse", "circle", "text"] | UnsetType = UNSET
    polygon: Polygon | UnsetType = UNSET
    rectangle: Rectangle | UnsetType = UNSET
    ellipse: Ellipse | UnsetType = UNSET
    circle: Circle | UnsetType = UNSET
    text: AreaText | UnsetType = UNSET


class Zone(Struct, forbid_unknown_fields=True):
    position: Point
    rows: list[Row]
    name: Text = UNSET
    zone_id: Text = UNSET
    uuid: Text = UNSET
    areas: list[Area] | UnsetType = UNSET


class Size(Struct, forbid_unknown_fields=True):
    width: int
    height: int


class SeatingPlan(Struct, forbid_unknown_fields=True):
    name: str
    size: Size
    categories: list[Category]
    zones: list[Zone]


def surely_fits(document: Any) -> bool:
    """Whether the types accept the document; False means: ask the schema."""
    try:
        msgspec.convert(document, SeatingPlan)
    except msgspec.ValidationError:
        return False
    return True
