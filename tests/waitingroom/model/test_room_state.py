"""W6: whether anybody waits for a place in the shop, so that idle visits end."""

import pytest

from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState


@pytest.mark.parametrize(
    ("phase", "lanes", "knocking", "wanted"),
    [
        (Phase.OPEN, (LaneState(5, 5),), 0, False),
        (Phase.OPEN, (LaneState(5, 5), LaneState(6, 5)), 0, True),  # somebody waits in one lane
        (Phase.OPEN, (LaneState(5, 5),), 1, True),  # somebody was admitted and found the shop full
        (Phase.PAUSED, (LaneState(6, 5),), 1, False),  # nobody comes in
    ],
)
def test_a_place_in_the_shop_is_wanted_while_somebody_could_come_in(
    phase: Phase, lanes: tuple[LaneState, ...], knocking: int, wanted: bool
) -> None:
    assert RoomState(1, phase, RoomConfig(), lanes, knocking=knocking).is_wanted is wanted
