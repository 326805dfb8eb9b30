"""pretix' seating-plan JSON in and out, checked against its published format (B13)."""

import copy
import functools
import json
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.model.venues import SectionKind
from frontrow.boxoffice.plans.plan_generator import KINDS, generate
from frontrow.boxoffice.plans.plan_reader import BadPlan
from frontrow.boxoffice.plans.pretix_format import _validator, check_pretix, from_pretix, to_pretix
from frontrow.boxoffice.plans.pretix_types import matches_types
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
    assert [(seat.x, seat.y) for seat in plan.seats] == [(110.0, 70.25), (135.0, 70.25), (100.0, 50.0), (0.0, 0.0)]
    assert {seat.tier for seat in plan.seats} == {"Gold"}
    assert [item.shape for item in plan.decor] == ["rect", "ellipse", "ellipse", "text"]
    assert (plan.decor[0].x, plan.decor[0].y, plan.decor[3].label) == (101.5, 52.0, "BAR")
    assert any("radius" in note for note in notes)
    assert any("polygon" in note for note in notes)
    assert any("renamed" in note for note in notes)


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
