"""Pure: the verifiable random order of the pre-queue.

People who came before the opening are ordered by a keyed permutation of their arrival numbers: a Feistel network
over ⌈√n⌉ × ⌈n/⌈√n⌉⌉ cells with keyed BLAKE2s as its round function, repeated until the result is within 1…n. There is
no table: the whole state is n and a secret. SHA-256 of the secret is published before the opening, the secret after it.
A beacon (public randomness of the opening moment) keeps even the operator from knowing the order in advance. `verify`
recomputes any position from the published record alone.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

from frontrow.core.errors import InvalidInput

ALGORITHM = "frontrow-draw-1"
ROUNDS = 8
MAX_WALK = 256  # fewer than 2·√n of about n cells lie outside, so a walk of even 8 steps is rare


class Draw:
    """The order of one lane: `position_of` is a permutation of 1…n."""

    __slots__ = ("_a", "_b", "_keyed", "n")

    def __init__(self, key: bytes, n: int) -> None:
        self.n = n
        self._a = isqrt(max(n - 1, 0)) + 1
        self._b = -(-n // self._a) or 1
        self._keyed = [hashlib.blake2s(key=key, digest_size=8, person=b"round%d" % i) for i in range(ROUNDS)]

    def position_of(self, arrival: int) -> int:
        """The position of the person with this arrival number."""
        return self._walk(arrival)

    def _walk(self, number: int) -> int:
        if not 1 <= number <= self.n:
            raise InvalidInput(f"{number} was not in the draw of 1 to {self.n}", param="arrival")
        cell = number - 1
        for _ in range(MAX_WALK):
            cell = self._forth(cell)
            if cell < self.n:
                return int(cell) + 1
        raise RuntimeError("the permutation walked too far")

    def _mix(self, index: int, half: int) -> int:
        state = self._keyed[index].copy()
        state.update(half.to_bytes(8))
        return int.from_bytes(state.digest())

    def _forth(self, cell: int) -> int:
        a, b = self._a, self._b
        left, right = cell % a, cell // a
        for index in range(0, ROUNDS, 2):
            left = (left + self._mix(index, right)) % a
            right = (right + self._mix(index + 1, left)) % b
        return left + a * right


def commitment(secret: bytes) -> str:
    """What is published before the opening."""
    return hashlib.sha256(secret).hexdigest()


def secret_of(master_secret: bytes, event: str, salt: str) -> bytes:
    """The draw's secret: derived from the master secret, so no loss of the store can lose it."""
    return hmac.digest(master_secret, f"draw\n{event}\n{salt}".encode(), "sha256")


def draw_of(secret: bytes, event: str, lane: str, n: int, beacon: str) -> Draw:
    """The draw of one lane."""
    return Draw(hmac.digest(secret, f"{ALGORITHM}\n{event}\n{lane}\n{n}\n{beacon}".encode(), "sha256"), n)


def record(secret: bytes, event: str, lanes: Sequence[tuple[str, int]], beacon: str, *, opened: bool) -> dict[str, Any]:
    """What is published: before the opening the commitment alone, after it everything."""
    published: dict[str, Any] = {"algorithm": ALGORITHM, "event": event, "commitment": commitment(secret)}
    if opened:
        published |= {
            "lanes": [{"name": name, "people": n} for name, n in lanes],
            "beacon": beacon,
            "secret": secret.hex(),
        }
    return published


def verify(published: Mapping[str, Any], lane: str, arrival: int, committed: str | None = None) -> int:
    """The position of `arrival`, from the published record alone; `committed` is the commitment seen before."""
    try:
        if published["algorithm"] != ALGORITHM:
            raise InvalidInput(f"this record was made by {published['algorithm']!r}, not {ALGORITHM}")
        if "secret" not in published:
            raise InvalidInput("the draw has not happened yet: the record has no secret")
        secret = bytes.fromhex(published["secret"])
        people = {str(entry["name"]): int(entry["people"]) for entry in published["lanes"]}
        event, beacon, claimed = str(published["event"]), str(published["beacon"]), str(published["commitment"])
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is not a draw record: {error} is missing or wrong") from None
    if commitment(secret) != claimed or (committed is not None and claimed != committed):
        raise InvalidInput("the secret does not match the commitment: this draw is not the one promised")
    if lane not in people:
        raise InvalidInput(f"lane {lane!r} is not in the record; it has {', '.join(people)}", param="lane")
    return draw_of(secret, event, lane, people[lane], beacon).position_of(arrival)
