"""What a process shows organisers of a room: as it was read last, made once per state."""

from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.service.recovery import is_behind
from frontrow.waitingroom.service.room_cache import CachedRoom

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


def test_a_change_that_nobody_looked_at_before_time_passed_is_shown() -> None:
    """The view of the state before it was taken for the view of the state after it, until the next change."""
    state = RoomState(1, Phase.OPEN, RoomConfig(), (LaneState(5),), now_us=1_000_000)
    room = CachedRoom("aurora", state, KEY, b"m" * 32)
    assert room.view("me").state.config.message == ""
    told = replace(state, config=replace(state.config, message="Back at noon"), message_no=1, now_us=2_000_000)
    room.update(told)
    room.update(replace(told, now_us=3_000_000))
    assert room.view("me").state.config.message == "Back at noon"
    view = room.view("me")
    room.update(replace(told, now_us=4_000_000))
    assert room.view("me") is view, "only time has passed"


def test_an_answer_that_took_longer_than_a_slide_does_not_move_the_window_back() -> None:
    """W5: found by the simulation. A change of the rate was written to the audit while the window slid on."""
    config = RoomConfig()
    read_first = RoomState(1, Phase.OPEN, config, (LaneState(14, 10, 8),), slide_no=35)
    room = CachedRoom("aurora", read_first, KEY, b"m" * 32)
    room.update(RoomState(1, Phase.OPEN, config, (LaneState(14, 11, 9),), slide_no=37))
    room.update(read_first)
    assert room.state.lanes[0].hi == 11
    room.update(RoomState(2, Phase.OPEN, config, (LaneState(14, 11, 9),), slide_no=1))
    assert room.state.epoch == 2, "a rebuilt room is newer whatever its slide"


def test_a_window_that_fell_is_not_shown_whatever_its_slide() -> None:
    """W13: found by the simulation, seed 341. A failover lost two slides, and another leader made two others."""
    seen = RoomState(1, Phase.OPEN, RoomConfig(), (LaneState(11, 10, 5),), slide_no=27)
    room = CachedRoom("aurora", seen, KEY, b"m" * 32)
    for lane in (LaneState(13, 9, 7), LaneState(13, 10, 4)):
        later = replace(seen, lanes=(lane,), slide_no=28)
        room.update(later)
        assert room.state is seen
        assert is_behind(later, seen, [11]), "so the room is rebuilt"
    further = replace(seen, lanes=(LaneState(13, 10, 5),), slide_no=28)
    assert not is_behind(further, seen, [11])
    room.update(further)
    assert room.state is further
