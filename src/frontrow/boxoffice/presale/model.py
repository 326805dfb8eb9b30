"""Sign-ups before a sale: notices when it opens, registrations for a presale, and the draw among them. Pure.

A sign-up belongs to one e-mail address and one event. It counts once the address is proven: by a link that was mailed
to it, or by the session of a signed-in fan.

The draw is fair and everyone can check it. The hash of a secret seed is published when registration opens. The draw
gives every registration a rank, the SHA-256 of seed, beacon, event and registration id. The smallest ranks win. Then
seed, beacon and the last winning rank are published, so everyone with a registration id can compute their own rank.
"""

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from frontrow.core.errors import InvalidInput, NotFound, Refused

MAX_CODES: Final = 100_000
MAX_BEACON_CHARS: Final = 200


class Purpose(StrEnum):
    NOTICE = "notice"  # one mail when the sale opens
    PRESALE = "presale"  # a registration for the presale


class SignupState(StrEnum):
    ASKED = "asked"  # the address is not proven yet
    CONFIRMED = "confirmed"
    SENT = "sent"  # a notice: the mail was queued
    CHOSEN = "chosen"  # a registration: it got a code
    PASSED_OVER = "passed_over"  # a registration: there were more people than codes


class DrawOrder(StrEnum):
    LOTTERY = "lottery"
    FIRST_COME = "first_come"


class PresaleState(StrEnum):
    OPEN = "open"
    DRAWING = "drawing"
    DRAWN = "drawn"


class Signup(msgspec.Struct, frozen=True):
    """One address signed up for an event. `code_number` is the code of a chosen registration."""

    id: str
    event_id: str
    purpose: Purpose
    email: str
    locale: str
    state: SignupState
    code_number: int = 0
    created_at_us: int = 0
    confirmed_at_us: int = 0


class Presale(msgspec.Struct, frozen=True):
    """The registration for an event's presale. `batches` are the first numbers of the codes, as JSON."""

    event_id: str
    opens_at_us: int
    closes_at_us: int
    codes: int
    order: DrawOrder
    lane: str
    seed: str
    beacon: str = ""
    batches: str = "[]"
    last_rank: str = ""
    state: PresaleState = PresaleState.OPEN
    created_at_us: int = 0
    changed_at_us: int = 0

    def takes_registrations(self, now_us: int) -> bool:
        return self.state is PresaleState.OPEN and self.opens_at_us <= now_us < self.closes_at_us

    @property
    def commitment(self) -> str:
        """What is published before anybody registers: the hash of the seed."""
        return hashlib.sha256(self.seed.encode()).hexdigest()

    def record(self, counts: dict[str, int]) -> dict[str, Any]:
        """What is public about the draw: the commitment at first; seed and last rank once it is drawn."""
        drawn = self.state is PresaleState.DRAWN
        return {
            "order": self.order.value,
            "codes": self.codes,
            "commitment": self.commitment,
            "state": self.state.value,
            "registrations": sum(counts.values()) if drawn else None,
            "chosen": counts.get(SignupState.CHOSEN, 0) if drawn else None,
            "seed": self.seed if drawn else None,
            "beacon": self.beacon if drawn else None,
            "last_rank": self.last_rank if drawn else None,
        }


class PresaleNotFound(NotFound):
    code = "presale_not_found"


class SignupNotFound(NotFound):
    code = "signup_not_found"


class RegistrationClosed(Refused):
    """The presale takes no registrations now; `reason` is not_begun, over or drawn."""

    code = "registration_closed"


class DrawRefused(Refused):
    """The draw cannot begin now."""

    code = "draw_refused"


class PresaleFixed(Refused):
    """What people registered under cannot change."""

    code = "presale_fixed"


def check_presale(presale: Presale, presale_starts_at_us: int, lanes: Sequence[str]) -> None:
    """Raise `InvalidInput` for a presale with invalid times, codes or lane."""
    if not presale_starts_at_us:
        raise InvalidInput("this event has no presale; give it one first", param="presale_starts_at")
    if not presale.opens_at_us < presale.closes_at_us <= presale_starts_at_us:
        raise InvalidInput("registration must open, then close, before the presale starts", param="closes_at")
    if not 1 <= presale.codes <= MAX_CODES:
        raise InvalidInput(f"there are 1 to {MAX_CODES:,} codes", param="codes")
    if presale.lane not in lanes[1:]:
        raise InvalidInput(f"codes lead to a lane of their own: {', '.join(lanes[1:])}", param="lane")


def rank_of(presale: Presale, signup: Signup) -> str:
    """The rank of a registration: smaller wins."""
    if presale.order is DrawOrder.FIRST_COME:
        return f"{signup.confirmed_at_us:020d} {signup.id}"
    return lottery_rank(presale.seed, presale.beacon, presale.event_id, signup.id)


def lottery_rank(seed: str, beacon: str, event_id: str, signup_id: str) -> str:
    """The rank that everyone can compute from the published seed and beacon."""
    return hashlib.sha256(f"{seed}\n{beacon}\n{event_id}\n{signup_id}".encode()).hexdigest()


def draw_order(presale: Presale, signups: Sequence[Signup]) -> list[Signup]:
    """The sign-ups in the order of the draw. The first `presale.codes` are chosen."""
    return sorted(signups, key=lambda one: rank_of(presale, one))
