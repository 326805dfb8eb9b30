"""fsmap/1: two-bit snapshots, varint changes, and the ring that brings viewers forward (B2)."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.boxoffice.seats.map.map_ring import MapRing, encode_reset
from frontrow.boxoffice.seats.model.map_format import (
    BadMap,
    Frame,
    Snapshot,
    decode_changes,
    encode_changes,
    read_frame,
    read_snapshot,
    write_snapshot,
)
from tests.boxoffice.map_viewer import Viewer

states = st.lists(st.integers(0, 3), min_size=1, max_size=300).map(bytes)


@given(states, st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_snapshot_comes_back_unchanged(of_seats: bytes, seq: int, epoch: int) -> None:
    body = write_snapshot(Snapshot(of_seats, seq, epoch))
    assert read_snapshot(body, len(of_seats)) == Snapshot(of_seats, seq, epoch)
    assert len(body) == 24 + (len(of_seats) + 3) // 4


def test_a_snapshot_is_byte_for_byte_as_described() -> None:
    body = write_snapshot(Snapshot(bytes([0, 1, 2, 3, 1]), 7, 9))
    assert body == b"FSS1" + struct.pack("<IQQ", 5, 7, 9) + bytes([0b11100100, 0b01])


@given(st.dictionaries(st.integers(0, 49_999), st.integers(0, 3), max_size=200))
def test_changes_come_back_unchanged(changes: dict[int, int]) -> None:
    assert decode_changes(encode_changes(changes), 50_000) == changes


def test_changes_are_byte_for_byte_as_described() -> None:
    assert base64.b64decode(encode_changes({40: 2, 3: 1})) == bytes([3 << 2 | 1, (37 << 2 | 2) & 127 | 128, 1])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"FSS1",
        b"FSS2" + bytes(21),
        write_snapshot(Snapshot(bytes(9), 1, 1)),
        b"FSS1" + struct.pack("<IQQ", 8, 0, 0),
    ],
)
def test_a_damaged_or_foreign_snapshot_is_refused(body: bytes) -> None:
    with pytest.raises(BadMap):
        read_snapshot(body, 8)


def test_a_state_above_three_is_refused() -> None:
    with pytest.raises(BadMap):
        write_snapshot(Snapshot(bytes([4]), 1, 1))


@pytest.mark.parametrize("raw", [b"\x80", b"\xff" * 6 + b"\x01", bytes([100 << 2 & 127 | 128, 3])])
def test_a_damaged_frame_is_refused(raw: bytes) -> None:
    with pytest.raises(BadMap):
        decode_changes(base64.b64encode(raw).decode(), 50)


@pytest.mark.parametrize("line", ["", "1 2 3", "a 1 2 x", "1 2 3 4 5", "-1 0 1 x", f"{'9' * 30} 0 1 x"])
def test_a_damaged_line_is_refused(line: str) -> None:
    with pytest.raises(BadMap):
        read_frame(line)
    with pytest.raises(BadMap):
        decode_changes("€", 5)


@given(st.text(max_size=40))
def test_no_frame_fails_in_an_unknown_way(body: str) -> None:
    try:
        changes = decode_changes(body, 50)
    except BadMap:
        return
    assert all(0 <= index < 50 and 0 <= state <= 3 for index, state in changes.items())


def test_a_line_comes_back() -> None:
    frame = Frame(12, 3, 4, "BQ==")
    assert read_frame(frame.line()) == frame


@given(
    st.lists(st.tuples(st.dictionaries(st.integers(0, 19), st.integers(0, 3), min_size=1), st.booleans()), max_size=30)
)
def test_a_viewer_who_reads_now_and_then_always_ends_at_the_truth(steps: list[tuple[dict[int, int], bool]]) -> None:
    """B2: frames while the ring reaches back, a reset when it does not; never a wrong map."""
    ring = MapRing(20, max_frames=4)
    ring.reset(bytes(20), 5, 100)
    viewer = Viewer(ring.snapshot(), 20)
    for changes, reads in steps:
        assert ring.apply(Frame(5, ring.seq, ring.seq + 1, encode_changes(changes)))
        if reads:
            viewer.take(ring.since(viewer.epoch, viewer.seq), ring)
            assert (viewer.states, viewer.seq) == (ring.states, ring.seq)


def test_the_ring_tells_what_is_next_known_and_missing() -> None:
    ring = MapRing(4, max_frames=2)
    ring.reset(bytes(4), 5, 0)
    first, second, third = (Frame(5, n, n + 1, encode_changes({n: 1})) for n in range(3))
    assert not ring.apply(second)  # a gap
    assert ring.apply(first)
    assert ring.apply(first)  # known: no harm
    assert ring.seq == 1
    assert not ring.apply(second._replace(epoch=6))
    assert ring.apply(second)
    assert ring.apply(third)
    assert ring.states == bytes([1, 1, 1, 0])
    assert ring.since(5, 3) == b""
    assert ring.since(5, 2).startswith(b"event: d\nid: 5-3\ndata: 5 2 3 ")
    assert ring.since(5, 1).count(b"event: d") == 2
    for epoch, seq in ((5, 0), (4, 3), (5, 4), (5, -1)):  # too old, other epoch, from the future, nonsense
        assert ring.since(epoch, seq) == encode_reset(5, 3)
    assert ring.snapshot() is ring.snapshot()
    with pytest.raises(ValueError, match="states"):
        ring.reset(bytes(5), 1, 1)
