"""pretix' seating-plan JSON in and out, checked against its published format (B13)."""

import copy
import functools
import json
import math
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.seats.formats.plan_generator import KINDS, generate
from frontrow.boxoffice.seats.formats.plan_reader import BadPlan
from frontrow.boxoffice.seats.formats.pretix_format import _validator, check_pretix, from_pretix, to_pretix
from frontrow.boxoffice.seats.formats.pretix_scale import SEAT_RADIUS
from frontrow.boxoffice.seats.formats.pretix_types import matches_types
from frontrow.boxoffice.seats.model.venues import SectionKind
from frontrow.boxoffice.seats.plan_svg import to_svg
from frontrow.core.errors import InvalidInput
from tests.boxoffice.plan_samples import small_plan


def seat(guid: str, number: str, x: float = 0, **more: Any) -> dict[str, Any]:
    return {"seat_guid": guid, "seat_number": number, "position": {"x": x, "y": 0}, "category": "Gold", **more}


def a_document() -> dict[str, Any]:
    """A small plan that uses every member the format has."""
    point = {"x": 1.5, "y": 2}
    rows = [
        {
            "row_number": "1",
            "row_label": "Row 1",
            "seat_label": "Seat %s",
            "uuid": "u1",
            "row_number_position": "both",
            "position": {"x": 10, "y": 20.25},
            "seats": [seat("g-1", "1", 0, radius=8, start_direction=">", uuid="u2"), seat("g-2", "2", 25)],
        },
        {"row_number": "1", "row_label": None, "row_number_position": None, "seats": [seat("g-3", "12 A")]},
    ]
    areas = [
        {
            "shape": "rectangle",
            "position": point,
            "rectangle": {"width": 30, "height": 4.5},
            "rotation": 3,
            "color": "#f00",
        },
        {"shape": "circle", "position": point, "circle": {"radius": 5}, "border_color": "#000", "color": "#f00"},
        {"shape": "ellipse", "position": point, "ellipse": {"radius": point}},
        {"shape": "text", "position": point, "text": {"text": "BAR", "color": "#000", "size": 12, "position": point}},
        {"shape": "polygon", "position": point, "polygon": {"points": [point, point]}},
    ]
    return {
        "name": "Town Hall",
        "size": {"width": 600, "height": 400},
        "categories": [{"name": "Gold", "color": "#fd0"}, {"name": "Unused"}],
        "zones": [
            {
                "name": "Main floor",
                "zone_id": "main",
                "uuid": "u",
                "position": {"x": 100, "y": 50},
                "rows": rows,
                "areas": areas,
            },
            {"position": {"x": 0, "y": 0}, "rows": []},
            {
                "name": "Main floor",
                "position": {"x": 0, "y": 0},
                "rows": [{"row_number": "A", "seats": [seat("g-4", "1")]}],
            },
        ],
    }


def test_a_plan_with_every_member_is_understood() -> None:
    plan, notes = from_pretix(a_document())
    assert plan.seat_ids == ("main-1-1", "main-1-2", "main-1.2-12.A", "Main.floor-A-1")
    assert [seat.ref for seat in plan.seats] == ["g-1", "g-2", "g-3", "g-4"]
    assert [(seat.x, seat.y) for seat in plan.seats] == [(40.7, 25.99), (49.95, 25.99), (37.0, 18.5), (0.0, 0.0)]
    assert {seat.tier for seat in plan.seats} == {"Gold"}
    assert [row.name for row in plan.sections[0].rows] == ["", "1"], "the number is the name; our pages say row"
    assert [item.shape for item in plan.decor] == ["rect", "ellipse", "ellipse", "text", "rect"]
    assert (plan.decor[0].x, plan.decor[0].y, plan.decor[3].label) == (37.55, 19.24, "BAR")
    said = " ".join(notes)
    assert all(word in said for word in ("polygon", "renamed", "area rotation", "start_direction"))
    assert "radius" not in said
    assert "seat_label" not in said


HALL_ROW, HALL_SEATS = 30, 14


