"""W3, W6: what a slide's plan has in it, when nobody has to queue, and how the margin follows the shop."""

from dataclasses import replace

import msgspec
import pytest

from frontrow.waitingroom.model.admission import (
    MARGIN_HIGH,
    MARGIN_LOW,
    admits_everybody,
    apply_plan,
    bucket_permits,
    observe,
    plan_slide,
    slide_bounds,
)
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.model.measurements import AGES, KNOCKING_SHARE, Measured, read_note, write_note
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.window import Slide

S = 1_000_000
TWO_LANES = (LaneRule("general"), LaneRule("fans", 3))


def room(**changes: object) -> RoomState:
    config = RoomConfig(capacity=1000, window_size=100, interval_us=S, rate_per_s=1000, burst=1000)
    base = RoomState(
        1, Phase.OPEN, config, (LaneState(issued=500),), slid_at_us=0, bucket_milli=10**6, bucket_at_us=S, now_us=S
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def measured(**changes: object) -> Measured:
    return msgspec.structs.replace(Measured(margin=0.0), **changes)


def test_a_plan_names_its_slide_the_time_the_edges_and_what_is_left_in_the_bucket() -> None:
    before = Slide(7, 0, (40, 2), 42)
    config = RoomConfig(capacity=1000, window_size=100, interval_us=S, rate_per_s=1000, burst=1000, lanes=TWO_LANES)
    state = room(
        config=config, lanes=(LaneState(500, 40, 3), LaneState(500, 2, 1)), ring=(before,), slide_no=7, bucket_at_us=S
    )
    plan = plan_slide(state)
    assert plan is not None
    assert (plan.expected_slide_no, plan.due, plan.admitted) == (7, 1, 100)
    assert (plan.his, plan.los) == ((65, 77), (3, 1)), "the lane of weight 3 gets three of four"
    assert plan.ring == (before, Slide(8, S, (65, 77), 100))
    assert (plan.bucket_milli, plan.bucket_at_us) == (900_000, S)
    after = apply_plan(state, plan)
    assert [(lane.issued, lane.hi, lane.lo) for lane in after.lanes] == [(500, 65, 3), (500, 77, 1)]
    assert (after.ring, after.slide_no, after.note) == (plan.ring, 8, plan.note)


def test_a_plan_carries_the_measurements_and_the_lanes_credits_on() -> None:
    config = RoomConfig(capacity=1000, window_size=1, interval_us=S, rate_per_s=1000, burst=1000, lanes=TWO_LANES)
    state = room(config=config, lanes=(LaneState(500), LaneState(500)))
    given = [0, 0]
    for second in range(1, 9):
        state = replace(state, now_us=second * S, slid_at_us=(second - 1) * S, bucket_at_us=second * S)
        plan = plan_slide(state)
        assert plan is not None
        assert plan.admitted == 1
        state = apply_plan(state, plan)
        assert read_note(plan.note).at_us == second * S
        given = [lane.hi for lane in state.lanes]
    assert given == [2, 6], "credits of a slide with one place count in the next"


def test_credits_of_another_number_of_lanes_are_forgotten() -> None:
    lanes = (LaneState(500), LaneState(500))
    config = RoomConfig(capacity=1000, window_size=4, interval_us=S, rate_per_s=1000, burst=1000, lanes=TWO_LANES)
    fresh = plan_slide(room(config=config, lanes=lanes))
    foreign = plan_slide(room(config=config, lanes=lanes, note=write_note(Measured(credits=(90_000,)))))
    assert fresh is not None
    assert foreign is not None
    assert fresh.his == foreign.his == (1, 3)


def test_w2_by_count_no_slide_is_merged_and_the_lower_edge_follows_at_once() -> None:
    """By count each slide is one of the last k, however close or far apart they are."""
    config = RoomConfig(window_size=10, interval_us=1_000, active_windows=2, capacity=10**6, rate_per_s=10**6)
    state = room(config=config, lanes=(LaneState(500),), now_us=1_000)
    los = []
    for number in range(1, 6):
        state = replace(state, now_us=number**3 * 1_000, slid_at_us=(number**3 - 1) * 1_000)
        plan = plan_slide(state)
        assert plan is not None
        state = apply_plan(state, plan)
        los.append(state.lanes[0].lo)
    assert los == [0, 0, 10, 20, 30]
    assert [slide.number for slide in state.ring] == [1, 2, 3, 4, 5]
    config = config.changed(active_windows=64)  # a 32nd of their time is two intervals
    state = room(config=config, lanes=(LaneState(500),))
    for number in range(1, 4):
        plan = plan_slide(replace(state, now_us=number * 1_000, slid_at_us=(number - 1) * 1_000))
        assert plan is not None
        state = apply_plan(state, plan)
    assert [slide.size for slide in state.ring] == [10, 10, 10]


def test_w2_by_time_slides_that_follow_closely_share_their_grace() -> None:
    config = RoomConfig(window_size=10, interval_us=S, grace_us=320 * S, capacity=10**6, rate_per_s=10**6)
    state = room(config=config)
    for number in range(1, 5):
        state = replace(state, now_us=number * S, slid_at_us=(number - 1) * S)
        plan = plan_slide(state)
        assert plan is not None
        state = apply_plan(state, plan)
    assert [(slide.number, slide.at_us, slide.size) for slide in state.ring] == [(1, S, 10), (2, 4 * S, 30)]


@pytest.mark.parametrize(
    ("changes", "waiting", "everybody"),
    [
        ({}, 100, True),
        ({}, 101, False),  # one window
        ({"bucket_milli": 99_999}, 99, True),
        ({"bucket_milli": 99_999}, 100, False),  # permits
        ({"active": 910}, 90, True),
        ({"active": 910}, 91, False),  # the capacity
        ({"phase": Phase.PAUSED}, 1, False),
        ({"config": RoomConfig(capacity=1000, min_slide=50, rate_per_s=1000)}, 49, False),
        ({"config": RoomConfig(capacity=1000, min_slide=50, rate_per_s=1000)}, 50, True),
    ],
)
def test_nobody_queues_if_the_next_slide_has_room_for_all(
    changes: dict[str, object], waiting: int, everybody: bool
) -> None:
    state = room(lanes=(LaneState(waiting),), **changes)
    assert admits_everybody(state, measured(), waiting) is everybody


def test_the_bucket_fills_by_the_rate_up_to_the_burst_and_never_backwards() -> None:
    config = RoomConfig(rate_per_s=7, burst=50)
    state = room(config=config, bucket_milli=1_000, bucket_at_us=10 * S)
    found = [bucket_permits(replace(state, now_us=now_us)) for now_us in (9 * S, 10 * S, 10 * S + 500_000, 99 * S)]
    assert found == [1_000, 1_000, 4_500, 50_000]


def test_w6_who_is_inside_or_knocks_or_still_comes_takes_room_and_who_leaves_meanwhile_gives_it() -> None:
    state = room(active=300, knocking=20)
    assert slide_bounds(state, measured(), 1).free == 1000 - 300 - 20
    assert slide_bounds(state, measured(margin=0.1), 1).free == 1100 - 320
    coming = replace(state, lanes=(LaneState(500, 100),), ring=(Slide(1, S, (100,), 100),), took={1: 40})
    assert slide_bounds(coming, measured(), 1).free == 680 - 60
    # All claims are 2 to 4 s old: their middle is 3 s. Ten people leave per second.
    claims = tuple(9.0 if age == 2 else 0.0 for age in range(AGES))
    leaving = measured(release_per_s=10.0, claims=claims)
    assert slide_bounds(state, leaving, 1).free == 680 + 30
    assert slide_bounds(state, measured(release_per_s=10_000.0, claims=claims), 1).free == 680 + 250, "a quarter"
    assert slide_bounds(state, measured(), 3).due == 300
    strict = room(config=RoomConfig(min_slide=501))
    assert slide_bounds(strict, measured(), 1).waiting == 0


@pytest.mark.parametrize(
    ("active", "knocking", "gap_s", "step"),
    [
        (400, 5, 2, (595 / 1000) * 2 / 120),  # gaps: it grows
        (400, 5, 60, (595 / 1000) * 5 / 120),  # by five seconds at most
        (1000, 105, 2, -0.1 * 2 / 120),  # people find it full: it shrinks
        (400, 600, 2, -0.595 * 2 / 120),  # no gap, because those who knock fill it
    ],
)
def test_the_margin_grows_with_gaps_and_shrinks_with_people_at_a_full_shop(
    active: int, knocking: int, gap_s: int, step: float
) -> None:
    state = room(active=active, knocking=knocking, ring=(Slide(1, S, (1,), 1),), now_us=10 * S)
    old = Measured(at_us=(10 - gap_s) * S) if gap_s < 10 else Measured(at_us=1)
    state = state if gap_s < 10 else replace(state, now_us=gap_s * S + 1)
    assert observe(state, old).margin == pytest.approx(KNOCKING_SHARE + step)


def test_the_margin_has_bounds_and_rests_while_it_can_learn_nothing() -> None:
    ring = (Slide(1, S, (1,), 1),)
    empty, crowd = room(ring=ring, now_us=9 * S), room(ring=ring, now_us=9 * S, active=1000, knocking=9_000)
    old = Measured(at_us=8 * S)
    assert observe(empty, msgspec.structs.replace(old, margin=MARGIN_HIGH)).margin == MARGIN_HIGH
    assert observe(crowd, msgspec.structs.replace(old, margin=MARGIN_LOW)).margin == MARGIN_LOW
    rests = [
        replace(empty, ring=()),
        replace(empty, lanes=(LaneState(5, 5),)),
        replace(empty, config=RoomConfig(capacity=0)),
    ]
    for state in rests:
        assert observe(state, msgspec.structs.replace(old, margin=0.25)).margin == 0.25
    assert observe(empty, Measured(margin=0.25)).margin == 0.25, "the first look has no time behind it"
    back = observe(replace(empty, now_us=7 * S), msgspec.structs.replace(old, margin=0.25))
    assert (back.margin, back.at_us) == (0.25, 7 * S), "a clock that fell back moves nothing"
