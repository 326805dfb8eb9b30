"""Drawings of a pretix plan (stages, bars, texts) as decor of ours, and back.

A polygon becomes the box around it, and a shape behind seats becomes its text: our maps draw decor as solid blocks.
Rotations are dropped.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from frontrow.boxoffice.seats.formats.pretix_scale import OUR_SCALE, Point, PretixScale
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, Decor

TEXT_SIZE: Final = 16.0  # of a text without a size, in pretix' unit
LETTER: Final = 0.6  # width of a letter, as a part of the text's size
LINE: Final = 1.25  # height of a line
BACKDROP_SEATS: Final = 3  # a shape with so many seats on it is a background
Json = Mapping[str, Any]
Notes = Counter[str]


def read_drawings(zone: Json, scale: PretixScale, seats: Sequence[Point], is_area: bool, notes: Notes) -> list[Decor]:
    """The drawings of a zone. The rectangle of a general-admission zone is its shape, not decor."""
    found = []
    for item in zone.get("areas", ()):
        if is_area and item.get("shape") == "rectangle" and "rectangle" in item:
            continue
        drawn = _read_drawing(zone, item, scale)
        if drawn is None:
            notes[f"area of shape {item.get('shape')} dropped"] += 1
            continue
        if item.get("rotation"):
            notes["area rotation dropped"] += 1
        if item.get("shape") == "polygon":
            notes["polygon drawn as the box around it"] += 1
        if drawn.shape != "text" and _lies_behind(drawn, seats):
            notes["background of seats dropped, its text kept"] += 1
            drawn = _read_text(zone, item, scale)
        if drawn.shape != "text" or drawn.label:
            found.append(drawn)
    return found


def write_drawing(item: Decor) -> dict[str, Any]:
    """A drawing in pretix' units, with its position relative to a zone at 0, 0."""
    x, y, width, height = (_enlarge(value) for value in (item.x, item.y, item.width, item.height))
    middle = {"x": _sum(x, width / 2), "y": _sum(y, height / 2)}
    if item.shape == "ellipse":
        radius = {"x": width / 2, "y": height / 2}
        drawn: dict[str, Any] = {"shape": "ellipse", "position": middle, "ellipse": {"radius": radius}}
        inside = {"x": 0.0, "y": 0.0}
    elif item.shape == "rect":
        drawn = {"shape": "rectangle", "position": {"x": x, "y": y}, "rectangle": {"width": width, "height": height}}
        inside = {"x": width / 2, "y": height / 2}
    else:
        drawn, inside = {"shape": "text", "position": middle}, {"x": 0.0, "y": 0.0}
    if item.label:
        drawn["text"] = {"text": item.label, "position": inside}
        if item.shape == "text" and height:
            drawn["text"]["size"] = round(height / LINE, 2)
    return drawn


def box_of_zone(zone: Json, scale: PretixScale, seats: Iterable[Point]) -> AreaShape:
    """The rectangle of a general-admission zone, or the box around its seats."""
    for item in zone.get("areas", ()):
        if item.get("shape") == "rectangle" and "rectangle" in item:
            x, y = scale.place(zone["position"], item.get("position"))
            size = item["rectangle"]
            return AreaShape(x, y, scale.length(size["width"]), scale.length(size["height"]))
    places = list(seats)
    left, top = min(p[0] for p in places), min(p[1] for p in places)
    width, height = max(p[0] for p in places) - left, max(p[1] for p in places) - top
    return AreaShape(left, top, round(width + 10, 2), round(height + 10, 2))


def enlarge_point(x: float, y: float) -> dict[str, float]:
    """A point of ours in pretix' units."""
    return {"x": _enlarge(x), "y": _enlarge(y)}


def _enlarge(value: float) -> float:
    return round(value / OUR_SCALE, 4)


def _sum(one: float, other: float) -> float:
    return round(one + other, 4)


def _read_drawing(zone: Json, item: Json, scale: PretixScale) -> Decor | None:
    x, y = scale.place(zone["position"], item.get("position"))
    label = item.get("text", {}).get("text", "")
    match item.get("shape"):
        case "rectangle" if "rectangle" in item:
            size = item["rectangle"]
            return Decor("rect", x, y, scale.length(size["width"]), scale.length(size["height"]), label)
        case "ellipse" if "ellipse" in item:
            radius = item["ellipse"]["radius"]
            return _ellipse(x, y, scale.length(radius["x"]), scale.length(radius["y"]), label)
        case "circle" if "circle" in item:
            radius = scale.length(item["circle"]["radius"])
            return _ellipse(x, y, radius, radius, label)
        case "polygon" if item.get("polygon", {}).get("points"):
            points = [scale.place(zone["position"], item.get("position"), at) for at in item["polygon"]["points"]]
            left, top = min(p[0] for p in points), min(p[1] for p in points)
            width, height = max(p[0] for p in points) - left, max(p[1] for p in points) - top
            return Decor("rect", left, top, round(width, 2), round(height, 2), label)
        case "text":
            return _read_text(zone, item, scale)
    return None


def _ellipse(x: float, y: float, rx: float, ry: float, label: str) -> Decor:
    return Decor("ellipse", round(x - rx, 2), round(y - ry, 2), round(2 * rx, 2), round(2 * ry, 2), label)


def _read_text(zone: Json, item: Json, scale: PretixScale) -> Decor:
    """A text in a box of about its size, around its place."""
    text = item.get("text", {})
    label = text.get("text", "")
    x, y = scale.place(zone["position"], item.get("position"), text.get("position"))
    size = scale.length(text.get("size") or TEXT_SIZE)
    width, height = round(LETTER * size * len(label), 2), round(LINE * size, 2)
    return Decor("text", round(x - width / 2, 2), round(y - height / 2, 2), width, height, label)


def _lies_behind(item: Decor, seats: Iterable[Point]) -> bool:
    """Whether seats are on this drawing."""
    right, bottom = item.x + item.width, item.y + item.height
    on_it = (1 for x, y in seats if item.x <= x <= right and item.y <= y <= bottom)
    return sum(islice(on_it, BACKDROP_SEATS)) == BACKDROP_SEATS
