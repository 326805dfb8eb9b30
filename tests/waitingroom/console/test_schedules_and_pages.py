"""Schedules, page designs, figures and documents: pure values."""

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.errors import NewerVersion
from frontrow.waitingroom.console.model.figures import COLUMNS, Figure, as_csv, summary, waits_s
from frontrow.waitingroom.console.model.page_design import PageDesign, checked_design, plain_text
from frontrow.waitingroom.console.model.room_plans import RoomPlan, checked_shop_url, plan_of
from frontrow.waitingroom.console.model.schedules import Schedule, ScheduleStep, checked_schedule, why_not
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState

S = 1_000_000


def room(phase: Phase, issued: int = 0) -> RoomState:
    return RoomState(1, phase, RoomConfig(), (LaneState(issued),))


def test_steps_are_due_from_their_time_on() -> None:
    schedule = checked_schedule(Schedule(10, 20, 30))
    assert schedule.due(9) == []
    assert schedule.due(10) == [(10, ScheduleStep.PREQUEUE)]
    assert [step for _, step in schedule.due(30)] == [ScheduleStep.PREQUEUE, ScheduleStep.OPEN, ScheduleStep.CLOSE]
    assert schedule.first_phase(9) is Phase.CLOSED
    assert schedule.first_phase(25) is Phase.OPEN
    assert Schedule(closes_at_us=30).first_phase(0) is Phase.OPEN
    assert Schedule().first_phase(0) is Phase.OPEN


@pytest.mark.parametrize(
    ("schedule", "param"),
    [
        (Schedule(10), "opens_at"),
        (Schedule(20, 20), "prequeue_at"),
        (Schedule(0, 20, 20), "closes_at"),
        (Schedule(0, -1), "opens_at"),
    ],
)
def test_a_schedule_in_the_wrong_order_is_refused(schedule: Schedule, param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_schedule(schedule)
    assert refused.value.param == param


@pytest.mark.parametrize("step", list(ScheduleStep))
@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("issued", [0, 3])
def test_a_step_never_undoes_what_was_done_by_hand(step: ScheduleStep, phase: Phase, issued: int) -> None:
    acts = not why_not(step, room(phase, issued))
    allowed = {
        ScheduleStep.PREQUEUE: phase is Phase.CLOSED and not issued,
        ScheduleStep.OPEN: phase in (Phase.PREQUEUE, Phase.CLOSED),
        ScheduleStep.CLOSE: phase is not Phase.CLOSED,
    }
    assert acts == allowed[step]


def test_a_document_of_a_newer_server_is_not_misread() -> None:
    plan = RoomPlan("aurora", 5, schedule=Schedule(0, 7))
    assert plan_of(plan.to_text()) == plan
    with pytest.raises(NewerVersion):
        plan_of(plan.to_text().replace('"v":1', '"v":2'))
    with pytest.raises(NewerVersion):
        plan_of(plan.to_text().replace('"v":1', '"w":1'))


def test_nothing_an_owner_writes_can_become_more_than_text() -> None:
    hidden = "\u202esale\u0000 \x1b[1m"
    assert plain_text(hidden, 100, "text") == "sale [1m"
    design = checked_design(PageDesign("#A3123F", texts={"en": "<b>hi</b>"}, languages=("de", "en")))
    assert (design.colour, design.languages, design.text("de")) == ("#a3123f", ("en", "de"), "<b>hi</b>")
    for colour in ("red", "#a3123f;}", "#a3123", "url(x)"):
        with pytest.raises(InvalidInput):
            checked_design(PageDesign(colour))
    for languages in ((), ("xx",)):
        with pytest.raises(InvalidInput):
            checked_design(PageDesign(languages=languages))
    for url in ("javascript:alert(1)", "//shop.example.org", "https://a@b/", "ftp://x/", "https://a b/", "https:///x"):
        with pytest.raises(InvalidInput):
            checked_shop_url(url)
    assert checked_shop_url("https://shop.example.org") == "https://shop.example.org/"


def figure(at_s: int, joined: int, admitted: int, **more: int) -> Figure:
    given = {"active": 0, "no_shows": 0} | more
    return Figure(at_s * S, joined - admitted, joined, admitted, given["active"], given["no_shows"], "open")


def test_a_wait_is_the_time_since_the_line_was_as_long_as_the_last_who_came_in() -> None:
    figures = [figure(0, 0, 0), figure(10, 100, 0), figure(20, 150, 50), figure(30, 150, 150, no_shows=9)]
    assert waits_s(figures) == [None, None, 10, 10]
    told = summary(figures)
    assert (told.joined, told.admitted, told.no_shows, told.most_waiting) == (150, 150, 9, 100)
    assert (told.median_wait_s, told.longest_wait_s) == (10, 10)
    assert waits_s([figure(5, 80, 40)]) == [None], "the line grew before the first figure"
    assert summary([]).median_wait_s is None


def test_the_export_has_one_line_per_figure_and_no_formula() -> None:
    lines = as_csv([figure(0, 0, 0), figure(10, 100, 40)]).split("\r\n")
    assert lines[0].split(",") == list(COLUMNS)
    assert lines[2] == "1970-01-01T00:00:10Z,60,100,40,0,0,0,open"
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line.split(","))
