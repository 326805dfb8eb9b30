"""What the editor saves: seats go where they were put, everything else stays, and seats on top of others are named."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontrow.boxoffice.seats.formats.plan_document import plan_bytes, plan_hash
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import BadPlan, decode_plan
from frontrow.boxoffice.seats.model.plan_shapes import AreaShape, GridShape
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, area
from frontrow.boxoffice.seats.plan_arrangement import arrange_plan, read_arrangement
from frontrow.core.errors import InvalidInput
from tests.boxoffice.plan_samples import small_plan

HALLS = {kind: decode_plan(plan_bytes(generate(kind, seats))) for kind, seats in (("theatre", 400), ("arena", 1_500))}


def arranged(plan: Plan, *sections: Any) -> Plan:
    """The plan after these placements; sections that are not named stay as they are."""
    named = {one["of"] for one in sections}
    untouched = [{"of": one.id} for one in plan.sections if one.id not in named]
    return arrange_plan(plan, read_arrangement(json.dumps({"sections": [*untouched, *sections]})))


def points(plan: Plan, section: int, row: int, dx: float = 0, dy: float = 0) -> list[int]:
    seats = plan.sections[section].rows[row].seats
    return [round(value * 100) for seat in seats for value in (seat.x + dx, seat.y + dy)]


def rows(plan: Plan, section: int, dx: float = 0, dy: float = 0) -> list[dict[str, Any]]:
    count = len(plan.sections[section].rows)
    labels = [row.id for row in plan.sections[section].rows]
    return [{"of": labels[at], "points": points(plan, section, at, dx, dy)} for at in range(count)]


@pytest.mark.parametrize("kind", list(HALLS))
def test_saving_without_a_change_keeps_every_byte(kind: str) -> None:
    plan = HALLS[kind]
    untouched = [{"of": one.id} for one in plan.sections]
    assert arrange_plan(plan, read_arrangement(json.dumps({"sections": untouched}))) is plan
    again = [
        {"of": one.id, "rows": rows(plan, at)} if not isinstance(one.shape, AreaShape) else {"of": one.id}
        for at, one in enumerate(plan.sections)
    ]
    assert plan_hash(arranged(plan, *again)) == plan_hash(plan)


@settings(max_examples=8)
@given(dx=st.integers(0, 30_000), dy=st.integers(0, 30_000))
def test_a_section_is_where_it_was_put_and_nothing_else_moved(dx: int, dy: int) -> None:
    plan = HALLS["arena"]
    at = next(number for number, one in enumerate(plan.sections) if isinstance(one.shape, GridShape))
    moved_id = plan.sections[at].id
    right, down = dx / 100 + 5_000, dy / 100 + 5_000
    after = decode_plan(plan_bytes(arranged(plan, {"of": moved_id, "rows": rows(plan, at, right, down)})))
    assert isinstance(next(one for one in after.sections if one.id == moved_id).shape, GridShape), "stays small"
    before = dict(zip(plan.seat_ids, plan.seats, strict=True))
    for seat_id, seat in zip(after.seat_ids, after.seats, strict=True):
        was, is_moved = before[seat_id], seat_id.startswith(f"{moved_id}-")
        assert (seat.tier, seat.flags) == (was.tier, was.flags)
        assert seat.x == pytest.approx(was.x + (right if is_moved else 0), abs=0.006)
        assert seat.y == pytest.approx(was.y + (down if is_moved else 0), abs=0.006)
    assert after.width >= max(seat.x for seat in after.seats)


def test_rows_and_sections_are_copied_renamed_and_removed() -> None:
    plan = small_plan()
    front = rows(plan, 0)[:2]
    copy = {"of": "A", "id": "Z", "points": points(plan, 0, 0, 0, 300)}
    twin = {"of": "B", "id": "B.2", "rows": [{"of": "A", "points": points(plan, 1, 0, 0, 400)}]}
    after = decode_plan(
        plan_bytes(arranged(plan, {"of": "S", "id": "Stalls", "rows": [*front, copy]}, {"of": "B"}, twin))
    )
    assert {one.id: [row.id for row in one.rows] for one in after.sections} == {
        "F": ["GA"],
        "Stalls": ["A", "B", "Z"],
        "B": ["A"],
        "B.2": ["A"],
    }
    stalls = after.sections[1]
    assert [seat.flags for seat in stalls.rows[2].seats] == [seat.flags for seat in stalls.rows[0].seats]
    assert stalls.rows[2].rank > stalls.rows[1].rank
    assert after.sections[3].rank > max(one.rank for one in plan.sections)
    assert "Balcony" not in after.sections[3].name, "a copy is called by its own label"


def test_an_area_moves_with_its_places() -> None:
    after = decode_plan(plan_bytes(arranged(small_plan(), {"of": "F", "box": [1000, 20_000, 8000, 4000]})))
    lawn = after.sections[-1]
    assert lawn.shape == AreaShape(10, 200, 80, 40)
    assert (lawn.rows[0].seats[0].x, lawn.rows[0].seats[0].y) == (50, 220)
    assert after.height >= 240


def test_seats_on_top_of_others_are_named_and_old_neighbours_are_not() -> None:
    plan = small_plan()
    with pytest.raises(BadPlan) as refused:
        arranged(plan, {"of": "S", "rows": [*rows(plan, 0)[:2], {"of": "C", "points": points(plan, 0, 1, 1)}]})
    assert refused.value.about["errors"] == ["S-B-1 and S-C-1 overlap, and 9 more of these rows"]
    assert len(refused.value.about["seats"]) == 20
    seats = tuple(Seat(str(number), number * 2.0, 0.0) for number in range(9))
    dense = Plan("Dense", (Section("S", (Row("A", seats),)), Section("T", (Row("A", (Seat("1", 500, 500),)),))))
    after = arranged(dense, {"of": "S", "rows": rows(dense, 0, 40, 40)})
    assert after.seats[-9].x == 40, "seats that lay 2 apart may move together"


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ({"of": "S", "id": "B"}, "section B occurs twice"),
        ({"of": "S", "rows": [{"of": "A"}, {"of": "B", "id": "A"}]}, "row S-A occurs twice"),
        ({"of": "S", "rows": [{"of": "A", "points": [1, 2]}]}, "row S-A has 10 seats, not 1"),
        ({"of": "S", "rows": []}, "section S has no rows"),
        ({"of": "S", "rows": [{"of": "Q"}]}, "section S has no row 'Q' any more"),
        ({"of": "S", "id": "no spaces"}, "use 'no.spaces'"),
        ({"of": "F", "box": [0, 0, 0, 0]}, "needs a width"),
        ({"of": "Nowhere"}, "no section 'Nowhere'"),
        ({"of": "S", "colour": 1}, "not an arrangement"),
        ({"of": "S", "rows": [{"of": "A", "points": [10**12] * 20}]}, "10,000,000"),
    ],
)
def test_what_is_wrong_is_said(placement: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        arranged(small_plan(), placement)


def test_too_many_copies_are_refused_before_they_are_made() -> None:
    copies = [{"of": "F", "id": f"F{number}"} for number in range(1100)]
    plan = small_plan()
    crowd = replace(plan, sections=(*plan.sections[:2], area("F", 1_000)))
    with pytest.raises(BadPlan, match="at most 1,000,000 seats"):
        arranged(crowd, *copies)
    rows_again = [{"of": "A", "id": f"R{number}"} for number in range(101_000)]
    with pytest.raises(BadPlan, match="at most 1,000,000 seats"):
        arranged(small_plan(), {"of": "S", "rows": rows_again})


@pytest.mark.parametrize("text", ["", "[]", "{", '{"sections": []}', '{"sections": [1]}', "[" * 5000, "\ud800"])
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(BadPlan):
        arrange_plan(small_plan(), read_arrangement(text))
