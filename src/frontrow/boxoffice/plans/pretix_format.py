"""Imports and exports pretix seating plans (JSON), checked against the published format in both directions.

Zones, rows and seats become sections, rows and seats. A category becomes the price tier; `seat_guid` becomes the seat's
ref. pretix has no general-admission areas: an area is written as a zone with the single row GA, and such a zone is read
as an area. Values that our plan cannot store are dropped, and the import notes list them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from frontrow.boxoffice.model.plan_shapes import AreaShape, Decor
from frontrow.boxoffice.model.seat_labels import label_from
from frontrow.boxoffice.model.venues import AREA_ROW, Plan, Row, Seat, Section, SectionKind
from frontrow.boxoffice.plans.plan_reader import BadPlan
from frontrow.boxoffice.plans.pretix_types import matches_types

DROPPED_KEYS = ("radius", "start_direction", "seat_label", "row_number_position")
Json = Mapping[str, Any]


def check_pretix(document: Any) -> None:
    """Raise BadPlan, with the place of the mistake, if `document` is not a pretix seating plan."""
    if not matches_types(document):
        _check_schema(document)
    guids = Counter(seat["seat_guid"] for seat in _seats(document))
    repeated = [guid for guid, times in guids.items() if times > 1]
    if repeated:
        raise BadPlan(f"seat_guid {', '.join(repeated[:20])} occurs more than once", param="seat_guid")
    names = {category["name"] for category in document["categories"]}
    unknown = sorted({seat["category"] for seat in _seats(document)} - names)
    if unknown:
        raise BadPlan(f"no category is named {', '.join(unknown[:20])}", param="category")


def _check_schema(document: Any) -> None:
    error = next(_validator().iter_errors(document), None)
    if error is not None:
        where = "/".join(str(part) for part in error.absolute_path) or "the document"
        raise BadPlan(f"not a pretix seating plan: at {where}: {error.message[:200]}", param=where)


def from_pretix(document: Any) -> tuple[Plan, list[str]]:
    """The plan, and notes about what was dropped or renamed."""
    check_pretix(document)
    notes: Counter[str] = Counter()
    names = _Labels("section", notes)
    sections, decor = [], []
    for number, zone in enumerate(document["zones"]):
        decor += _decor(zone, notes)
        if any(row["seats"] for row in zone["rows"]):
            sections.append(_section(zone, number, names, notes))
    size = document["size"]
    plan = Plan(document["name"], tuple(sections), float(size["width"]), float(size["height"]), tuple(decor))
    return plan, [f"{what} ({times} times)" for what, times in notes.items()]


def to_pretix(plan: Plan, colours: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The plan as a pretix document. Flags, ranks and the positions of areas are lost."""
    zones = [_zone(plan, number, section) for number, section in enumerate(plan.sections)]
    if plan.decor:
        areas = [_area(item) for item in plan.decor]
        zones.append({"name": "decor", "zone_id": "decor", "position": {"x": 0, "y": 0}, "rows": [], "areas": areas})
    document = {
        "name": plan.name,
        "size": {"width": round(plan.width), "height": round(plan.height)},
        "categories": [{"name": tier, "color": (colours or {}).get(tier, "#3565d6")} for tier in plan.tiers],
        "zones": zones,
    }
    return document


@cache
def _validator() -> Any:
    from jsonschema import Draft7Validator  # type: ignore[import-untyped]

    text = resources.files("frontrow.boxoffice.plans").joinpath("pretix_schema.json").read_text("utf-8")
    return Draft7Validator(json.loads(text))


def _seats(document: Json) -> list[Json]:
    return [seat for zone in document["zones"] for row in zone["rows"] for seat in row["seats"]]


class _Labels:
    """Labels that are unique among their neighbours. Equal ones are numbered, each stem from where it stopped."""

    def __init__(self, what: str, notes: Counter[str]) -> None:
        self._what, self._notes = what, notes
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}  # by the stem of numbered labels

    def add(self, text: str, fallback: str) -> str:
        """A label for `text` that is not taken yet."""
        wanted = label = label_from(text) or fallback
        stem = wanted[:24]
        while label in self._taken:  # ends: every turn tries another number, and none twice
            number = self._next.get(stem, 2)
            label, self._next[stem] = f"{stem}.{number}", number + 1
        if label != text:
            self._notes[f"{self._what} renamed to fit labels or to be unique"] += 1
        self._taken.add(label)
        return label


def _section(zone: Json, number: int, names: _Labels, notes: Counter[str]) -> Section:
    name = str(zone.get("name", ""))
    section_id = names.add(str(zone.get("zone_id") or name), f"Z{number + 1}")
    row_names = _Labels("row", notes)
    rows = tuple(
        _row(zone, row, position, row_names, notes)
        for position, row in enumerate(each for each in zone["rows"] if each["seats"])
    )
    name = "" if name == section_id else name
    if len(rows) == 1 and rows[0].id == AREA_ROW:
        box = _box(zone)
        middle = round(box.x + box.width / 2, 2), round(box.y + box.height / 2, 2)
        seats = tuple(Seat(s.number, *middle, s.tier, 0, s.ref) for s in rows[0].seats)
        return Section(section_id, (Row(AREA_ROW, seats),), name, SectionKind.AREA, number, box)
    return Section(section_id, rows, name, rank=number)


