"""An offer of the waitlist (B11): seats kept for one entry, how long, and what becomes of both.

An Offer is an ordinary hold kept for one entry. The default time to claim it is `OFFER_TTL_S`.
"""

from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.waitlist.model.waitlist import EntryState
from frontrow.core.errors import NotFound, Refused

OFFER_TTL_S: Final = 900  # how long a fan may claim an offer: they have to see the mail first
MAX_LAPSES: Final = 2  # after this many unanswered offers the entry leaves the line


class OfferState(StrEnum):
    OPEN = "open"
    CLAIMED = "claimed"
    DECLINED = "declined"
    LAPSED = "lapsed"
    WITHDRAWN = "withdrawn"  # the event was cancelled


class OfferMove(StrEnum):
    CLAIM = "claim"
    DECLINE = "decline"
    LAPSE = "lapse"
    WITHDRAW = "withdraw"


# The state after each move. Repeating a move changes nothing. A move that is not in the table is refused.
OFFER_MOVES: Final[dict[tuple[OfferState, OfferMove], OfferState]] = {
    (OfferState.OPEN, OfferMove.CLAIM): OfferState.CLAIMED,
    (OfferState.OPEN, OfferMove.DECLINE): OfferState.DECLINED,
    (OfferState.OPEN, OfferMove.LAPSE): OfferState.LAPSED,
    (OfferState.OPEN, OfferMove.WITHDRAW): OfferState.WITHDRAWN,
    (OfferState.CLAIMED, OfferMove.CLAIM): OfferState.CLAIMED,
    (OfferState.DECLINED, OfferMove.DECLINE): OfferState.DECLINED,
    (OfferState.LAPSED, OfferMove.LAPSE): OfferState.LAPSED,
    (OfferState.WITHDRAWN, OfferMove.WITHDRAW): OfferState.WITHDRAWN,
}


class NewOffer(msgspec.Struct, frozen=True):
    """A new offer: keep the seats of `hold` for the entry until the hold ends."""

    id: str
    entry_id: str
    hold: NewHold


class EndedEntries(msgspec.Struct, frozen=True):
    """The result of ending one page of a waitlist: entries ended, offers withdrawn, entries to try again."""

    entries: int
    withdrawn: "tuple[Offer, ...]"
    left: int


class Offer(msgspec.Struct, frozen=True):
    """Seats kept for one entry until `expires_at_us`. `booking_id` and `fence` are those of its hold."""

    id: str
    entry_id: str
    event_id: str
    fan: str
    booking_id: str
    state: OfferState
    expires_at_us: int
    fence: int
    seats: tuple[int, ...]
    booking_state: BookingState
    hold_expires_at_us: int

    def open(self, now_us: int) -> bool:
        """Whether it can still be claimed."""
        return self.state is OfferState.OPEN and now_us < self.expires_at_us


def due_move(offer: Offer, now_us: int) -> OfferMove | None:
    """The move that an open offer is due for, by its booking's state at `now_us`. None: it is still open."""
    match offer.booking_state:
        case BookingState.PAYING | BookingState.CONFIRMED | BookingState.REFUNDED:
            return OfferMove.CLAIM  # the fan began to pay without claiming
        case BookingState.CANCELLED:
            return OfferMove.DECLINE  # the fan released the hold
        case BookingState.EXPIRED:
            return OfferMove.LAPSE
        case _ if offer.hold_expires_at_us <= now_us:
            return OfferMove.LAPSE
        case _ if now_us >= offer.expires_at_us:
            return OfferMove.CLAIM  # the hold was extended beyond the offer, so the fan uses it
        case _:
            return None


def entry_after(move: OfferMove, lapses: int) -> EntryState:
    """The entry's state after its offer. `lapses` counts earlier ones. Declining keeps the place in line."""
    if move is OfferMove.CLAIM:
        return EntryState.SERVED
    if move is OfferMove.WITHDRAW:
        return EntryState.ENDED
    if move is OfferMove.LAPSE and lapses + 1 >= MAX_LAPSES:
        return EntryState.ENDED
    return EntryState.WAITING


class OfferNotFound(NotFound):
    code = "offer_not_found"


class OfferOver(Refused):
    """The offer was answered or lapsed; the seats went to the next in line."""

    code = "offer_over"
    http_status = 410
