"""W6: what is measured of people who never come, and who is still expected."""

from dataclasses import replace

from frontrow.waitingroom.model.admission import observe
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.measurements import Measured
from frontrow.waitingroom.model.no_shows import age_class, expected_claims, still_coming
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.window import Slide

S = 1_000_000


def test_no_shows_are_measured_and_no_longer_waited_for() -> None:
    """60 of 100 come in the first seconds: after a while the other 40 no longer hold capacity back."""
    measured = Measured()
    slide, lane = Slide(1, 0, (100,), 100), LaneState(500, 100)
    state = RoomState(1, Phase.OPEN, RoomConfig(capacity=1000), (lane,), ring=(slide,), slide_no=1, now_us=S)
    assert still_coming(measured, 0, state.config.grace_us) == 1.0, "everybody is expected before anything is known"
    for second in range(1, 200):
        took = {1: min(60, 12 * second)}
        state = replace(state, now_us=second * S, took=took)
        measured = observe(state, measured)
    assert expected_claims(state, measured) < 4
    fresh = still_coming(measured, 0, state.config.grace_us)
    assert 0.5 < fresh < 0.95, "of those just admitted about 60 of 100 are expected"


def test_ages_are_classed_by_doubling_seconds() -> None:
    assert [age_class(int(s * S)) for s in (0, 0.9, 1, 1.9, 2, 3.9, 4, 300)] == [0, 0, 1, 1, 2, 2, 3, 9]
