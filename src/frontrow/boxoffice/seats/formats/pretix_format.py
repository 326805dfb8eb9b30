"""Imports and exports pretix seating plans (JSON), checked against the published format in both directions.

Zones, rows and seats become sections, rows and seats, all by one scale. A category becomes the price tier; `seat_guid`
becomes the seat's ref. pretix has no general-admission areas: an area is written as a zone with the single row GA, and
such a zone is read as an area. Values that our plan cannot store are dropped, and the import notes list them.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from frontrow.boxoffice.seats.formats.plan_reader import BadPlan
from frontrow.boxoffice.seats.formats.pretix_drawings import box_of_zone, enlarge_point, read_drawings, write_drawing
from frontrow.boxoffice.seats.formats.pretix_scale import OUR_SCALE, PRETIX_RADIUS, PretixScale, add_positions, measure
from frontrow.boxoffice.seats.formats.pretix_types import matches_types
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape
from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW, label_from
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, Plan, Row, Seat, Section, SectionKind

MARGIN: Final = 20.0
NUMBER_HERE: Final = "%s"  # in a label: the number of the row or seat
# Our pages write these words themselves, in the visitor's language.
WORD_FOR_ROW: Final = re.compile(r"(row|reihe|rang|rangée|fila|fileira|列|صف)\.?\s*", re.IGNORECASE)
WORD_FOR_SEAT: Final = re.compile(
    r"(seat|platz|sitz|place|siège|asiento|butaca|assento|lugar|席|座席|مقعد)\.?\s*", re.IGNORECASE
)
MADE_BY_A_MACHINE: Final = re.compile(r"[0-9a-fA-F-]{16,}")
Json = Mapping[str, Any]


def check_pretix(document: Any) -> None:
    """Raise BadPlan, with the place of the mistake, if `document` is not a pretix seating plan."""
    if _count_seats(document) > MAX_SEATS:
        raise BadPlan(f"a plan has at most {MAX_SEATS:,} seats", param="seats")
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
        said = f"not a pretix seating plan: at {where}: {error.message[:200]}"
        raise BadPlan(said, param=where, reason="pretix", where=where)


def from_pretix(document: Any) -> tuple[Plan, list[str]]:
    """The plan, and notes about what was dropped or renamed."""
    check_pretix(document)
    notes: Counter[str] = Counter()
    scale, names = measure(document), _Labels("section", notes)
    sections: list[Section] = []
    for zone in document["zones"]:
        if any(row["seats"] for row in zone["rows"]):
            sections.append(_section(zone, len(sections), scale, names, notes))
    seats = [
        (seat.x, seat.y) for one in sections if one.kind is SectionKind.SEATED for row in one.rows for seat in row.seats
    ]
    decor = [item for zone in document["zones"] for item in read_drawings(zone, scale, seats, _is_area(zone), notes)]
    if not sections:
        raise BadPlan("a plan has 1 to 1,000,000 seats, not 0", param="seats")
    size = document["size"]
    width = max([scale.length(size["width"] - scale.left)] + [round(x + MARGIN, 2) for x, _ in seats])
    height = max([scale.length(size["height"] - scale.top)] + [round(y + MARGIN, 2) for _, y in seats])
    plan = Plan(document["name"], tuple(sections), width, height, tuple(decor))
    return plan, [f"{what} ({times} times)" for what, times in notes.items()]


def to_pretix(plan: Plan, colours: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The plan as a pretix document. Flags, ranks and the positions of areas are lost."""
    zones = [_zone(plan, number, section) for number, section in enumerate(plan.sections)]
    if plan.decor:
        areas = [write_drawing(item) for item in plan.decor]
        zones.append({"name": "decor", "zone_id": "decor", "position": {"x": 0, "y": 0}, "rows": [], "areas": areas})
    document = {
        "name": plan.name,
        "size": {"width": round(plan.width / OUR_SCALE), "height": round(plan.height / OUR_SCALE)},
        "categories": [{"name": tier, "color": (colours or {}).get(tier, "#3565d6")} for tier in plan.tiers],
        "zones": zones,
    }
    return document


