"""Prefixed ids like `bkg_01JCQ3W2N4X7…`. The prefix says what it is. The rest sorts by time and cannot be guessed."""

import os
import secrets
from collections.abc import Callable

from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import InvalidInput

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U to misread
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]  # two characters per step
_TIME_CHARS, _RANDOM_CHARS = 10, 16
_CHAR_OF_BYTE = bytes(ord(ALPHABET[byte & 31]) for byte in range(256))  # all are equally likely: 32 divides 256
ID_CHARS = _TIME_CHARS + _RANDOM_CHARS


def encode32(number: int, width: int) -> str:
    """`number` in base 32, left-padded to `width` characters."""
    if number < 0 or number >> (5 * width):
        raise ValueError(f"{number} does not fit {width} base-32 characters")
    if width % 2:
        return ALPHABET[number >> (5 * (width - 1))] + encode32(number & ((1 << (5 * (width - 1))) - 1), width - 1)
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(5 * (width - 2), -1, -10)])


class Ids:
    """Makes ids from a clock and a source of randomness. Both can be replaced, so that simulations repeat exactly."""

    def __init__(self, clock: Clock | None = None, randbits: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock or WallClock()
        self._randbits = randbits
        self._moment = (-1, "")  # the last millisecond and its encoding

    def new(self, prefix: str) -> str:
        """A new id `<prefix>_<26 characters>`."""
        now_ms = self._clock() // 1000
        written_ms, moment = self._moment
        if now_ms != written_ms:
            moment = encode32(now_ms, _TIME_CHARS)
            self._moment = (now_ms, moment)
        if self._randbits is secrets.randbits:  # the same 80 bits, encoded by one lookup
            return f"{prefix}_{moment}{os.urandom(_RANDOM_CHARS).translate(_CHAR_OF_BYTE).decode()}"
        return f"{prefix}_{moment}{encode32(self._randbits(80), _RANDOM_CHARS)}"


def made_at_us(text: str) -> int:
    """When an id was made, to the millisecond; 0 if it is not one of ours."""
    moment = text.partition("_")[2][:_TIME_CHARS]
    if len(moment) < _TIME_CHARS or not set(moment) <= set(ALPHABET):
        return 0
    made_ms = 0
    for character in moment:
        made_ms = made_ms * 32 + ALPHABET.index(character)
    return made_ms * 1000


def check_id(text: str, prefix: str) -> str:
    """Return `text` if it is an id with this prefix, else raise an error that shows an example."""
    head, _, tail = text.partition("_")
    if head != prefix or len(tail) != ID_CHARS or not set(tail) <= set(ALPHABET):
        raise InvalidInput(f"{text[:40]!r} is not a {prefix} id such as {prefix}_{'0' * ID_CHARS}", param=prefix)
    return text