def a_hall(unit: float = 1.0, radius: float | None = None) -> dict[str, Any]:
    """A hall as its editor would draw it: a stage, a floor, two zones, one of them in arcs. `unit` enlarges it."""

    def at(x: float, y: float) -> dict[str, float]:
        return {"x": x * unit, "y": y * unit}

    def row(zone: str, number: int, place: tuple[float, float], bow: float, category: str) -> dict[str, Any]:
        seats = [
            {
                "seat_guid": f"{zone}-{number}-{n}",
                "seat_number": str(2 * n + 1),
                "position": at(25 * n, bow * (n - HALL_SEATS / 2) ** 2),
                "category": category,
                **({} if radius is None else {"radius": radius * unit}),
            }
            for n in range(HALL_SEATS)
        ]
        labels = {"row_number": str(number), "row_label": "Reihe %s", "seat_label": "Platz %s"}
        return {**labels, "position": at(*place), "seats": seats}

    def text(words: str, x: float, y: float) -> dict[str, Any]:
        return {"text": words, "position": at(x, y), "size": 20 * unit, "color": "#222"}

    stage = {"shape": "polygon", "position": at(200, 10), "text": text("BÜHNE", 200, 40)}
    stage["polygon"] = {"points": [at(0, 0), at(400, 0), at(350, 80), at(50, 80)]}
    floor = {"shape": "rectangle", "position": at(0, 0), "rectangle": {"width": 420 * unit, "height": 300 * unit}}
    bar = {"shape": "text", "position": at(60, 700), "text": text("Bar", 0, 0)}
    stalls = [row("p", n, (30, HALL_ROW * n), 0, "Parkett vorne") for n in range(1, 6)]
    circle = [row("b", n, (0, HALL_ROW * n), 0.4, "Balkon") for n in range(1, 4)]
    circle.append({**row("t", 1, (0, 200), 0, "Balkon"), "row_number": "9", "row_label": "Tisch %s"})
    return {
        "name": "Stadtsaal",
        "size": {"width": round(900 * unit), "height": round(800 * unit)},
        "categories": [{"name": "Parkett vorne", "color": "#a00"}, {"name": "Balkon", "color": "#0a0"}],
        "zones": [
            {"name": "Bühne", "position": at(0, 0), "rows": [], "areas": [stage, bar]},
            {
                "name": "Parkett links",
                "zone_id": "5f8c2a6e-77aa-4a10-9d7b-0c1c34a9b1ef",
                "position": at(150, 150),
                "rows": stalls,
                "areas": [{**floor, "text": text("Parkett", 210, 10)}],
            },
            {"name": "Balkon", "zone_id": "BA", "position": at(180, 480), "rows": circle},
        ],
    }


def test_a_hall_keeps_its_names() -> None:
    plan, notes = from_pretix(a_hall())
    assert [(one.id, one.name) for one in plan.sections] == [("Parkett.links", "Parkett links"), ("BA", "Balkon")]
    assert [(row.id, row.name) for row in plan.sections[1].rows][2:] == [("3", ""), ("9", "Tisch 9")]
    assert [seat.number for seat in plan.sections[0].rows[0].seats][:3] == ["1", "3", "5"]
    assert plan.tiers == ("Parkett vorne", "Balkon")
    assert [(item.shape, item.label) for item in plan.decor] == [
        ("rect", "BÜHNE"),
        ("text", "Bar"),
        ("text", "Parkett"),
    ]
    assert any("background" in note for note in notes), "a floor under the seats would be a dark block"
    picture = to_svg(plan)
    assert "BÜHNE" in picture


