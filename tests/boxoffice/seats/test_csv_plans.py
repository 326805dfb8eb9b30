"""Plans from CSV: what is right is understood, what is wrong is named by line and column (B13)."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.seats.formats.csv_plans import BadTable, from_csv
from frontrow.boxoffice.seats.model.venues import SeatFlag, SectionKind
from frontrow.core.errors import InvalidInput

GOOD = """section,row,seat,tier,x,y,step_free,companion,restricted_view,gap_after,capacity
S,A,1,gold,10,20,yes,,,,
S,A,2,gold,20.125,20,1,true,,,
S,A,3,gold,30,20,,,no,x,

S,B,1,silver,10,30,,,Y,,
F,,,pit,100,100,,,,,250
"""


def test_a_table_becomes_a_plan() -> None:
    plan = from_csv("\ufeff" + GOOD, "Hall")
    assert plan.size == 4 + 250
    assert plan.seat_ids[:5] == ("S-A-1", "S-A-2", "S-A-3", "S-B-1", "F-GA-1")
    assert [seat.flags for seat in plan.seats[:4]] == [
        SeatFlag.STEP_FREE,
        SeatFlag.STEP_FREE | SeatFlag.COMPANION,
        SeatFlag.GAP_AFTER,
        SeatFlag.RESTRICTED_VIEW,
    ]
    assert plan.tiers == ("gold", "silver", "pit")
    assert (plan.seats[1].x, plan.seats[1].y) == (20.12, 20.0)
    assert plan.sections[1].kind is SectionKind.AREA


def test_without_positions_seats_are_laid_out() -> None:
    plan = from_csv("section,row,seat\nS,A,1\nS,A,2\nS,B,1\nT,A,1\n", "Hall")
    spots = [(seat.x, seat.y) for seat in plan.seats]
    assert len(set(spots)) == 4
    assert spots[0][1] == spots[1][1] < spots[2][1] < spots[3][1]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("S,A-1,1,,,,,,,,", "line 2, column row: row 'A-1' must be"),
        (",A,1,,,,,,,,", "line 2, column section"),
        ("S,A,,,,,,,,,", "line 2, column seat"),
        ("S,A,1,,ten,5,,,,,", "line 2, column x: 'ten' is not a number"),
        ("S,A,1,,1,nan,,,,,", "line 2, column y: 'nan' is not a number"),
        ("S,A,1,,,,maybe,,,,", "line 2, column step_free: 'maybe' must be yes or no"),
        ("S,A,1,,,,,,,,\nS,A,1,,,,,,,,", "line 3, column seat: S-A-1 is already on line 2"),
        ("S,A,1,,,,,,,,\nS,B,1,,,,,,,,\nS,A,2,,,,,,,,", "line 4, column row: row S-A began earlier"),
        ("S,A,1,,1,1,,,,,\nS,A,2,,,,,,,,", "line 3, column x: give x and y on every line or on none"),
        ("S,A,1,,,,,,,,9", "line 2, column capacity: an area has neither row nor seat"),
        ("F,,,,,,,,,,many", "line 2, column capacity: 'many' must be"),
        ("F,,,,,,,,,,0", "line 2, column capacity: '0' must be"),
        ("F,,,,,,,,,,9\nF,,,,,,,,,,9", "line 3, column section: F occurs twice"),
        ("F,,,,,,,,,,9\nF,A,1,,,,,,,,", "line 3, column section: F is already an area"),
        ("S,A,1", "line 2, column all: 3 cells where the header has 11"),
        ('S,"A,1,,,,,,,,', "line 2"),
        ("", "line 2: the table has no seats"),
    ],
)
def test_mistakes_are_named_by_line_and_column(lines: str, complaint: str) -> None:
    with pytest.raises(BadTable) as caught:
        from_csv(GOOD.splitlines()[0] + "\n" + lines + "\n", "Hall")
    assert complaint in caught.value.message


def test_all_mistakes_are_told_at_once_up_to_twenty() -> None:
    with pytest.raises(BadTable) as caught:
        from_csv("section,row,seat,x\n" + "S,_,1,x\n" * 50, "Hall")
    assert len(caught.value.about["errors"]) == 20


@pytest.mark.parametrize("header", ["section,row", "section,row,seat,colour", "section,row,seat,seat", ""])
def test_a_wrong_header_lists_the_right_columns(header: str) -> None:
    with pytest.raises(BadTable, match="the columns are section, row, seat"):
        from_csv(header + "\nS,A,1\n", "Hall")


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_a_named_mistake(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert from_csv("section,row,seat,x,y,capacity\n" + text, "Hall").size > 0
