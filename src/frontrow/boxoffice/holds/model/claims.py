"""Claims on seats: the requests to the claim store and its answers.

Seats are indexes in the event's plan. A claim is live while `now_us < expires_at_us`; a sold seat has no end. The claim
store filters attempts but proves nothing: what it grants must still pass the ledger, which gives the fence.
"""

from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.seats.model.map_format import SeatState
from frontrow.core.errors import InvalidInput, Unavailable

SOLD_UNTIL_US: Final = 0
MAX_NAME_CHARS: Final = 100
_SEPARATORS: Final = frozenset("|\n\r{}")


class ClaimKind(StrEnum):
    """The kind of a claim. Tentative: part of a group that is still being claimed; not shown to anybody."""

    HELD = "h"
    TENTATIVE = "t"
    SOLD = "s"


class SeatClaim(msgspec.Struct, frozen=True, gc=False):
    """A request for `seats`, all or none, until `expires_at_us`. Repeating it for the same booking is harmless."""

    event_id: str
    seats: tuple[int, ...]
    fan: str
    booking_id: str
    expires_at_us: int


class ClaimedSeats(msgspec.Struct, frozen=True, gc=False):
    """According to the claim store, the booking has the seats."""

    seats: tuple[int, ...]


class TakenSeat(msgspec.Struct, frozen=True, gc=False):
    """One taken seat: its owner, its booking, since when, and until when (0: without an end)."""

    seat: int
    kind: ClaimKind
    fan: str
    booking_id: str
    placed_at_us: int
    expires_at_us: int

    def live(self, now_us: int) -> bool:
        return self.kind is ClaimKind.SOLD or now_us < self.expires_at_us

    @property
    def state(self) -> SeatState:
        """What the map shows of the seat."""
        return SeatState.SOLD if self.kind is ClaimKind.SOLD else SeatState.HELD


class ClaimRefused(msgspec.Struct, frozen=True, gc=False):
    """Nothing was claimed. `taken` are the seats of others; empty: nothing fits, or the booking is not the owner."""

    taken: tuple[TakenSeat, ...]


class ClaimsLost(Unavailable):
    """The claim store is empty, old or of another epoch. It must be filled from the ledger before it may answer."""

    code = "claims_rebuilding"

    def __init__(self, event_id: str) -> None:
        super().__init__("seats are being counted again; try again in a moment", retry_after_s=1.0, event=event_id)
        self.event_id = event_id


def check_name(text: str, param: str) -> str:
    """`text` if it can be part of a key or a stored value; otherwise an error."""
    if not 1 <= len(text) <= MAX_NAME_CHARS or not _SEPARATORS.isdisjoint(text):
        raise InvalidInput(f"{param} must have 1 to {MAX_NAME_CHARS} characters, none of them | {{ }}", param=param)
    return text


def check_claim(claim: SeatClaim) -> None:
    """Raise `InvalidInput` if the claim's fan or booking cannot be part of a stored value."""
    fan, booking_id = claim.fan, claim.booking_id
    if not (0 < len(fan) <= MAX_NAME_CHARS >= len(booking_id) > 0 and _SEPARATORS.isdisjoint(fan + booking_id)):
        check_name(fan, "fan")
        check_name(booking_id, "booking")


def sold_seat(seat: int, fan: str, booking_id: str, placed_at_us: int) -> TakenSeat:
    return TakenSeat(seat, ClaimKind.SOLD, fan, booking_id, placed_at_us, SOLD_UNTIL_US)


class BestClaim(msgspec.Struct, frozen=True, gc=False):
    """A request for the best `count` seats of one section that `mask` allows, up to a grade."""

    event_id: str
    section: int  # its position in the plan
    mask: bytes  # a byte per seat of the section; 0: not allowed
    count: int
    worst: int  # a seats.model.best_seats.Grade
    fan: str
    booking_id: str
    expires_at_us: int
