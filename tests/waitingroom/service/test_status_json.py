"""W2, W5: the JSON that people get by the short way is byte for byte the status by the long way; places remembered."""

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from frontrow.waitingroom.credentials import places
from frontrow.waitingroom.credentials.places import Place, PlaceSigner
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig
from frontrow.waitingroom.model.errors import PlaceForeign, PlaceInvalid
from frontrow.waitingroom.model.measurements import Measured, write_note
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.model.wait_estimate import Reason
from frontrow.waitingroom.service.room_cache import CachedRoom

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
LANES = (LaneRule("general"), LaneRule("fans", 3))
number = st.integers(0, 20_000_000)


@given(
    phase=st.sampled_from(Phase),
    edges=st.tuples(number, number, number, st.integers(0, 3)),
    lane=st.integers(-1, 2),
    position=st.integers(-1, 30_000_000),
    rate_milli=st.integers(0, 10_000_000),
    reason=st.sampled_from(Reason),
)
def test_the_short_way_says_the_same_as_the_long_way(
    phase: Phase, edges: tuple[int, int, int, int], lane: int, position: int, rate_milli: int, reason: Reason
) -> None:
    lo, hi, issued = sorted(edges[:3])
    lanes = (LaneState(issued, hi, lo, edges[3]), LaneState(issued, hi, lo))
    note = write_note(Measured(shown_milli=(rate_milli, rate_milli), reason=reason.value))
    state = RoomState(3, phase, RoomConfig(lanes=LANES), lanes, note=note, message_no=2)
    known = CachedRoom("aurora", state, KEY, b"m" * 32)
    place = Place("aurora", lane, 1, position, 1)
    for _ in range(2):  # the second time it is a place seen before
        try:
            told = msgspec.json.encode(known.status(place))
        except PlaceInvalid:
            with pytest.raises(PlaceInvalid):
                known.status_json(place)
        else:
            assert known.status_json(place) == told


def test_the_first_people_of_a_room_that_just_opened_ask_again_soon() -> None:
    """Nobody was let in yet, so how fast it goes is not known; whoever fits into the shop is called at once."""
    config = RoomConfig(lanes=LANES, capacity=10)
    fresh = CachedRoom("aurora", RoomState(1, Phase.OPEN, config, (LaneState(50), LaneState())), KEY, b"m" * 32)
    waits = [fresh.status(Place("aurora", 0, 1, position, 1)).poll_after_s for position in (1, 10, 11)]
    assert waits == [5, 5, 30]
    held = CachedRoom("aurora", RoomState(1, Phase.PAUSED, config, (LaneState(50), LaneState())), KEY, b"m" * 32)
    assert held.status(Place("aurora", 0, 1, 1, 1)).poll_after_s == 30


def test_remembered_places_are_bounded_and_forged_ones_never_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_CACHED", 500)
    signer = PlaceSigner([b"s" * 32])
    first = signer.mint(Place("aurora", 0, 1, 1, 1))
    assert signer.verify(first).position == 1
    assert not signer.recent, "who asks once takes no memory"
    assert signer.verify(first) is signer.verify(first), "asked again, it is found"
    for position in range(2, 2 * 500 + 100):
        text = signer.mint(Place("aurora", 0, 1, position, 1))
        assert signer.verify(text) == signer.verify(text)
    assert 0 < len(signer.recent) <= 500
    assert first not in signer.recent
    assert signer.verify(first).position == 1, "forgotten is not refused"
    with pytest.raises(PlaceForeign):
        signer.verify(first, "other")
    for at in range(len(first)):
        for bit in range(7):
            forged = first[:at] + chr(ord(first[at]) ^ 1 << bit) + first[at + 1 :]
            with pytest.raises(PlaceInvalid):
                signer.verify(forged)
            assert forged not in signer.recent
