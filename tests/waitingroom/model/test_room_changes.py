"""A room's settings, phases and windows as values: what changes with them, and what never goes back."""

import msgspec
import pytest

from frontrow.core.errors import InvalidInput, Refused
from frontrow.waitingroom.model import draw
from frontrow.waitingroom.model.admission_rate import RECENT_US, admitted_per_s
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig, check_event
from frontrow.waitingroom.model.draw import Draw
from frontrow.waitingroom.model.errors import AlreadyClaimed, NotYourTurn, PlaceExpired, RoomFull, RoomHeld
from frontrow.waitingroom.model.lanes import share
from frontrow.waitingroom.model.measurements import Measured
from frontrow.waitingroom.model.no_shows import claim_delay_s, show_rate
from frontrow.waitingroom.model.phases import change_config, change_phase
from frontrow.waitingroom.model.place_status import RoomStatuses
from frontrow.waitingroom.model.poll_interval import poll_after_s
from frontrow.waitingroom.model.results import claim_refusal
from frontrow.waitingroom.model.room_state import LaneState, RoomState, VisitResult, raise_windows, windows_fell
from frontrow.waitingroom.model.wait_estimate import Reason, Wait
from frontrow.waitingroom.model.window import PlaceState, Slide, Window

S = 1_000_000
TWO = (LaneRule("general"), LaneRule("fans", 3))


def room(**more: object) -> RoomState:
    values = {"epoch": 1, "phase": Phase.OPEN, "config": RoomConfig(), "lanes": (LaneState(50, 20, 10),)} | more
    return RoomState(**values)  # type: ignore[arg-type]


def test_a_lane_can_be_added_and_none_be_taken_away() -> None:
    before = room(ring=(Slide(1, 5 * S, (20,), 20),), message_no=4)
    after = change_config(before, RoomConfig(lanes=TWO))
    assert after.lanes == (LaneState(50, 20, 10), LaneState())
    assert after.ring == (Slide(1, 5 * S, (20, 0), 20),)
    assert (after.message_no, after.config.lanes) == (4, TWO)
    assert change_config(after, RoomConfig(lanes=TWO)) == after
    with pytest.raises(InvalidInput) as refused:
        change_config(after, RoomConfig())
    assert refused.value.param == "lanes"


def test_a_new_message_has_a_number() -> None:
    said = change_config(room(message_no=4), RoomConfig(message="Doors at seven"))
    assert said.message_no == 5
    assert change_config(said, RoomConfig(message="Doors at seven", capacity=9)).message_no == 5


def test_leaving_the_pre_queue_fixes_who_is_in_the_draw() -> None:
    before = room(phase=Phase.PREQUEUE, lanes=(LaneState(50), LaneState(7)), config=RoomConfig(lanes=TWO))
    opened = change_phase(before, Phase.OPEN, 100 * S, "beacon")
    assert [lane.drawn for lane in opened.lanes] == [50, 7]
    assert (opened.phase, opened.beacon) == (Phase.OPEN, "beacon")
    paused = change_phase(opened, Phase.PAUSED, 110 * S, "other")
    assert (paused.beacon, [lane.drawn for lane in paused.lanes]) == ("beacon", [50, 7]), "once"


def test_a_pre_queue_begins_in_a_closed_room_where_nobody_has_a_place() -> None:
    """Its draw would move places that were given out."""
    empty = room(phase=Phase.CLOSED, lanes=(LaneState(), LaneState()), config=RoomConfig(lanes=TWO))
    assert change_phase(empty, Phase.PREQUEUE, S, "beacon").phase is Phase.PREQUEUE
    with_places = room(phase=Phase.CLOSED, lanes=(LaneState(), LaneState(1)), config=RoomConfig(lanes=TWO))
    others = [room(phase=phase, lanes=(LaneState(),)) for phase in set(Phase) - {Phase.CLOSED}]
    for before in (with_places, *others):
        with pytest.raises(Refused):
            change_phase(before, Phase.PREQUEUE, S, "beacon")


def test_a_pause_counts_from_its_beginning_and_gives_its_time_back() -> None:
    config = RoomConfig(interval_us=2 * S)
    before = room(ring=(Slide(1, 5 * S, (20,), 20),), slid_at_us=9 * S, config=config, bucket_at_us=3 * S)
    paused = change_phase(before, Phase.PAUSED, 10 * S, "")
    assert (paused.phase, paused.held_at_us) == (Phase.PAUSED, 10 * S)
    again = change_phase(paused, Phase.PAUSED, 14 * S, "")
    assert again.held_at_us == 10 * S
    opened = change_phase(again, Phase.OPEN, 30 * S, "")
    assert opened.ring == (Slide(1, 25 * S, (20,), 20),), "20 s of grace more"
    assert (opened.held_at_us, opened.bucket_at_us, opened.slid_at_us) == (0, 30 * S, 28 * S)
    soon = change_phase(before, Phase.OPEN, 10 * S, "")
    assert (soon.slid_at_us, soon.ring) == (9 * S, before.ring), "a slide is due once, never twice"


def test_windows_never_fall_and_are_raised_to_the_further_of_both() -> None:
    seen = room(lanes=(LaneState(50, 20, 10), LaneState(9, 5, 2)))
    for lanes, fell in (
        ((LaneState(50, 20, 10), LaneState(9, 5, 2)), False),
        ((LaneState(50, 21, 11), LaneState(9, 5, 2)), False),
        ((LaneState(50, 19, 10), LaneState(9, 5, 2)), True),
        ((LaneState(50, 20, 10), LaneState(9, 5, 1)), True),
        ((LaneState(50, 20, 10),), False),
    ):
        assert windows_fell(room(lanes=lanes), seen) is fell
    lanes = (LaneState(15, 10, 4, 3), LaneState(9, 5, 2))
    assert raise_windows(lanes, [Window(lo=3, hi=20), Window(lo=3, hi=4), Window(lo=9, hi=9)]) == (
        LaneState(20, 20, 4, 3),
        LaneState(9, 5, 3),
    )
    assert raise_windows(lanes, []) == lanes


