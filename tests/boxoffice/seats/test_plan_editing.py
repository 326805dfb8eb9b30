"""Small changes to a plan, and seats as people write them: exact, named by line, and nothing else moves (B13)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.seats import plan_editing as editing
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.formats.plan_reader import decode_plan
from frontrow.boxoffice.seats.model.venues import Plan, SeatFlag
from frontrow.boxoffice.seats.seat_ranges import format_seat_ranges, parse_seat_ranges
from frontrow.core.errors import InvalidInput, NotFound
from tests.boxoffice.plan_samples import small_plan

THEATRE = generate("theatre", 300)


def places(plan: Plan) -> dict[str, tuple[float, float]]:
    return {seat_id: (seat.x, seat.y) for seat_id, seat in zip(plan.seat_ids, plan.seats, strict=True)}


def kept(plan: Plan) -> Plan:
    """As it comes back from the ledger."""
    return decode_plan(plan_bytes(plan))


@given(st.sets(st.integers(0, THEATRE.size - 1)))
def test_seats_written_and_read_again_are_the_same_seats(seats: set[int]) -> None:
    assert THEATRE.indexes(parse_seat_ranges(THEATRE, format_seat_ranges(THEATRE, seats))) == sorted(seats)


def test_whole_rows_and_sections_take_one_line() -> None:
    assert format_seat_ranges(THEATRE, set(THEATRE.section_range(0))) == "Stalls"
    row = THEATRE.sections[1].rows[0]
    seats = THEATRE.indexes([f"Circle-{row.id}-{seat.number}" for seat in row.seats])
    assert format_seat_ranges(THEATRE, set(seats)) == f"Circle-{row.id}"
    assert format_seat_ranges(THEATRE, set(seats[1:4])) == f"Circle-{row.id}-2…4"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Stalls-A-1\nNowhere", "line 2: there is no section Nowhere"),
        ("Stalls-ZZ", "line 1: section Stalls has no row ZZ"),
        ("\n\nStalls-A-1...999", "line 3: Stalls-A-1...999: there is no seat 999 in this row"),
        ("Stalls-A-4…2", "line 1: Stalls-A-4…2: seat 2 comes before seat 4"),
    ],
)
def test_a_line_that_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_seat_ranges(THEATRE, text)
    assert refused.value.message == said


@pytest.mark.parametrize("kind", ["theatre", "arena"])
def test_a_new_section_lies_below_and_nothing_else_moves(kind: str) -> None:
    plan = generate(kind, 400)
    before = places(kept(plan))
    grown = kept(editing.add_area(editing.add_rows(plan, "New", "Parterre", 3, 5, "front"), "Lawn", "", 50, "lawn"))
    assert grown.size == plan.size + 15 + 50
    after = places(grown)
    assert {seat_id: after[seat_id] for seat_id in before} == before
    lowest = max(y for _, y in before.values())
    assert all(after[f"New-{row}-{seat}"][1] > lowest for row in "ABC" for seat in range(1, 6))
    assert max(x for x, _ in after.values()) < grown.width
    assert max(y for _, y in after.values()) < grown.height


@pytest.mark.parametrize("kind", ["theatre", "arena"])
def test_a_moved_section_moves_as_asked_and_never_off_the_plan(kind: str) -> None:
    plan = generate(kind, 400)
    before = places(kept(plan))
    for section in plan.sections:
        moved = places(kept(editing.move_section(plan, section.id, 30, 900)))
        for seat_id, (x, y) in before.items():
            ours = seat_id.startswith(f"{section.id}-")
            assert moved[seat_id] == pytest.approx((x + 30, y + 900) if ours else (x, y), abs=0.02), seat_id
    pushed = kept(editing.move_section(plan, plan.sections[0].id, -5_000, -5_000))
    assert min(x for x, _ in places(pushed).values()) >= 0


def test_seats_are_marked_and_unmarked() -> None:
    plan = small_plan()
    seats = plan.seat_ids[:2]
    marked = kept(editing.mark_seats(plan, seats, "step_free", on=True))
    assert [bool(seat.flags & SeatFlag.STEP_FREE) for seat in marked.seats[:3]] == [True, True, False]
    assert editing.mark_seats(marked, seats, "step_free", on=False).seats[0].flags & SeatFlag.STEP_FREE == 0
    with pytest.raises(InvalidInput):
        editing.mark_seats(plan, seats, "golden", on=True)


def test_names_tiers_and_removal() -> None:
    plan = small_plan()
    first = plan.sections[0]
    renamed = editing.rename_section(plan, first.id, "Best seats", "gold")
    assert (renamed.sections[0].name, renamed.sections[0].rows[0].seats[0].tier) == ("Best seats", "gold")
    assert editing.rename_section(renamed, first.id, first.id, "").sections[0].name == ""
    assert editing.remove_section(plan, first.id).size == plan.size - first.size
    with pytest.raises(NotFound):
        editing.remove_section(plan, "nothing")
    with pytest.raises(InvalidInput):
        editing.add_rows(plan, first.id, "", 1, 1, "x")
    for rows, in_row in ((0, 5), (5, 0), (201, 1), (1, 501)):
        with pytest.raises(InvalidInput):
            editing.add_rows(plan, "Q", "", rows, in_row, "x")
    last = plan
    for section in plan.sections[1:]:
        last = editing.remove_section(last, section.id)
    with pytest.raises(InvalidInput):
        editing.remove_section(last, last.sections[0].id)
