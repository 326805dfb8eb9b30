"""What people call a seat, in each language, and what a plan says of itself."""

import pytest

from frontrow.boxoffice.seats.model.best_seats import find_lonely_seats, layouts
from frontrow.boxoffice.seats.model.seat_labels import AREA_ROW
from frontrow.boxoffice.seats.model.seat_names import (
    SEAT_NAMES,
    SeatLabels,
    name_in,
    seat_name,
    seat_parts,
    seat_text,
)
from frontrow.boxoffice.seats.model.venues import OwnVenue, Plan, Row, Seat, Section, SectionKind, Venue
from frontrow.core.errors import InvalidInput
from tests.boxoffice.plan_samples import small_plan


@pytest.mark.parametrize(
    ("seat", "parts"),
    [
        ("S-A-4", ("S", "A", "4")),
        ("S-A-B-4", ("S", "A-B", "4")),
        ("F-12", ("F", "", "12")),
        ("F", ("F", "", "")),
    ],
)
def test_a_seat_id_has_a_section_a_row_and_a_number(seat: str, parts: tuple[str, str, str]) -> None:
    assert seat_parts(seat) == parts


def test_a_seat_has_one_name_per_language() -> None:
    assert seat_text(("Stalls", "J", "20")) == "Stalls, Row J, Seat 20"
    assert seat_text(("Stalls", "J", "20"), "de") == "Stalls, Reihe J, Platz 20"
    assert seat_text(("Stalls", "J", "20"), "xx") == "Stalls, Row J, Seat 20"
    assert seat_text(("Pit", AREA_ROW, "7"), "fr") == "Pit, debout"
    assert (seat_text(("Pit", "", "7")), seat_text(("", "", "7"))) == ("Pit", "7")
    assert len({seat_text(("Stalls", "J", "20"), language) for language in SEAT_NAMES}) == len(SEAT_NAMES)


def test_names_keep_their_order_inside_a_text_from_right_to_left() -> None:
    name = seat_text(("Stalls", "J", "20"), "ar")
    for part in ("Stalls", "J", "20"):
        assert f"\u2068{part}\u2069" in name
    assert seat_text(("Pit", "", ""), "ar") == "\u2068Pit\u2069"


def test_an_english_name_is_said_in_another_language_and_any_other_text_stays() -> None:
    assert name_in("Stalls, Row J, Seat 20", "es") == "Stalls, fila J, asiento 20"
    assert name_in("Pit, standing", "de") == "Pit, Stehplatz"
    assert name_in("Parking", "de") == "Parking"


def test_sections_and_rows_have_their_names_or_ids() -> None:
    labels = SeatLabels({"S": "Stalls"}, {("S", "A"): "1"})
    assert labels.parts("S-A-4") == ("Stalls", "1", "4")
    assert labels.parts("B-A-4") == ("B", "A", "4")
    assert labels.text("S-A-4", "de") == "Stalls, Reihe 1, Platz 4"
    assert small_plan().labels.parts("S-A-4") == ("Stalls", "A", "4")


def test_a_seat_without_a_name_has_its_number() -> None:
    assert (seat_name(["S-A-1"], 0), seat_name(["S-A-1"], 1)) == ("S-A-1", "seat 1")
    assert (seat_name({3: "S-A-4"}, 3), seat_name({3: "S-A-4"}, 4)) == ("S-A-4", "seat 4")


def test_nobody_stands_alone() -> None:
    area = next(one for one in layouts(small_plan()) if one.is_area)
    assert find_lonely_seats(area, bytes(small_plan().size), [0, 2]) == []


def test_an_area_has_one_row() -> None:
    rows = tuple(Row(name, (Seat("1"),)) for name in (AREA_ROW, "2"))
    floor = next(one for one in small_plan().sections if one.kind is SectionKind.AREA)
    with pytest.raises(InvalidInput, match="exactly one row"):
        Plan("Hall", (Section("F", rows, kind=SectionKind.AREA, shape=floor.shape),))


def test_a_venue_that_changed_has_another_tag() -> None:
    assert OwnVenue(Venue("ven_1", "Hall", "p"), 255, 1).tag == "vff"
