"""The live part of the map format `fsmap/1`: seat states as a two-bit snapshot and as small numbered changes.

Snapshot: `FSS1`, u32 seats, u64 sequence, u64 epoch (all little-endian), then two bits per seat, the first seat in the
lowest bits. Change frame: for each changed seat in order, the varint of (gap to the previous seat << 2 | state), in
base64. States are absolute, so a frame can be applied twice. A stream line is `<epoch> <prev> <seq> <frame>`: a viewer
at `prev` of that epoch moves to `seq`; a viewer at or past `seq` drops the line; any other fetches a new snapshot.
"""

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from frontrow.core.errors import InvalidInput

MAGIC = b"FSS1"
_HEADER = struct.Struct("<4sIQQ")
MAX_VARINT_BYTES = 5
# The four states in each packed byte.
_UNPACK = [bytes((byte >> shift) & 3 for shift in (0, 2, 4, 6)) for byte in range(256)]


class SeatState(IntEnum):
    """The state of a seat on the map, in two bits."""

    FREE = 0
    HELD = 1
    SOLD = 2
    BLOCKED = 3


class BadMap(InvalidInput):
    code = "bad_seat_map"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All states (a byte per seat) after change `seq` of `epoch`."""

    states: bytes
    seq: int
    epoch: int


class Frame(NamedTuple):
    """One numbered change: `body` leads from `prev` to `seq`."""

    epoch: int
    prev: int
    seq: int
    body: str

    def line(self) -> str:
        """The frame as a stream line."""
        return f"{self.epoch} {self.prev} {self.seq} {self.body}"


def pack_states(states: bytes | bytearray) -> bytes:
    """The states in two bits per seat."""
    if len(states) % 4:
        states = bytes(states) + bytes(-len(states) % 4)
    # Each quarter is one column of the packed bytes. Shifting them as big integers is many times faster than a loop.
    low = int.from_bytes(states[0::4], "little")
    low |= int.from_bytes(states[1::4], "little") << 2
    low |= int.from_bytes(states[2::4], "little") << 4
    low |= int.from_bytes(states[3::4], "little") << 6
    return low.to_bytes(len(states) // 4, "little")


def unpack_states(packed: bytes, count: int) -> bytes:
    """A byte per seat from two bits per seat."""
    return b"".join(map(_UNPACK.__getitem__, packed))[:count]


def write_snapshot(snapshot: Snapshot) -> bytes:
    """The snapshot document for viewers."""
    if any(snapshot.states.translate(None, b"\0\1\2\3")):
        raise BadMap("a seat's state is 0 to 3")
    return _HEADER.pack(MAGIC, len(snapshot.states), snapshot.seq, snapshot.epoch) + pack_states(snapshot.states)


def read_snapshot(body: bytes, seats: int) -> Snapshot:
    """The snapshot of a plan with `seats` seats; BadMap when it is damaged or belongs to another plan."""
    if len(body) < _HEADER.size or not body.startswith(MAGIC):
        raise BadMap("this is not a seat-state snapshot (FSS1)")
    _, count, seq, epoch = _HEADER.unpack_from(body)
    if count != seats:
        raise BadMap(f"the snapshot has {count} seats, the plan {seats}")
    packed = body[_HEADER.size :]
    if len(packed) != (count + 3) // 4:
        raise BadMap(f"the snapshot of {count} seats has {len(packed)} bytes of states")
    return Snapshot(unpack_states(packed, count), seq, epoch)


def encode_changes(changes: Mapping[int, int]) -> str:
    """Seat index → new state as a frame body."""
    out, last = bytearray(), 0
    for index in sorted(changes):
        number = (index - last) << 2 | changes[index]
        last = index
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
    return base64.b64encode(out).decode()


def decode_changes(body: str, seats: int) -> dict[int, int]:
    """Seat index → new state; BadMap when the frame is damaged or reaches outside the plan."""
    try:
        packed = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise BadMap("the change frame is not valid base64") from None
    changes: dict[int, int] = {}
    number = shift = index = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte > 127:
            if shift >= 7 * MAX_VARINT_BYTES:
                raise BadMap("a number in the change frame is too long")
            continue
        index += number >> 2
        if index >= seats:
            raise BadMap(f"the change frame names seat {index} of {seats}")
        changes[index] = number & 3
        number = shift = 0
    if shift:
        raise BadMap("the change frame is cut off")
    return changes


def read_frame(line: str) -> Frame:
    """A frame from its stream line."""
    parts = line.split(" ")
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts[:3]):
        raise BadMap("a stream line is <epoch> <prev> <seq> <frame>")
    return Frame(int(parts[0]), int(parts[1]), int(parts[2]), parts[3])
