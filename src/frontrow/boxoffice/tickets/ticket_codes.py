"""The code of a ticket, shown as a QR code. Compact, signed, readable offline. Pure functions and values.

    FR1 + base32( kind 1 | key id 4 | event 8 | ticket 16 | seat 3 | fence 6 | signature 64 | check 3 )   171 characters

All fields are big-endian. `event` is a hash of the event id. The signature is Ed25519 over a fixed prefix and the 38
bytes before it. `check` is a hash of everything before it: it tells a misread code from a forged one, in microseconds.
105 bytes are exactly 168 base32 characters, so no bit of the code is unused. A ticket with rotating codes shows `.` and
8 more characters that change every 30 s (a MAC that a screenshot cannot renew).

A sale writes tickets unsigned (`FR0` and the 38 bytes in hex), because signatures would be a tenth of what a booking
costs. They are signed when somebody looks at them (`signed_code`), with the same result each time (ADR 0172).
"""

import hashlib
from typing import Final, NamedTuple

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.tickets.model.tickets import NewTicket, Ticket, ticket_id, ticket_id_bytes
from frontrow.boxoffice.tickets.rotating_codes import MAC_CHARS, rotating_code, ticket_secret
from frontrow.boxoffice.tickets.signing_keys import KEY_ID_BYTES, TicketKeys

