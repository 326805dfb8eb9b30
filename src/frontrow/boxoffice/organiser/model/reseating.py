"""The move of a booking to other seats: pairs of seats, the tickets of the new ones, and its refusal."""

import msgspec

from frontrow.boxoffice.tickets.model.tickets import NewTicket
from frontrow.core.errors import Refused


class Reseat(msgspec.Struct, frozen=True):
    """Move from the first seat of each pair to the second. `tickets` are those of the new seats."""

    booking_id: str
    fence: int
    pairs: tuple[tuple[int, int], ...]
    tickets: tuple[NewTicket, ...]
    now_us: int


class ReseatRefused(Refused):
    """The booking cannot move to those seats."""

    code = "reseat_refused"
