"""What comes into the hold service and what leaves it: a checked pass, a hold as the fan sees it, and the counts."""

import msgspec

from frontrow.core.errors import Refused


class ShopPass(msgspec.Struct, frozen=True, gc=False):
    """What the caller's checker read in a valid Pass: whose, for which event, until when, and its id."""

    event_id: str
    fan: str
    expires_at_us: int
    id: str = ""


class Hold(msgspec.Struct, frozen=True):
    """A hold as the fan sees it. `fence` must come with everything that follows."""

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


class HoldStats(msgspec.Struct):
    """Where attempts ended, since the start. `audited_free` of `audited` local refusals were of seats in fact free."""

    won: int = 0
    seats_won: int = 0
    refused_locally: int = 0
    refused_by_claims: int = 0
    refused_by_ledger: int = 0
    unavailable: int = 0
    audited: int = 0
    audited_free: int = 0


class NoSuchSeats(Refused):
    """No free seats fit the wish."""

    code = "no_such_seats"