PREFIX: Final = "FR1"
UNSIGNED: Final = "FR0"  # only in the ledger: no gate admits it
VERSION: Final = 0x10
ROTATING: Final = 0x01
BODY_BYTES: Final = 38
SIGNED_BYTES: Final = BODY_BYTES + 64
CODE_CHARS: Final = len(PREFIX) + 168
_DOMAIN: Final = b"frontrow ticket 1\0"
_CHECK_BYTES: Final = 3
FULL_CHARS: Final = CODE_CHARS + 1 + MAC_CHARS
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_TO_BASE_32_DIGITS: Final = str.maketrans(_ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")
_REMOVE_ALPHABET: Final = str.maketrans("", "", _ALPHABET)
_CHARACTER_OF: Final = bytes(ord(_ALPHABET[byte % 32]) for byte in range(256))
_GROUPS: Final = 21  # of 5 bytes, which are 8 characters


def _in_all_groups(bits: int) -> int:
    """These bits of 64 in each group."""
    return sum(bits << (64 * group) for group in range(_GROUPS))


# Halve each group of 40 bits three times: the bits that stay, those that move up, and by how much.
_HALVES: Final = [
    (_in_all_groups(low), _in_all_groups(low << width), up)
    for low, width, up in ((0xF_FFFF, 20, 12), (0x3FF_0000_03FF, 10, 6), (0x1F_001F_001F_001F, 5, 3))
]


class ReadTicket(NamedTuple):
    """The fields of a code. Do not trust them before the signature is verified."""

    kind: int
    kid: bytes
    event: bytes
    short_id: bytes
    seat_index: int
    fence: int
    body: bytes
    signature: bytes
    rotating_code: str

    @property
    def id(self) -> str:
        return ticket_id(self.short_id)

    @property
    def rotating(self) -> bool:
        return bool(self.kind & ROTATING)


class Misread(ValueError):
    """Not a complete ticket code: cut off, mistyped or something else."""


def event_hash(event_id: str) -> bytes:
    return hashlib.blake2b(event_id.encode(), digest_size=8).digest()


def _checksum(signed: bytes) -> bytes:
    return hashlib.blake2b(signed, digest_size=_CHECK_BYTES).digest()


def write_code(body: bytes, signature: bytes) -> str:
    """The code of a signed body."""
    signed = body + signature
    return PREFIX + _encode_base32(signed + _checksum(signed))


def read_code(code: str) -> ReadTicket:
    """The fields of a code; Misread when it is not exactly one code of this version."""
    if len(code) not in (CODE_CHARS, FULL_CHARS) or not code.startswith(PREFIX):
        raise Misread("not a ticket code")
    rotating_code = ""
    if len(code) == FULL_CHARS:
        if code[CODE_CHARS] != ".":
            raise Misread("not a ticket code")
        code, rotating_code = code[:CODE_CHARS], code[CODE_CHARS + 1 :]
    raw = _decode_base32(code[len(PREFIX) :])
    if raw[SIGNED_BYTES:] != _checksum(raw[:SIGNED_BYTES]):
        raise Misread("the code is damaged")
    if raw[0] & ~ROTATING != VERSION:
        raise Misread("a ticket code of another version")
    seat, fence = int.from_bytes(raw[29:32]), int.from_bytes(raw[32:38])
    return ReadTicket(
        kind=raw[0],
        kid=raw[1:5],
        event=raw[5:13],
        short_id=raw[13:29],
        seat_index=seat,
        fence=fence,
        body=raw[:BODY_BYTES],
        signature=raw[BODY_BYTES:SIGNED_BYTES],
        rotating_code=rotating_code,
    )


def stored_body(stored: str) -> bytes:
    """The body of a ticket as the ledger has it, signed or not."""
    return bytes.fromhex(stored[len(UNSIGNED) :]) if stored.startswith(UNSIGNED) else read_code(stored).body


def signed_code(stored: str, keys: TicketKeys) -> str:
    """The code of a ticket as the ledger has it. An unsigned one is signed by the newest key."""
    if not stored.startswith(UNSIGNED):
        return stored
    written = stored_body(stored)
    body = written[:1] + keys.kid + written[1 + KEY_ID_BYTES :]
    return write_code(body, keys.sign(signed_text(body)))


def is_rotating(stored: str) -> bool:
    """Whether a ticket as the ledger has it rotates: by its first byte, without reading the rest."""
    start = len(PREFIX)
    if stored.startswith(UNSIGNED):
        return bool(int(stored[start : start + 2], 16) & ROTATING)
    code = stored
    first, second = (_ALPHABET.index(letter) for letter in code[start : start + 2])
    return bool((first << 3 | second >> 2) & ROTATING)


def _encode_base32(raw: bytes) -> str:
    """105 bytes as base32, all characters at once: as one number, whose groups of 5 bits become bytes. Three times as
    fast as the loop in `base64`."""
    groups = bytearray(8 * _GROUPS)
    for place in range(5):
        groups[place + 3 :: 8] = raw[place::5]
    number = int.from_bytes(groups)
    for stay, move, up in _HALVES:
        number = (number & stay) | (number & move) << up
    return number.to_bytes(8 * _GROUPS).translate(_CHARACTER_OF).decode()


def _decode_base32(text: str) -> bytes:
    """The bytes of 168 base32 characters, read as one number. Ten times as fast as the loop in `base64`."""
    if not text.isascii() or text.translate(_REMOVE_ALPHABET):
        raise Misread("the code contains characters that ticket codes do not use")
    return int(text.translate(_TO_BASE_32_DIGITS), 32).to_bytes(SIGNED_BYTES + _CHECK_BYTES)


def signed_text(body: bytes) -> bytes:
    """The signed text: a prefix and the body. The prefix keeps signatures of other documents from being tickets."""
    return _DOMAIN + body


class Issuer:
    """Signs one ticket per seat. The same booking always gets the same codes."""

    def __init__(self, keys: TicketKeys, *, rotating: bool = False) -> None:
        """With `rotating` the codes of all events rotate, whatever their settings."""
        self._keys, self._rotating = keys, rotating

    def issue(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        """One signed ticket per seat (ports.TicketIssuer)."""
        unsigned = self.prepare(booking, rotating=rotating)
        return tuple([NewTicket(one.id, one.seat_index, signed_code(one.code, self._keys)) for one in unsigned])

    def prepare(self, booking: Booking, *, rotating: bool = False) -> tuple[NewTicket, ...]:
        """One unsigned ticket per seat (ports.TicketIssuer)."""
        kind = bytes([VERSION | (ROTATING if rotating or self._rotating else 0)])
        head = kind + self._keys.kid + event_hash(booking.event_id)
        fence, secret = booking.fence.to_bytes(6), self._keys.number_secret
        tickets = []
        for seat in booking.seats:
            short = ticket_id_bytes(secret, booking.id, booking.fence, seat)
            body = head + short + seat.to_bytes(3) + fence
            tickets.append(NewTicket(ticket_id(short), seat, UNSIGNED + body.hex()))
        return tuple(tickets)

    def issue_again(self, booking: Booking, old: Ticket, short_id: bytes) -> NewTicket:
        """Another ticket for the seat of `old`, newer than it, with a random id from the caller."""
        was = stored_body(old.code)
        fence = (int.from_bytes(was[32:38]) + 1).to_bytes(6)
        head = was[:1] + self._keys.kid + event_hash(booking.event_id)
        body = head + short_id + old.seat_index.to_bytes(3) + fence
        return NewTicket(ticket_id(short_id), old.seat_index, write_code(body, self._keys.sign(signed_text(body))))


def shown_code(code: str, event_secret: bytes, now_us: int) -> str:
    """The code that a screen shows now, with the rotating part if the ticket has one."""
    ticket = read_code(code)
    if not ticket.rotating:
        return code
    return f"{code}.{rotating_code(ticket_secret(event_secret, ticket.short_id), now_us)}"
