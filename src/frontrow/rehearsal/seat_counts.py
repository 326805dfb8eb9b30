"""How many seats are free, held and sold, counted from the map that every fan gets (`seats.bin`, format `fsmap/1`)."""

import struct
from typing import NamedTuple

_HEADER = struct.Struct("<4sIQQ")
_MAGIC = b"FSS1"
_FREE, _HELD, _SOLD = 0, 1, 2


class SeatCounts(NamedTuple):
    """Seats by their state on the map; seats that are withheld are in none of them."""

    free: int
    held: int
    sold: int


def count_seats(body: bytes) -> SeatCounts | None:
    """The seats of a map; None if this is not one."""
    if len(body) < _HEADER.size or not body.startswith(_MAGIC):
        return None
    _, seats, _, _ = _HEADER.unpack_from(body)
    packed = body[_HEADER.size :]
    if len(packed) != (seats + 3) // 4:
        return None
    states = [byte >> shift & 3 for byte in packed for shift in (0, 2, 4, 6)][:seats]
    return SeatCounts(states.count(_FREE), states.count(_HELD), states.count(_SOLD))
