"""Verified-Fan codes: signed, single-use, each good for one lane of one event.

    VF-<serial>-<signature>      serial: 7 base-32 characters (number and lane), signature: 13 (65 bits of HMAC-SHA256)

A code carries its own proof, so nothing is stored for a code until it is used; then its number is. Organisers may bring
their own codes in a CSV file (`code,lane` with a header line); those are kept by the hash of their text, never as text.
"""

import csv
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frontrow.core.errors import InvalidInput
from frontrow.core.ids import ALPHABET, encode32
from frontrow.waitingroom.config import MAX_LANES
from frontrow.waitingroom.errors import CodeInvalid

PREFIX = "VF"
_SERIAL_CHARS, _SIGNATURE_CHARS = 7, 13
_LANE_BITS = 2
MAX_CODES = 1 << 30
IMPORTED_FROM = 1 << 31  # ids of imported codes start here, above every serial
MAX_CODE_CHARS = 128


@dataclass(frozen=True, slots=True)
class Code:
    """A code that is genuine (whether it is still unused only the store knows)."""

    id: int
    lane: int


class Codes:
    """Makes and checks codes; knows the imported ones."""

    def __init__(self, master_secret: bytes) -> None:
        self._secret = hashlib.sha256(b"frontrow fan codes" + master_secret).digest()
        self._imported: dict[str, dict[bytes, Code]] = {}

    def make(self, event: str, lane: int, numbers: Iterable[int]) -> Iterator[str]:
        """The codes with these numbers for one lane."""
        for number in numbers:
            if not (0 <= number < MAX_CODES and 0 <= lane < MAX_LANES):
                raise InvalidInput(f"codes are numbered 0 to {MAX_CODES - 1}, lanes 0 to {MAX_LANES - 1}")
            serial = encode32(number << _LANE_BITS | lane, _SERIAL_CHARS)
            yield f"{PREFIX}-{serial}-{self._sign(event, serial)}"

    def check(self, event: str, text: str) -> Code:
        """The code, if it is genuine for this event. Case and surrounding blanks do not matter."""
        known = self._imported.get(event, {}).get(_digest(text)) if len(text) <= MAX_CODE_CHARS else None
        if known is not None:
            return known
        head, _, rest = text.strip().upper()[:MAX_CODE_CHARS].partition("-")
        serial, _, signature = rest.partition("-")
        right = self._sign(event, serial)
        plain = len(serial) == _SERIAL_CHARS and set(serial) <= set(ALPHABET)
        if not hmac.compare_digest(right.encode(), signature.encode()) or head != PREFIX or not plain:
            raise CodeInvalid("this code is not valid for this event", param="code")
        packed = 0
        for character in serial:
            packed = packed << 5 | ALPHABET.index(character)
        return Code(packed >> _LANE_BITS, packed & (1 << _LANE_BITS) - 1)

    def import_csv(self, event: str, lines: Iterable[str], lanes: dict[str, int]) -> int:
        """Take over an organiser's own codes; returns how many. All or nothing."""
        read = read_csv(lines, lanes)
        self.learn(event, ((digest, lanes[lane]) for digest, lane in read))
        return len(read)

    def learn(self, event: str, codes: Iterable[tuple[bytes, int]]) -> None:
        """Know these imported codes, each by its digest, with its lane."""
        fresh = {digest: Code(imported_id(digest), lane) for digest, lane in codes}
        self._imported.setdefault(event, {}).update(fresh)

    def imported(self, event: str) -> int:
        """How many imported codes this process knows for an event."""
        return len(self._imported.get(event, ()))

    def _sign(self, event: str, serial: str) -> str:
        digest = hmac.digest(self._secret, f"{event}\n{serial}".encode(), "sha256")
        return encode32(int.from_bytes(digest) >> (256 - 5 * _SIGNATURE_CHARS), _SIGNATURE_CHARS)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.strip().upper().encode()).digest()


def imported_id(digest: bytes) -> int:
    """The number under which an imported code is remembered once it is used."""
    return IMPORTED_FROM + int.from_bytes(digest[:6])


def read_csv(lines: Iterable[str], lanes: Iterable[str]) -> list[tuple[bytes, str]]:
    """(digest, lane) of every code in a CSV with the columns code and lane; InvalidInput names the line."""
    known, fresh = set(lanes), dict[bytes, str]()
    for number, row in enumerate(csv.DictReader(lines), 2):
        code, lane = (row.get("code") or "").strip(), (row.get("lane") or "").strip()
        if not 4 <= len(code) <= MAX_CODE_CHARS or lane not in known:
            raise InvalidInput(f"line {number}: needs a code of 4 to {MAX_CODE_CHARS} characters and a known lane")
        digest = _digest(code)
        if digest in fresh:
            raise InvalidInput(f"line {number}: this code is in the file twice")
        fresh[digest] = lane
    if len({imported_id(digest) for digest in fresh}) != len(fresh):
        raise InvalidInput("two codes of this file cannot be told apart; make them longer")
    return list(fresh.items())
