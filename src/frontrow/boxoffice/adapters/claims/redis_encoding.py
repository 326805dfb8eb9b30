"""How a claim is stored in Redis: keys, stored values, and requests to lua/seats.lua.

    seat:{<event>:<section>}:<row>_<number>  ->  fan|placed_at_us|booking|expires_at_us|kind
    epoch:{<event>:<section>}                ->  <epoch>:<identity of the server that was filled>  (r in front: filling)

The hash tag keeps a section in one Cluster slot. Times have 16 digits, so the script compares them as text.
"""

import struct
import zlib
from array import array
from enum import IntEnum
from typing import Any, Final

from frontrow.boxoffice.holds.model.claims import (
    SOLD_UNTIL_US,
    ClaimedSeats,
    ClaimKind,
    ClaimRefused,
    TakenSeat,
    check_name,
)
from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.boxoffice.seats.model.venues import Plan

REQUEST_HEAD: Final = struct.Struct(">BHHIBB")  # op, section, seats, lifetime_ms, start and length of the owner mark
ScriptReply = int | bytes
STALE: Final = b"!"  # a reply that begins so: the section has another epoch
_SIXTEEN_DIGITS: Final = 10**15
_KINDS: Final = {kind.value: kind for kind in ClaimKind}
_HELD, _SOLD = ord(ClaimKind.HELD), ord(ClaimKind.SOLD)

# Redis keeps a stored claim this much longer than its recorded expiry. So no seat is freed early while the clock of
# the server is ahead of ours by less than this. The next claim, or Redis itself, removes what is left over.
CLOCK_GRACE_MS: Final = 2 * 3600 * 1000


class Op(IntEnum):
    CLAIM = 1
    EXTEND = 2
    RELEASE = 3
    PUT = 4


class SectionKeys:
    """The keys of one section, and the epoch this process last saw in it."""

    __slots__ = ("epoch", "epoch_key", "event_id", "first", "number", "size", "spread", "tag")

    def __init__(self, event_id: str, section_id: str, number: int, first: int, size: int) -> None:
        self.event_id, self.number, self.first, self.size = event_id, number, first, size
        self.tag = f"{{{event_id}:{section_id}}}"
        self.epoch_key = f"epoch:{self.tag}".encode()
        self.spread = zlib.crc32(self.tag.encode())  # modulo the number of servers: the server that has it
        self.epoch = 0


class EventKeys:
    """Every key of one event, built once, by seat index in plan order."""

    __slots__ = ("attempt", "keys", "plan", "section_of", "sections")

    def __init__(self, event_id: str, plan: Plan) -> None:
        check_name(event_id, "event")
        self.plan = plan
        self.attempt = 0  # the epoch of the last rebuild by this process
        self.sections: list[SectionKeys] = []
        self.keys: list[bytes] = []
        self.section_of = array("H")
        for number, section in enumerate(plan.sections):
            keys = SectionKeys(event_id, section.id, number, plan.bases[number], section.size)
            self.sections.append(keys)
            self.section_of.extend([number] * section.size)
            self.keys.extend(
                f"seat:{keys.tag}:{row.id}_{seat.number}".encode() for row in section.rows for seat in row.seats
            )


def encode_claim(fan: str, placed_at_us: int, booking_id: str, expires_at_us: int, kind: ClaimKind) -> bytes:
    """The stored value of one taken seat."""
    if placed_at_us >= _SIXTEEN_DIGITS <= expires_at_us:  # every hold; padding costs as much as the rest
        return f"{fan}|{placed_at_us}|{booking_id}|{expires_at_us}|{kind.value}".encode()
    return f"{fan}|{placed_at_us:016d}|{booking_id}|{expires_at_us:016d}|{kind.value}".encode()


def decode_claim(seat: int, value: bytes) -> TakenSeat:
    """The taken seat that a stored value describes."""
    fan, placed, booking, expires, kind = value.decode().split("|")
    return TakenSeat(seat, _KINDS[kind], fan, booking, int(placed), int(expires))


def claim_state(value: bytes, now: bytes) -> SeatState:
    """What the map shows of a seat with this stored value, at a time from `encode_time`. It costs half of decoding."""
    kind = value[-1]
    if kind == _HELD:
        return SeatState.HELD if value[-18:-2] > now else SeatState.FREE
    return SeatState.SOLD if kind == _SOLD else SeatState.FREE


def encode_time(now_us: int) -> bytes:
    """A time as it stands in a stored value."""
    return b"%016d" % now_us


def lifetime_ms(expires_at_us: int, now_us: int) -> int:
    """How long Redis keeps a value; 0: without an end."""
    if expires_at_us == SOLD_UNTIL_US:
        return 0
    return max(0, (expires_at_us - now_us) // 1000) + CLOCK_GRACE_MS


class SeatRequest:
    """One caller's request to lua/seats.lua: an operation on seats of one section.

    With `seats` the caller gets `ClaimedSeats` or `ClaimRefused`, otherwise the script's reply.
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

    def read_reply(self, reply: Any) -> Any:
        """The caller's result."""
        if not self.seats or isinstance(reply, BaseException):
            return reply
        return ClaimedSeats(self.seats) if reply == 1 else ClaimRefused(taken_seats(self.seats, reply))


def taken_seats(seats: tuple[int, ...], reply: ScriptReply) -> tuple[TakenSeat, ...]:
    """The seats named by a refusal. A line without a value is a free seat that is not the booking's."""
    lines = reply.split(b"\n") if isinstance(reply, bytes) else []
    pairs = (line.partition(b":") for line in lines)
    return tuple([decode_claim(seats[int(position)], value) for position, _, value in pairs if value])


def owner_mark(fan: str, booking_id: str) -> tuple[int, int]:
    """The position of `|booking|` in an encoded value (from 1, in bytes) and its length."""
    if fan.isascii() and booking_id.isascii():
        return len(fan) + 18, len(booking_id) + 2
    return len(fan.encode()) + 18, len(booking_id.encode()) + 2


def epoch_number(text: bytes) -> int:
    """The number in the value of an epoch key, or in a script's `!…` reply; 0 when there is none."""
    digits = text.lstrip(b"!r").partition(b":")[0]
    return int(digits) if digits.isdigit() else 0


def adopt_epoch(section: SectionKeys, reply: bytes) -> None:
    """Use the newer epoch that the store reported. The script still compares the server's identity in it."""
    section.epoch = max(section.epoch, epoch_number(reply))