@given(unit=st.floats(0.05, 40), radius=st.sampled_from([None, 4.0, 10.0, 12.0]))
@settings(max_examples=12)
def test_a_hall_keeps_its_proportions_whatever_its_unit(unit: float, radius: float | None) -> None:
    """Every distance is the source's times one factor, and neighbours are neither apart nor on top of each other."""
    document = a_hall(unit, radius)
    plan, _ = from_pretix(document)
    source = [
        tuple(sum(part[axis] for part in (zone["position"], row["position"], one["position"])) for axis in "xy")
        for zone in document["zones"]
        for row in zone["rows"]
        for one in row["seats"]
    ]
    first, last = source[0], source[-1]
    ours = math.dist((plan.seats[0].x, plan.seats[0].y), (plan.seats[-1].x, plan.seats[-1].y))
    factor = ours / math.dist(first, last)
    for (x, y), one in zip(source[::7], plan.seats[::7], strict=True):
        assert math.dist((x, y), first) * factor == pytest.approx(
            math.dist((one.x, one.y), (plan.seats[0].x, plan.seats[0].y)), abs=0.05
        )
    front = plan.sections[0].rows[0].seats
    assert front[1].x - front[0].x >= 2 * SEAT_RADIUS
    if unit == 1 or radius:
        assert front[1].x - front[0].x == pytest.approx(25 * SEAT_RADIUS / (radius or 10), abs=0.02)
    assert all(0 <= one.x <= plan.width and 0 <= one.y <= plan.height for one in plan.seats)


def test_a_hall_comes_back_from_an_export_as_it_went() -> None:
    plan, _ = from_pretix(a_hall())
    document = to_pretix(plan)
    again, _ = from_pretix(document)
    assert (again.sections, again.decor) == (plan.sections, plan.decor)
    first, second = (one["position"]["x"] for one in document["zones"][0]["rows"][0]["seats"][:2])
    assert second - first == pytest.approx(25, abs=0.03), "as large as it came"


def test_what_lies_beyond_the_edge_moves_into_sight() -> None:
    document = a_hall()
    document["zones"][1]["position"] = {"x": -300, "y": 150}
    plan, _ = from_pretix(document)
    assert min(one.x for one in plan.seats) >= 0
    assert plan.width >= max(one.x for one in plan.seats)


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_export_comes_back_as_the_same_export(kind: str) -> None:
    plan = generate(kind, 400)
    document = to_pretix(plan)
    check_pretix(document)
    back, notes = from_pretix(json.loads(json.dumps(document)))
    assert notes == []
    assert back.seat_ids == plan.seat_ids
    assert back.tiers == plan.tiers
    assert [(s.x, s.y) for s in back.seats] == [(s.x, s.y) for s in plan.seats]
    assert back.decor == plan.decor
    assert to_pretix(back) == document


def test_an_imported_plan_exports_its_own_ids_again() -> None:
    plan, _ = from_pretix(a_document())
    again, _ = from_pretix(to_pretix(plan))
    assert [(s.ref, s.tier, s.x, s.y) for s in again.seats] == [(s.ref, s.tier, s.x, s.y) for s in plan.seats]
    assert again.seat_ids == plan.seat_ids


def test_a_general_admission_area_survives_the_round_trip() -> None:
    plan = small_plan()
    back, _ = from_pretix(to_pretix(plan))
    assert [section.kind for section in back.sections] == [section.kind for section in plan.sections]
    assert back.sections[2].kind is SectionKind.AREA
    assert back.sections[2].shape == plan.sections[2].shape


def place(document: Any, path: str) -> tuple[Any, Any]:
    """The container and the last step of a path such as zones/0/rows."""
    steps = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps[:-1]:
        document = document[step]
    return document, steps[-1]


SEAT = "zones/0/rows/0/seats/0"


@pytest.mark.parametrize(
    "path",
    ["name", "size", "size/width", "categories", "zones", "categories/0/name", "zones/0/position", "zones/0/rows"]
    + ["zones/0/rows/0/seats", "zones/0/rows/0/row_number", "zones/0/areas/0/rectangle/width"]
    + [f"{SEAT}/{key}" for key in ("seat_guid", "seat_number", "position", "category", "position/x")],
)
def test_a_missing_member_is_named(path: str) -> None:
    document = a_document()
    container, key = place(document, path)
    del container[key]
    with pytest.raises(BadPlan, match=f"'{key}' is a required property"):
        check_pretix(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", 5),
        ("size/width", 10.5),
        ("size/depth", 1),
        ("zones", {}),
        ("zones/0/extra", 1),
        ("zones/0/position/z", 1),
        ("zones/0/rows/0/row_number", 7),
        ("zones/0/rows/0/row_number_position", "middle"),
        ("zones/0/areas/0/shape", "blob"),
        ("zones/0/areas/0/rotation", "3"),
        ("categories/0/color", None),
        (f"{SEAT}/seat_guid", "x"),
        (f"{SEAT}/seat_guid", " ab"),
        (f"{SEAT}/position/x", "1"),
        (f"{SEAT}/position/x", True),
        (f"{SEAT}/blocked", True),
        (f"{SEAT}/seat_guid", "g-2"),
        (f"{SEAT}/category", "Silver"),
    ],
)
def test_a_wrong_member_is_refused_with_its_place(path: str, value: Any) -> None:
    document = copy.deepcopy(a_document())
    container, key = place(document, path)
    container[key] = value
    with pytest.raises(BadPlan):
        from_pretix(document)


