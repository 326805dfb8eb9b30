"""No page shows the words of an error, which are English and for programs: each refusal has a sentence (issue 26)."""

import ast
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from frontrow.boxoffice.events.model.show_dates import DateRule, dates_by_rule, moments_of
from frontrow.boxoffice.seats import plan_editing
from frontrow.boxoffice.seats.formats.csv_plans import from_csv
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.boxoffice.seats.plan_arrangement import read_arrangement
from frontrow.boxoffice.seats.seat_ranges import parse_seat_ranges
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.waitingroom.credentials.fan_codes import read_csv
from frontrow.web.site.languages import LANGUAGES, words_of
from frontrow.web.site.organiser.form_fields import OTHERWISE
from frontrow.web.site.organiser.refusal_sentences import PLAN_FILE, TEXTS, sentence_of, sentences_of
from tests.web.site.texts import WEB

HEAD = "section,row,seat,x,y,step_free,capacity\n"
DAY = datetime(2027, 1, 4)


def hall() -> Plan:
    return generate("theatre", 200)


# what somebody does wrong -> what the page says in English
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a section that is not there": (lambda: parse_seat_ranges(hall(), "\nNowhere"), "Line 2 names no seats"),
    "too many lines": (lambda: parse_seat_ranges(hall(), "x\n" * 6_000), "at most 5,000"),
    "a row without seats": (lambda: plan_editing.add_rows(hall(), "N", "", 0, 5, "t"), "1 to 200 rows of 1 to 500"),
    "an area for nobody": (lambda: plan_editing.add_area(hall(), "N", "", 0, "t"), "holds 1 to 100,000 people"),
    "a label with blanks": (lambda: plan_editing.add_area(hall(), "a b", "", 5, "t"), "A section’s name has"),
    "a code twice": (lambda: read_csv(["code,lane", "abcd,x", "abcd,x"], {"x": 1}), OTHERWISE),
    "a day that never comes": (
        lambda: dates_by_rule(DateRule(frozenset({6}), (DAY.time(),), DAY.date(), DAY.date())),
        "None of these days",
    ),
    "a time that the clocks skip": (
        lambda: moments_of([datetime(2027, 3, 28, 2, 30)], "Europe/Vienna"),
        "2027-03-28 02:30 does not exist",
    ),
    "no date": (lambda: moments_of([], "UTC"), "1 to 100 dates"),
}
TABLES = {
    "a seat twice": (f"{HEAD}A,1,1,,,,\nA,1,1,,,,\n", "Line 3: section, row and seat"),
    "no number": (f"{HEAD}A,1,1,x,1,,\n", "Line 2: x and y are numbers"),
    "a flag": (f"{HEAD}A,1,1,,,perhaps,\n", "Line 2, column step_free: write yes or no"),
    "a capacity": (f"{HEAD}A,,,,,,-1\n", "from 1 to 1,000,000"),
    "cells": (f"{HEAD}A,1\n", "Line 2 does not have as many cells"),
    "columns": ("a,b\n", "The first line names the columns: section, row, seat"),
    "quotation marks": (f'{HEAD}"A"x,1,1,,,,\n', "Line 2: this table cannot be read"),
    "no seats": (HEAD, "1 to 1,000,000 seats"),
}


def refusal(act: Callable[[], object]) -> FrontrowError:
    with pytest.raises(FrontrowError) as caught:
        act()
    return caught.value


def said_everywhere(error: FrontrowError, sentences: list[str], english: str) -> None:
    assert english in words_of("en")(sentences[0])
    for language in LANGUAGES:
        for one in sentences:
            shown = words_of(language)(one)
            assert "{" not in shown
            if language != "en":
                assert error.message not in shown
                assert shown != words_of("en")(one), (language, shown)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_service_refuses_is_said_in_every_language(name: str) -> None:
    act, english = REFUSED[name]
    error = refusal(act)
    said_everywhere(error, [sentence_of(error)], english)


@pytest.mark.parametrize("name", TABLES)
def test_every_wrong_line_of_a_plan_is_said_in_every_language(name: str) -> None:
    table, english = TABLES[name]
    error = refusal(lambda: from_csv(table, "Hall"))
    said_everywhere(error, sentences_of(error), english)


@pytest.mark.parametrize("param", ["ticket_types", "add_ons", "discounts", "limits"])
def test_what_is_wrong_with_the_options_of_a_sale_is_said_in_every_language(param: str) -> None:
    error = InvalidInput("zebra", param=param)
    said_everywhere(error, [sentence_of(error)], "Check the ")


def test_a_plan_that_cannot_be_read_at_all_is_said_in_every_language() -> None:
    error = refusal(lambda: read_arrangement("{"))
    said_everywhere(error, sentences_of(error), PLAN_FILE)
    overlap = InvalidInput("zebra", param="seats", overlaps=[("S-A-1", "S-B-1", 0), ("S-A-1", "S-C-1", 3)])
    said_everywhere(overlap, sentences_of(overlap), "S-A-1 and S-B-1 overlap.")


def test_an_error_without_a_sentence_says_that_it_is_not_possible() -> None:
    assert sentence_of(InvalidInput("zebra", param="unheard of")) == OTHERWISE
    assert sentence_of(InvalidInput("zebra", reason="fan_codes")) == OTHERWISE  # it does not say which line
    assert sentence_of(InvalidInput("zebra", reason="fan_codes", line=3)) == TEXTS["fan_codes"]


def test_no_page_reads_the_words_of_an_error() -> None:
    """`error.message` and `str(error)` are for programs and logs."""
    found = [f"{path.relative_to(WEB)}:{line}" for path in sorted((WEB / "site").rglob("*.py")) for line in reads(path)]
    assert found == []


def reads(path: Path) -> list[int]:
    """The lines that take the text out of an error."""
    tree = ast.parse(path.read_text("utf-8"))
    caught = {one.name for one in ast.walk(tree) if isinstance(one, ast.ExceptHandler)} | {"error"}
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "message" and _is_one_of(node.value, caught))
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str" and _is_one_of(node.args[0], caught))
        or (isinstance(node, ast.FormattedValue) and _is_one_of(node.value, caught))
    ]


def _is_one_of(node: ast.expr, names: set[str | None]) -> bool:
    return isinstance(node, ast.Name) and node.id in names