@cache
def _validator() -> Any:
    from jsonschema import Draft7Validator  # type: ignore[import-untyped]

    text = resources.files("frontrow.boxoffice.seats.formats").joinpath("pretix_schema.json").read_text("utf-8")
    return Draft7Validator(json.loads(text))


def _count_seats(document: Any) -> int:
    """How many seats the document lists, whatever else is wrong with it."""

    def lists(inside: Any, name: str) -> list[Any]:
        found = inside.get(name) if isinstance(inside, dict) else None
        return found if isinstance(found, list) else []

    return sum(len(lists(row, "seats")) for zone in lists(document, "zones") for row in lists(zone, "rows"))


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


def _section(zone: Json, number: int, scale: PretixScale, names: _Labels, notes: Counter[str]) -> Section:
    name, zone_id = str(zone.get("name", "")), str(zone.get("zone_id", ""))
    if name and MADE_BY_A_MACHINE.fullmatch(zone_id):
        zone_id = ""  # tickets show the label
    section_id = names.add(zone_id or name, f"Z{number + 1}")
    row_names = _Labels("row", notes)
    rows = tuple(
        _row(zone, row, position, scale, row_names, notes)
        for position, row in enumerate(each for each in zone["rows"] if each["seats"])
    )
    name = "" if name == section_id else name
    if _is_area(zone):
        box = box_of_zone(zone, scale, [(seat.x, seat.y) for seat in rows[0].seats])
        middle = round(box.x + box.width / 2, 2), round(box.y + box.height / 2, 2)
        seats = tuple(Seat(s.number, *middle, s.tier, 0, s.ref) for s in rows[0].seats)
        return Section(section_id, (Row(AREA_ROW, seats),), name, SectionKind.AREA, number, box)
    return Section(section_id, rows, name, rank=number)


def _is_area(zone: Json) -> bool:
    return [label_from(row["row_number"]) for row in zone["rows"] if row["seats"]] == [AREA_ROW]


def _row(zone: Json, row: Json, position: int, scale: PretixScale, names: _Labels, notes: Counter[str]) -> Row:
    row_id = names.add(row["row_number"], f"R{position + 1}")
    numbers = _Labels("seat number", notes)
    seats = []
    points = scale.place_all(add_positions(zone["position"], row.get("position")), row["seats"])
    for place, (seat, (x, y)) in enumerate(zip(row["seats"], points, strict=True), 1):
        label = numbers.add(seat["seat_number"], f"S{place}")
        seats.append(Seat(label, x, y, seat["category"], 0, seat["seat_guid"]))
        if "start_direction" in seat:
            notes["seat start_direction dropped"] += 1
    if row.get("row_number_position"):
        notes["row row_number_position dropped"] += 1
    if WORD_FOR_SEAT.sub("", row.get("seat_label") or NUMBER_HERE, count=1) != NUMBER_HERE:
        notes["row seat_label dropped"] += 1
    return Row(row_id, tuple(seats), position, _row_name(row, row_id))


def _row_name(row: Json, row_id: str) -> str:
    """What people call the row, without the word "row"; empty if that is its label."""
    label = str(row.get("row_label") or NUMBER_HERE).replace(NUMBER_HERE, row["row_number"])
    word = WORD_FOR_ROW.match(label)
    name = label[word.end() :] if word and label[word.end() :] else label
    return "" if name == row_id else name


def _zone(plan: Plan, number: int, section: Section) -> dict[str, Any]:
    """A section as a zone with absolute positions."""
    rows, index = [], plan.bases[number]
    spots: Sequence[tuple[float, float]] = [(seat.x, seat.y) for row in section.rows for seat in row.seats]
    areas = []
    if isinstance(section.shape, AreaShape):
        box = section.shape
        spots = _grid_points(box, section.size)
        width, height = enlarge_point(box.width, box.height).values()
        drawn = {"width": width, "height": height}
        areas.append({"shape": "rectangle", "position": enlarge_point(box.x, box.y), "rectangle": drawn})
    for row in section.rows:
        seats = []
        for seat in row.seats:
            x, y = spots[index - plan.bases[number]]
            guid = seat.ref or plan.seat_ids[index]
            named = {"seat_guid": guid, "seat_number": seat.number, "category": seat.tier}
            seats.append({**named, "position": enlarge_point(x, y), "radius": PRETIX_RADIUS})
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