def test_the_place_of_an_error_is_told() -> None:
    document = a_document()
    document["zones"][0]["rows"][1]["seats"][0]["position"]["x"] = "left"
    with pytest.raises(BadPlan, match="zones/0/rows/1/seats/0/position/x"):
        check_pretix(document)


def test_a_plan_without_seats_is_refused() -> None:
    document = a_document() | {"zones": []}
    with pytest.raises(ValueError, match="1 to 1,000,000 seats"):
        from_pretix(document)


VALUES: list[Any] = [
    None,
    1,
    1.0,
    1.5,
    "x",
    "xy",
    " a",
    "",
    True,
    [],
    {},
    {"x": 1, "y": 2},
    "start",
    "polygon",
    {"points": []},
]
KEYS = [
    "uuid",
    "name",
    "color",
    "radius",
    "rotation",
    "shape",
    "row_label",
    "start_direction",
    "position",
    "size",
    "extra",
]


def nodes(value: Any) -> list[Any]:
    """Every object and list in a document."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict | list) else []) + [node for each in inside for node in nodes(each)]


@given(st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_what_the_quick_check_passes_the_schema_passes(rnd: random.Random) -> None:
    document = a_document()
    for _ in range(rnd.choice((1, 1, 2))):
        node = rnd.choice(nodes(document))
        if isinstance(node, dict):
            key = rnd.choice([*node, *KEYS])
            node[key] = copy.deepcopy(rnd.choice(VALUES))
            if rnd.random() < 0.3:
                del node[key]
        elif node:
            node[rnd.randrange(len(node))] = copy.deepcopy(rnd.choice(VALUES))
    assert not matches_types(document) or _validator().is_valid(document)


def test_the_quick_check_passes_the_usual_plan() -> None:
    assert matches_types(a_document())
    assert matches_types(to_pretix(small_plan()))


@pytest.mark.parametrize("x", [float("nan"), float("inf"), 1e300])
def test_a_seat_must_be_somewhere(x: float) -> None:
    document = a_document()
    document["zones"][0]["rows"][0]["seats"][0]["position"]["x"] = x
    with pytest.raises(InvalidInput, match="10,000,000"):
        from_pretix(document)


def equal_seats(count: int) -> dict[str, Any]:
    """One row in which every seat has the same number."""
    at = {"x": 0, "y": 0}
    seats = [
        {"seat_guid": f"seat {number}", "seat_number": "1", "position": at, "category": "A"} for number in range(count)
    ]
    zone = {"name": "Z", "zone_id": "Z", "position": at, "rows": [{"row_number": "1", "seats": seats}]}
    size, categories = {"width": 10, "height": 10}, [{"name": "A", "color": "#000000"}]
    return {"name": "Hall", "size": size, "categories": categories, "zones": [zone]}


def test_equal_labels_cost_as_much_as_different_ones() -> None:
    """Twice as many equal labels are twice the work, counted in lines of Python; it was four times."""
    lines = {count: lines_run(functools.partial(from_pretix, equal_seats(count))) for count in (200, 400)}
    assert lines[400] < 2.2 * lines[200], lines
    plan, _ = from_pretix(equal_seats(50))
    assert [seat.number for seat in plan.sections[0].rows[0].seats] == ["1", *(f"1.{n}" for n in range(2, 51))]


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of Python run until it is done."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
