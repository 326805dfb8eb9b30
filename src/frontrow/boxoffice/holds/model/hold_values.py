"""The values of the hold service: the checked pass it needs, the hold it returns, and its counts."""

from typing import TypeAlias

import msgspec

from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.pricing.model.prices import PriceLine
from frontrow.core.errors import Refused


class ShopPass(msgspec.Struct, frozen=True, gc=False):
    """A pass that the caller has verified: its event, its fan, its end and its id.

    `ends_with_sale`: it is the pass of a visit to the shop, which ends when it has bought tickets. A pass for an offer
    or a priority pass is not.
    """

    event_id: str
    fan: str
    expires_at_us: int
    id: str = ""
    ends_with_sale: bool = False


class Hold(msgspec.Struct, frozen=True):
    """A hold as the fan sees it. Every later operation on it needs its `fence`."""

    booking_id: str
    event_id: str
    fan: str
    seats: tuple[str, ...]
    indexes: tuple[int, ...]
    fence: int
    expires_at_us: int
    amount_minor: int
    currency: str
    repeated: bool = False
    lines: tuple[PriceLine, ...] = ()


HoldResult: TypeAlias = Hold | SeatsTaken  # how an attempt ends: a refusal is a value, other errors are raised


class HoldStats(msgspec.Struct):
    """How attempts ended since startup. Of `audited` local refusals, `audited_free` were for seats that were free."""

    won: int = 0
    seats_won: int = 0
    refused_locally: int = 0
    refused_by_claims: int = 0
    refused_by_ledger: int = 0
    unavailable: int = 0
    audited: int = 0
    audited_free: int = 0


class NoSuchSeats(Refused):
    """No free seats match the wish."""

    code = "no_such_seats"
