"""Verified-Fan codes: signed, single-use, each valid for one lane of one event.

    VF-<serial>-<signature>      serial: 7 base-32 characters (number and lane), signature: 13 (65 bits of HMAC-SHA256)

A code is signed, so only the number of a used code is stored. Organisers may import their own codes from a CSV file
(`code,lane` with a header line). The audit stores the hash of each imported code, for all processes, never its text.
"""

import csv
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import ALPHABET, encode32
from frontrow.waitingroom.model.config import MAX_LANES
from frontrow.waitingroom.model.errors import CodeInvalid

PREFIX = "VF"
_SERIAL_CHARS, _SIGNATURE_CHARS = 7, 13
_LANE_BITS = 2
MAX_CODES = 1 << 30
IMPORTED_FROM = 1 << 31  # ids of imported codes start here, above every serial
MAX_CODE_CHARS = 128


@dataclass(frozen=True, slots=True)
class Code:
    """A valid code. Only the store can say whether it was used."""

    id: int
    lane: int


class Codes:
    """Makes and checks signed codes."""

    def __init__(self, master_secret: bytes) -> None:
        self._secret = hashlib.sha256(b"frontrow fan codes" + master_secret).digest()

    def make(self, event: str, lane: int, numbers: Iterable[int]) -> Iterator[str]:
        """The codes with these numbers for one lane."""
        for number in numbers:
            if not (0 <= number < MAX_CODES and 0 <= lane < MAX_LANES):
                raise InvalidInput(f"codes are numbered 0 to {MAX_CODES - 1}, lanes 0 to {MAX_LANES - 1}")
            serial = encode32(number << _LANE_BITS | lane, _SERIAL_CHARS)
            yield f"{PREFIX}-{serial}-{self._sign(event, serial)}"

    def check(self, event: str, text: str) -> Code:
        """The code, if it is valid for this event. Case and surrounding blanks are ignored. Raises CodeInvalid."""
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

    def _sign(self, event: str, serial: str) -> str:
        digest = hmac.digest(self._secret, f"{event}\n{serial}".encode(), "sha256")
        return encode32(int.from_bytes(digest) >> (256 - 5 * _SIGNATURE_CHARS), _SIGNATURE_CHARS)


def digest_of(text: str) -> str:
    """The hash under which an imported code is stored."""
    return hashlib.sha256(text.strip().upper()[:MAX_CODE_CHARS].encode()).hexdigest()


def imported(digest: str, lane: int) -> Code:
    """The imported code with this hash. Its number is made of the hash and is above every signed one."""
    return Code(IMPORTED_FROM + int(digest[:15], 16), lane)


def read_csv(lines: Iterable[str], lanes: dict[str, int]) -> dict[str, int]:
    """An organiser's own codes (`code,lane` with a header line) as hash -> lane. Raises InvalidInput."""
    found: dict[str, int] = {}
    for number, row in enumerate(csv.DictReader(lines), 2):
        code, lane = (row.get("code") or "").strip(), (row.get("lane") or "").strip()
        if not 4 <= len(code) <= MAX_CODE_CHARS or lane not in lanes:
            raise InvalidInput(
                f"line {number}: needs a code of 4 to {MAX_CODE_CHARS} characters and a known lane", line=number
            )
        digest = digest_of(code)
        if digest in found:
            raise InvalidInput(f"line {number}: this code is in the file twice", line=number)
        found[digest] = lanes[lane]
    return found