def _row(zone: Json, row: Json, position: int, names: _Labels, notes: Counter[str]) -> Row:
    row_id = names.add(row["row_number"], f"R{position + 1}")
    x, y = _add_points(zone["position"], row.get("position"))
    numbers = _Labels("seat number", notes)
    seats = []
    for place, seat in enumerate(row["seats"], 1):
        label = numbers.add(seat["seat_number"], f"S{place}")
        at = seat["position"]
        guid = seat["seat_guid"]
        seats.append(Seat(label, round(x + at["x"], 2), round(y + at["y"], 2), seat["category"], 0, guid))
        notes.update(f"seat {key} dropped" for key in DROPPED_KEYS if key in seat)
    notes.update(f"row {key} dropped" for key in DROPPED_KEYS if row.get(key))
    name = row.get("row_label") or ("" if row["row_number"] == row_id else row["row_number"])
    return Row(row_id, tuple(seats), position, name)


def _add_points(*points: Json | None) -> tuple[float, float]:
    present = [point for point in points if point]
    return sum(point["x"] for point in present), sum(point["y"] for point in present)


def _box(zone: Json) -> AreaShape:
    """The rectangle of a zone, or the box around its seats."""
    for item in zone.get("areas", ()):
        if item.get("shape") == "rectangle" and "rectangle" in item:
            x, y = _add_points(zone["position"], item.get("position"))
            return AreaShape(x, y, float(item["rectangle"]["width"]), float(item["rectangle"]["height"]))
    x, y = _add_points(zone["position"])
    seats = [(x + s["position"]["x"], y + s["position"]["y"]) for row in zone["rows"] for s in row["seats"]]
    left, top = min(p[0] for p in seats), min(p[1] for p in seats)
    return AreaShape(left, top, max(p[0] for p in seats) - left + 10, max(p[1] for p in seats) - top + 10)


def _decor(zone: Json, notes: Counter[str]) -> list[Decor]:
    """The drawings of a zone. The rectangle of a general-admission zone is its shape, not decor."""
    is_area = [row["row_number"] for row in zone["rows"] if row["seats"]] == [AREA_ROW]
    found = []
    for item in zone.get("areas", ()):
        x, y = _add_points(zone["position"], item.get("position"))
        label = item.get("text", {}).get("text", "")
        match item.get("shape"):
            case "rectangle" if "rectangle" in item and not is_area:
                width, height = item["rectangle"]["width"], item["rectangle"]["height"]
                found.append(Decor("rect", x, y, width, height, label))
            case "ellipse" if "ellipse" in item:
                rx, ry = item["ellipse"]["radius"]["x"], item["ellipse"]["radius"]["y"]
                found.append(Decor("ellipse", x - rx, y - ry, 2 * rx, 2 * ry, label))
            case "circle" if "circle" in item:
                radius = item["circle"]["radius"]
                found.append(Decor("ellipse", x - radius, y - radius, 2 * radius, 2 * radius, label))
            case "text":
                found.append(Decor("text", x, y, 0, 0, label))
            case "rectangle" if is_area:
                pass
            case other:
                notes[f"area of shape {other} dropped"] += 1
    return found


def _zone(plan: Plan, number: int, section: Section) -> dict[str, Any]:
    """A section as a zone with absolute positions."""
    rows, index = [], plan.bases[number]
    spots: Sequence[tuple[float, float]] = [(seat.x, seat.y) for row in section.rows for seat in row.seats]
    areas = []
    if isinstance(section.shape, AreaShape):
        box = section.shape
        spots = _grid_points(box, section.size)
        drawn = {"width": box.width, "height": box.height}
        areas.append({"shape": "rectangle", "position": {"x": box.x, "y": box.y}, "rectangle": drawn})
    for row in section.rows:
        seats = []
        for seat in row.seats:
            x, y = spots[index - plan.bases[number]]
            guid = seat.ref or plan.seat_ids[index]
            position = {"x": x, "y": y}
            seats.append({"seat_guid": guid, "seat_number": seat.number, "position": position, "category": seat.tier})
            index += 1
        rows.append({"row_number": row.id, **({"row_label": row.name} if row.name else {}), "seats": seats})
    zone = {"name": section.name or section.id, "zone_id": section.id, "position": {"x": 0, "y": 0}, "rows": rows}
    return {**zone, "areas": areas} if areas else zone


def _grid_points(box: AreaShape, count: int) -> list[tuple[float, float]]:
    """The places of an area in a grid inside its box, because pretix needs a position for each."""
    columns = max(1, round((count * box.width / max(box.height, 1)) ** 0.5))
    rows = -(-count // columns)
    return [
        (
            round(box.x + (place % columns + 0.5) * box.width / columns, 2),
            round(box.y + (place // columns + 0.5) * box.height / rows, 2),
        )
        for place in range(count)
    ]


def _area(item: Decor) -> dict[str, Any]:
    at = {"x": item.x, "y": item.y}
    if item.shape == "ellipse":
        radius = {"x": item.width / 2, "y": item.height / 2}
        middle = {"x": item.x + item.width / 2, "y": item.y + item.height / 2}
        drawn: dict[str, Any] = {"shape": "ellipse", "position": middle, "ellipse": {"radius": radius}}
    elif item.shape == "rect":
        drawn = {"shape": "rectangle", "position": at, "rectangle": {"width": item.width, "height": item.height}}
    else:
        drawn = {"shape": "text", "position": at}
    if item.label:
        drawn["text"] = {"text": item.label, "position": {"x": item.width / 2, "y": item.height / 2}}
    return drawn
