"""A ticket returned to the pool for resale: its states, and until when it can be returned.

giving -> listed -> resold -> refunded. Each step is durable before the next begins and may be repeated. `giving` is the
intent (the ticket is being revoked), `listed` frees the seat, `resold` means that a later booking of the seat was
confirmed and the price is owed, `refunded` that it was paid. `void` means that the booking ended in another way, or
that the ticket was used. When the event is cancelled, every return that is not paid yet is refunded.
"""

import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.waitlist.model.waitlist import HAS_WAITLIST
from frontrow.core.errors import Refused
from frontrow.shared.ids import ID_CHARS, encode32


class ReturnState(StrEnum):
    GIVING = "giving"
    LISTED = "listed"
    RESOLD = "resold"
    REFUNDED = "refunded"
    VOID = "void"


OWED_STATES: Final = frozenset({ReturnState.GIVING, ReturnState.LISTED, ReturnState.RESOLD})  # not refunded yet


class Return(msgspec.Struct, frozen=True):
    """One returned seat. `price_minor` is what was paid for it and what will be refunded, once."""

    id: str
    booking_id: str
    event_id: str
    fan: str
    fence: int
    seat_index: int
    price_minor: int
    currency: str
    state: ReturnState
    resold_booking_id: str = ""


def return_id(booking_id: str, seat_index: int) -> str:
    """The same seat of the same booking is the same return, and the idempotency key of its refund."""
    digest = hashlib.blake2b(f"{booking_id}\n{seat_index}".encode(), digest_size=17).digest()
    return f"rtn_{encode32(int.from_bytes(digest, 'big') & ((1 << 130) - 1), ID_CHARS)}"


class NotReturnable(Refused):
    """These seats cannot be returned: they were not sold to this fan, or the sale is over."""

    code = "not_returnable"


def check_returnable(event: Event, booking_id: str, now_us: int) -> None:
    """Raise `NotReturnable` unless seats of the event can still be resold."""
    if event.status not in HAS_WAITLIST or now_us >= event.sale_ends_at_us:
        raise NotReturnable(f"{event.name} cannot be resold any more", booking=booking_id)
