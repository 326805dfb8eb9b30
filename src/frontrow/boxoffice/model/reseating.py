"""What moving a booking to other seats needs: the seats, in pairs, and the tickets of the new ones."""

import msgspec

from frontrow.boxoffice.model.tickets import NewTicket


class Reseat(msgspec.Struct, frozen=True):
    """Move from each first seat to its second; `tickets` are those of the new seats."""

    booking_id: str
    fence: int
    pairs: tuple[tuple[int, int], ...]
    tickets: tuple[NewTicket, ...]
    now_us: int