def test_a_room_is_wanted_while_it_is_open_and_somebody_waits() -> None:
    assert room().is_wanted
    assert not room(phase=Phase.PAUSED).is_wanted
    assert not room(lanes=(LaneState(20, 20, 10),)).is_wanted
    assert room(lanes=(LaneState(20, 20, 10),), knocking=1).is_wanted


def test_every_result_of_a_claim_is_told() -> None:
    told = {
        VisitResult.OK: type(None),
        VisitResult.REPEATED: type(None),
        VisitResult.WAITING: NotYourTurn,
        VisitResult.EXPIRED: PlaceExpired,
        VisitResult.ENDED: PlaceExpired,
        VisitResult.ALREADY: AlreadyClaimed,
        VisitResult.FULL: RoomFull,
        VisitResult.HELD: RoomHeld,
    }
    assert {result: type(claim_refusal(result)) for result in VisitResult} == told


def test_a_lane_is_found_by_its_name_and_a_room_has_a_short_one() -> None:
    config = RoomConfig(lanes=TWO)
    assert (config.lane_index("general"), config.lane_index("fans")) == (0, 1)
    with pytest.raises(InvalidInput):
        config.lane_index("press")
    for name in ("a", "a" * 35, "evt_1.x-Y"):
        assert check_event(name) == name
    for name in ("", "a" * 36, "a/b", "a b"):
        with pytest.raises(InvalidInput):
            check_event(name)


def test_the_rate_of_admissions_is_that_of_the_last_seconds() -> None:
    now_us = 100 * S
    assert RECENT_US == 10 * S
    assert admitted_per_s(room(ring=()), now_us) == 0.0
    old = Slide(1, now_us - RECENT_US, (10,), 10)
    assert admitted_per_s(room(ring=(old,)), now_us) == 0.0
    recent = Slide(2, now_us - 2 * S, (40,), 30)
    assert admitted_per_s(room(ring=(recent,)), now_us) == 3.0
    near = Slide(1, now_us - RECENT_US, (10,), 10)
    assert admitted_per_s(room(ring=(near, recent)), now_us) == 3.0


def test_a_place_that_was_not_in_the_draw_is_refused() -> None:
    order = Draw(b"k" * 32, 5)
    assert sorted(order.position_of(number) for number in range(1, 6)) == [1, 2, 3, 4, 5]
    for number in (0, 6):
        with pytest.raises(InvalidInput):
            order.position_of(number)


def test_the_mean_time_until_a_claim() -> None:
    assert claim_delay_s(Measured()) == 0.0
    claims = [0.0] * len(Measured().claims)
    claims[0], claims[2] = 1.0, 1.0
    assert claim_delay_s(Measured(claims=tuple(claims))) == (0.5 + 3.0) / 2


def test_the_secret_of_a_draw_follows_from_the_master_secret_the_event_and_the_salt() -> None:
    one = draw.secret_of(b"master", "aurora", "salt")
    assert one == draw.secret_of(b"master", "aurora", "salt")
    others = {
        draw.secret_of(*given)
        for given in ((b"m", "aurora", "salt"), (b"master", "a", "salt"), (b"master", "aurora", "s"))
    }
    assert len(others | {one}) == 4
    assert len(one) == 32


def test_a_permutation_that_never_comes_back_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "MAX_WALK", 0)
    with pytest.raises(RuntimeError, match="too far"):
        Draw(b"k" * 32, 5).position_of(1)


def test_a_room_without_lanes_shares_nothing() -> None:
    assert share(5, [], [], []) == ((), ())


def test_everybody_who_was_let_in_is_counted_over_all_lanes() -> None:
    assert room(lanes=(LaneState(50, 20, 10), LaneState(9, 5, 2))).admitted == 25


def test_who_is_let_in_comes_unless_measured_otherwise() -> None:
    assert show_rate(Measured(), 60 * S) == 1.0
    exposure = (100.0,) * len(Measured().claims)
    rare = show_rate(Measured(exposure_s=exposure, claims=(0.1,) * len(exposure)), 60 * S)
    often = show_rate(Measured(exposure_s=exposure, claims=(50.0,) * len(exposure)), 60 * S)
    assert 0.0 < rare < often <= 1.0


def test_a_place_of_a_room_that_is_open_has_its_state_and_its_wait() -> None:
    statuses = RoomStatuses("aurora", room(lanes=(LaneState(50, 20, 10),)), (1_000,), Reason.NONE)
    expired, active, waiting = (statuses.status(0, position) for position in (10, 20, 21))
    assert (expired.state, expired.poll_after_s) == (PlaceState.EXPIRED, poll_after_s(0))
    assert (active.state, active.ahead, active.wait) == (PlaceState.ACTIVE, 0, Wait(0, 0))
    assert (waiting.state, waiting.position, waiting.ahead, waiting.wait) == (PlaceState.WAITING, 21, 0, Wait(0, 2))
    for position in (10, 20, 21):
        assert statuses.status_json(0, position) == msgspec.json.encode(statuses.status(0, position))
    drawn_later = RoomStatuses("aurora", room(phase=Phase.PREQUEUE), (1_000,), Reason.NONE)
    before = drawn_later.status(0, 21)
    assert drawn_later.status_json(0, 21) == msgspec.json.encode(before)
    assert (before.state, before.position, before.ahead, before.wait) == (
        PlaceState.WAITING,
        None,
        None,
        Wait(None, None),
    )
