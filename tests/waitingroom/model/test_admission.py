"""W3, W6: how many are admitted: due windows, permits, capacity, people."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model.admission import observe, plan_slide, slide_bounds
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.model.measurements import Measured, read_note, write_note
from frontrow.waitingroom.model.room_state import LaneState, RoomState, SlidePlan
from frontrow.waitingroom.model.window import Slide

S = 1_000_000


def room(**changes: object) -> RoomState:
    config = RoomConfig(capacity=1000, window_size=100, interval_us=S, rate_per_s=1000, burst=1000)
    base = RoomState(
        1, Phase.OPEN, config, (LaneState(issued=500),), slid_at_us=0, bucket_milli=10**6, bucket_at_us=S, now_us=S
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def planned(state: RoomState) -> SlidePlan:
    step = plan_slide(state)
    assert step is not None
    return step


def test_w3_the_window_slides_by_its_size() -> None:
    step = planned(room())
    assert (step.his, step.los, step.admitted) == ((100,), (0,), 100)


def test_w3_nothing_is_due_before_the_interval_and_one_window_after_many() -> None:
    """After six intervals without a leader six windows were admitted at once."""
    assert plan_slide(room(now_us=S - 1)) is None
    late = planned(room(now_us=6 * S))
    assert (late.admitted, late.due) == (100, 6), "the windows that nobody was let in by are gone"


@pytest.mark.parametrize(
    ("interval_us", "catch_up_us", "windows"),
    [(S, S, 1), (S, 0, 1), (S, 2 * S, 2), (S, 3600 * S, 6), (2 * S, S, 1), (S // 4, S, 4), (S // 4, 0, 1)],
)
def test_w3_windows_that_fell_due_without_a_leader_are_made_up_for_as_far_as_set(
    interval_us: int, catch_up_us: int, windows: int
) -> None:
    """Where windows follow each other faster than leaders look, those of the last second are no gap."""
    config = RoomConfig(window_size=10, interval_us=interval_us, catch_up_us=catch_up_us)
    step = planned(room(config=config, now_us=6 * S))
    assert (step.admitted, step.due) == (windows * 10, 6 * S // interval_us)


def test_a_room_of_an_older_version_can_be_read_by_it_again() -> None:
    assert "catch_up_us" not in RoomConfig().to_json()
    changed = RoomConfig(catch_up_us=5 * S)
    assert RoomConfig.from_json(changed.to_json()) == changed


@pytest.mark.parametrize("phase", [Phase.PREQUEUE, Phase.PAUSED, Phase.QUEUE_ALL, Phase.CLOSED])
def test_nobody_is_admitted_while_the_room_is_not_open(phase: Phase) -> None:
    assert plan_slide(room(phase=phase)) is None


def test_w3_whole_windows_only_skips_while_the_queue_is_shorter_than_one() -> None:
    strict = RoomConfig(capacity=10**6, window_size=100, min_slide=100)
    step = planned(room(config=strict, lanes=(LaneState(issued=99),)))
    assert step.admitted == 0
    assert step.ring == (), "a skipped slide expires nobody"
    assert planned(room(config=strict, lanes=(LaneState(issued=100),))).admitted == 100


def test_w3_a_skipped_slide_never_makes_a_later_place_expired() -> None:
    """By count: with nobody waiting the window stands still, so whoever joins is waiting, not expired."""
    state = room(config=RoomConfig(active_windows=2), lanes=(LaneState(issued=10, hi=10),))
    for _ in range(20):
        step = planned(replace(state, now_us=state.now_us + 2 * S, slid_at_us=state.now_us))
        state = replace(state, note=step.note, ring=step.ring, now_us=state.now_us + S)
        assert step.los == (0,)
        assert step.his == (10,)


def test_w3_who_comes_to_an_empty_room_is_admitted_by_the_interval_that_nobody_used() -> None:
    """At most one such interval is kept, so a quiet hour makes no crowd: 250 who come then take three slides."""
    quiet = room(now_us=10 * S, slid_at_us=5 * S, lanes=(LaneState(),))
    step = planned(quiet)
    assert (step.due, step.admitted) == (4, 0)
    kept = replace(quiet, slid_at_us=9 * S)
    assert plan_slide(kept) is None
    crowd = replace(kept, lanes=(LaneState(250),), now_us=kept.now_us + S // 2)
    step = planned(crowd)
    assert (step.due, step.admitted) == (1, 100)
    after = replace(crowd, slid_at_us=10 * S, lanes=(LaneState(250, 100),))
    assert plan_slide(after) is None
    assert planned(replace(after, now_us=11 * S)).admitted == 100


def test_w6_the_bucket_meters_admissions() -> None:
    slow = RoomConfig(capacity=10**6, window_size=1000, rate_per_s=7, burst=50)
    state = room(config=slow, bucket_milli=0, bucket_at_us=0, now_us=3 * S)
    step = planned(state)
    assert step.admitted == 21
    assert step.bucket_milli == 0
    full = planned(room(config=slow, bucket_milli=0, bucket_at_us=0, now_us=100 * S))
    assert full.admitted == 50, "never more than the burst at once"


def test_w6_admissions_fit_the_free_capacity() -> None:
    tight = RoomConfig(capacity=40, window_size=1000)
    assert planned(room(config=tight)).admitted == 40
    assert planned(room(config=tight, active=35)).admitted == 5
    ring = (Slide(1, S, (30,), 30),)
    assert planned(room(config=tight, lanes=(LaneState(500, 30),), ring=ring, slide_no=1, active=5)).admitted == 5
    assert planned(room(config=RoomConfig(capacity=0))).admitted == 0


@given(st.integers(0, 2000), st.integers(0, 3000), st.integers(0, 500), st.integers(1, 9), st.integers(0, 10**6))
def test_w6_a_slide_never_passes_any_of_its_four_bounds(
    active: int, issued: int, hi: int, due: int, bucket_milli: int
) -> None:
    state = room(
        active=active,
        lanes=(LaneState(issued + hi, hi),),
        now_us=due * S,
        bucket_milli=bucket_milli,
        bucket_at_us=due * S,
    )
    if not issued:  # one interval is kept for whoever comes next
        assert plan_slide(replace(state, now_us=S)) is None
        return
    limits = slide_bounds(state, Measured(), 1)
    step = planned(state)
    assert step.admitted <= min(100, bucket_milli // 1000, max(0, 1010 - active), issued)
    assert step.admitted == limits.admit
    assert step.bucket_milli >= 0


def test_measurements_survive_a_change_of_leader_and_a_foreign_note() -> None:
    measured = observe(room(ring=(Slide(1, 0, (9,), 9),)), Measured(at_us=1))
    assert read_note(write_note(measured)) == measured
    assert read_note("not json") == Measured()
    assert read_note("") == Measured()


def test_a_cut_of_capacity_is_named_as_the_reason() -> None:
    measured = Measured()
    state = room(lanes=(LaneState(10**6, 0),))
    for second in range(1, 40):
        state = replace(state, now_us=second * S, lanes=(LaneState(10**6, 50 * second),))
        measured = observe(state, measured)
    assert measured.shown_milli[0] == pytest.approx(50_000, rel=0.05)
    assert measured.reason == ""
    cut = replace(state, config=state.config.changed(capacity=10), now_us=41 * S)
    assert observe(cut, measured).reason == "capacity"


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity": -1},
        {"window_size": 0},
        {"interval_us": 0},
        {"rate_per_s": -1},
        {"burst": 0},
        {"lanes": ()},
        {"lanes": (LaneRule("a"), LaneRule("a"))},
        {"lanes": (LaneRule("a", 0),)},
        {"active_windows": 65},
        {"pass_ttl_s": 0},
        {"max_stay_s": 10},
        {"message": "x" * 300},
        {"capacity": 1.5},
    ],
)
def test_bad_settings_are_clear_errors(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        RoomConfig(**wrong)  # type: ignore[arg-type]


def test_settings_survive_json() -> None:
    config = RoomConfig(capacity=7, lanes=(LaneRule("general"), LaneRule("fans", 3)), message="süß")
    assert RoomConfig.from_json(config.to_json()) == config
