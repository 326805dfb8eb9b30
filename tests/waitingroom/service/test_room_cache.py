"""What a process shows organisers of a room: as it was read last, made once per state."""

from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
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
