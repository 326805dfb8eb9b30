"""Every format sums up the seats of a plan before it makes one: a small file cannot take much memory."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from frontrow.boxoffice.seats.formats.plan_document import to_document
from frontrow.boxoffice.seats.formats.plan_reader import BadPlan, plan_from_document
from frontrow.boxoffice.seats.model.venues import MAX_SEATS, Plan, area
from frontrow.boxoffice.seats.plan_arrangement import Arrangement, SectionPlacement, arrange_plan
from frontrow.boxoffice.seats.plan_editing import add_area, add_rows
from frontrow.boxoffice.seats.seat_ranges import parse_seat_ranges
from frontrow.boxoffice.seats.venues import PlanSource, read_source
from frontrow.core.errors import InvalidInput

FEW_BYTES = 4_000_000  # a million seats take over a hundred times as much
SECTIONS = 3


def refused(make: Callable[..., Any], *given: Any) -> InvalidInput:
    """The refusal, which must come before the seats are made."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as error:
            make(*given)
        assert tracemalloc.get_traced_memory()[1] < FEW_BYTES
    finally:
        tracemalloc.stop()
    return error.value


def areas_document(*capacities: int) -> dict[str, Any]:
    """A document with these areas, whatever they add up to."""
    document = to_document(Plan("Fields", tuple(area(f"A{n}", 1) for n in range(len(capacities)))))
    for entry, capacity in zip(document["sections"], capacities, strict=True):
        entry[-1] = [capacity]
    return document | {"seats": sum(capacities)}


def test_areas_of_a_csv_are_summed_with_its_seats() -> None:
    lines = "".join(f"A{n},,,{MAX_SEATS}\n" for n in range(SECTIONS))
    error = refused(read_source, PlanSource(csv=f"section,row,seat,capacity\n{lines}"), "Fields")
    assert "line 3: more than 1,000,000 seats" in error.message
    mixed = f"section,row,seat,capacity\nS,A,1,\nA,,,{MAX_SEATS}\n"
    assert "line 3: more than 1,000,000 seats" in refused(read_source, PlanSource(csv=mixed), "Fields").message
    long = "section,row,seat,capacity\nA,,,1000000000000\n"
    assert "must be a whole number" in refused(read_source, PlanSource(csv=long), "Fields").message


def test_a_mistake_on_the_last_line_of_a_csv_is_told_before_areas_are_made() -> None:
    text = f"section,row,seat,capacity\nA,,,{MAX_SEATS - 1}\nB,,,many\n"
    assert "line 3, column capacity" in refused(read_source, PlanSource(csv=text), "Fields").message


def test_sections_of_a_document_are_summed() -> None:
    document = areas_document(*[MAX_SEATS] * SECTIONS)
    assert "at most 1,000,000 seats" in refused(plan_from_document, document).message
    assert plan_from_document(areas_document(5, 7)).size == 12
    for counts in ([-1, 2], [True], [1.5], ["3"], []):
        wrong = areas_document(1)
        wrong["sections"][0][-1] = counts
        assert isinstance(refused(plan_from_document, wrong), BadPlan), counts


def test_rows_of_a_document_are_summed_even_if_they_are_empty() -> None:
    document = to_document(Plan("Fields", (area("A", 1),)))
    document["sections"][0][-1] = [0] * (MAX_SEATS + 1)
    assert "at most 1,000,000 seats" in refused(plan_from_document, document).message


@pytest.mark.parametrize(
    "runs", [[[10**6, 0], [3 - 10**6, 0]], [[-1, 0], [4, 0]], [[1.0, 0], [2, 0]], [[4, 0]], [[True, 0], [2, 0]]]
)
@pytest.mark.parametrize("what", ["flags", "tiers"])
def test_run_lengths_that_add_up_by_going_back_are_refused(what: str, runs: list[list[Any]]) -> None:
    """A million and minus a million and three make three."""
    document = areas_document(3)
    document["detail"][0][what] = runs
    assert "run lengths" in refused(plan_from_document, document).message


def test_seats_of_a_pretix_plan_are_counted_first() -> None:
    seat = {"seat_guid": "g", "seat_number": "1", "category": "c", "position": {"x": 0, "y": 0}}
    seats = [seat] * (MAX_SEATS + 1)
    zone = {
        "name": "Z",
        "position": {"x": 0, "y": 0},
        "rows": [{"row_number": "1", "position": {"x": 0, "y": 0}, "seats": seats}],
    }
    size = {"width": 100, "height": 100}
    document = {"name": "P", "size": size, "categories": [{"name": "c", "color": "#000"}], "zones": [zone]}
    assert "at most 1,000,000 seats" in refused(read_source, PlanSource(pretix=document), "P").message


def test_the_editor_counts_what_is_there_and_what_comes() -> None:
    full = Plan("Fields", (area("A", MAX_SEATS - 10),))
    assert "not 1,099,990" in refused(add_rows, full, "B", "", 200, 500, "standard").message
    assert "not 1,099,990" in refused(add_area, full, "B", "", 100_000, "standing").message
    copies = Arrangement([SectionPlacement("A", f"B{n}") for n in range(SECTIONS)])
    assert "at most 1,000,000 seats" in refused(arrange_plan, full, copies).message


def test_the_generator_makes_no_more_than_it_says() -> None:
    assert "20 to 200,000" in refused(read_source, PlanSource(generate="stadium", seats=MAX_SEATS), "S").message


def test_seat_ranges_name_no_seat_again_and_again() -> None:
    plan = Plan("Fields", (area("A", 1_000),))
    everything = "\n".join(f"A-GA-{first}…1000" for first in range(1, 1_001))
    assert "name every seat 3 times" in refused(parse_seat_ranges, plan, everything).message
    assert len(parse_seat_ranges(plan, "A\nA-GA-1…500\nA-GA-7")) == 1_000
