"""Sales by staff: at the box office for cash or on a card reader, and free tickets for guests. Pure values.

The payment provider never hears of them. A payment of the provider `external` records how the money came; free tickets
have no payment. Who sold is the booking's `sold_by`.
"""

from enum import StrEnum
from typing import Final

import msgspec

BUYER_PREFIX: Final = "desk:"  # of the ids of buyers at the box office
MAX_SEATS_PER_SALE: Final = 50  # per sale
SALE_HOLD_S: Final = 120  # a sale that was interrupted frees its seats after this long


def buyer_id(event_id: str, booking_id: str) -> str:
    """The id of the buyer of one sale at the box office: nobody can sign in as this person."""
    return f"{BUYER_PREFIX}{event_id}:{booking_id.removeprefix('bkg_')}"


class PaidBy(StrEnum):
    """How the buyer paid."""

    FREE = "free"
    CASH = "cash"
    CARD_READER = "card_reader"


class BoxOfficeWish(msgspec.Struct, frozen=True):
    """What is sold with the seats: ticket types by seat id, add-ons and a code."""

    types: dict[str, str] = {}
    add_ons: dict[str, int] = {}
    code: str = ""


class BoxOfficeTotal(msgspec.Struct, frozen=True):
    """What one member of the team took in one way, less what was given back for these sales."""

    staff: str
    paid_by: PaidBy
    bookings: int
    seats: int
    taken_minor: int
    refunded_minor: int
