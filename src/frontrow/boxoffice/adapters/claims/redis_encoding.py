"""How a claim looks in Redis: keys, stored values, and asks packed for lua/seats.lua.

    seat:{<event>:<section>}:<row>_<number>  ->  fan|placed_at_us|booking|expires_at_us|kind
    epoch:{<event>:<section>}                ->  <epoch>:<identity of the server that was filled>  (r in front: filling)

The hash tag keeps a section in one Cluster slot. Times have 16 digits, so the script compares them as text.
"""

import struct
import zlib
from array import array
from enum import IntEnum
from typing import Any, Final

from frontrow.boxoffice.model.claims import (
    SOLD_UNTIL_US,
    Claimed,
    ClaimKind,
    ClaimRefused,
    TakenSeat,
    check_name,
)
from frontrow.boxoffice.model.venues import Plan

HEAD: Final = struct.Struct(">BHHIBB")  # op, section, seats, lifetime_ms, where the owner mark starts, its length
Answer = int | bytes
STALE: Final = b"!"
_KINDS: Final = {kind.value: kind for kind in ClaimKind}

# A stored claim outlives its recorded expiry by this: the server's clock may run ahead of ours by less than this
# without freeing a seat early. What is left over is overwritten by the next claim or cleared away by the server.
CLOCK_GRACE_MS: Final = 2 * 3600 * 1000


class Op(IntEnum):
    CLAIM = 1
    EXTEND = 2
    RELEASE = 3
    PUT = 4


class SectionKeys:
    """One section's share of the key space, and the epoch it is believed to be in."""

    __slots__ = ("epoch", "epoch_key", "event_id", "first", "number", "size", "spread", "tag")

    def __init__(self, event_id: str, section_id: str, number: int, first: int, size: int) -> None:
        self.event_id, self.number, self.first, self.size = event_id, number, first, size
        self.tag = f"{{{event_id}:{section_id}}}"
        self.epoch_key = f"epoch:{self.tag}".encode()
        self.spread = zlib.crc32(self.tag.encode())  # which of several servers has it: modulo their number
        self.epoch = 0


class EventKeys:
    """Every key of one event, made once: by seat index in plan order."""

    __slots__ = ("attempt", "keys", "plan", "section_of", "sections")

    def __init__(self, event_id: str, plan: Plan) -> None:
        check_name(event_id, "event")
        self.plan = plan
        self.attempt = 0  # the epoch of this process's own last rebuild
        self.sections: list[SectionKeys] = []
        self.keys: list[bytes] = []
        self.section_of = array("H")
        for number, section in enumerate(plan.sections):
            own = SectionKeys(event_id, section.id, number, plan.bases[number], section.size)
            self.sections.append(own)
            self.section_of.extend([number] * section.size)
            self.keys.extend(
                f"seat:{own.tag}:{row.id}_{seat.number}".encode() for row in section.rows for seat in row.seats
            )


def encode(fan: str, placed_at_us: int, booking_id: str, expires_at_us: int, kind: ClaimKind) -> bytes:
    """The stored value of one taken seat."""
    return f"{fan}|{placed_at_us:016d}|{booking_id}|{expires_at_us:016d}|{kind}".encode()


def decode(seat: int, value: bytes) -> TakenSeat:
    """What a stored value says."""
    fan, placed, booking, expires, kind = value.decode().split("|")
    return TakenSeat(seat, _KINDS[kind], fan, booking, int(placed), int(expires))


def lifetime_ms(expires_at_us: int, now_us: int) -> int:
    """How long the server keeps a value; 0: for good."""
    if expires_at_us == SOLD_UNTIL_US:
        return 0
    return max(0, (expires_at_us - now_us) // 1000) + CLOCK_GRACE_MS


class Ask:
    """One caller's question to lua/seats.lua: an operation on some seats of one section.

    With `seats` the caller hears `Claimed` or `ClaimRefused`, without them the script's answer.
    """

    __slots__ = ("keys", "lifetime_ms", "mark_from", "mark_length", "now_us", "op", "seats", "section", "value")

    def __init__(
        self,
        op: Op,
        section: SectionKeys,
        keys: list[bytes],
        value: bytes,
        mark_from: int,
        mark_length: int,
        now_us: int = 0,
        lifetime_ms: int = 0,
        seats: tuple[int, ...] = (),
    ) -> None:
        self.op, self.section, self.keys, self.value = op, section, keys, value
        self.mark_from, self.mark_length = mark_from, mark_length
        self.now_us, self.lifetime_ms, self.seats = now_us, lifetime_ms, seats

    def told(self, answer: Any) -> Any:
        """What the caller hears."""
        if not self.seats or isinstance(answer, BaseException):
            return answer
        return Claimed(self.seats) if answer == 1 else ClaimRefused(taken_seats(self.seats, answer))


def taken_seats(seats: tuple[int, ...], answer: Answer) -> tuple[TakenSeat, ...]:
    """The seats named by a refusal; a line without a value is a seat that is free but not the asker's own."""
    lines = answer.split(b"\n") if isinstance(answer, bytes) else []
    pairs = (line.partition(b":") for line in lines)
    return tuple([decode(seats[int(position)], value) for position, _, value in pairs if value])


def owner_mark(fan: str, booking_id: str) -> tuple[int, int]:
    """Where `|booking|` stands in an encoded value (counted from 1, in bytes) and how long it is."""
    if fan.isascii() and booking_id.isascii():
        return len(fan) + 18, len(booking_id) + 2
    return len(fan.encode()) + 18, len(booking_id.encode()) + 2


def epoch_number(text: bytes) -> int:
    """The number in an epoch key's text, or in a script's `!…` answer; 0 when there is none."""
    digits = text.lstrip(b"!r").partition(b":")[0]
    return int(digits) if digits.isdigit() else 0


def adopt(section: SectionKeys, answer: bytes) -> None:
    """Believe in the newer epoch that the store tells of; the identity in it is compared by the script as before."""
    section.epoch = max(section.epoch, epoch_number(answer))
