"""A hold: a temporary, exclusive claim of one fan on seats of one event, with a fence from the ledger (B3, B4).

`NewHold` is the request of the hold service to the ledger, `PlacedHold` the ledger's confirmation, `Hold` what the
fan sees. Seats are indexes in the event's plan. A hold is live while `now_us < expires_at_us`; `extended_end_us` is the
rule for more time.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.holds.model.requested_seats import CapReached
from frontrow.boxoffice.pricing.model.prices import PriceLine
from frontrow.core.errors import InvalidInput, Refused

MAX_MINOR = 2**53 - 1  # the largest integer that all JSON readers keep exact
MAX_HOLD_FACTOR = 2  # extensions included, a hold lasts at most this many times the event's hold time
MAX_SEATS_PER_HOLD = 1_000  # a bound for the ledger's arrays; the cap of an event is far lower


class NewHold(msgspec.Struct, frozen=True, gc=False):
    """A request to hold `seats`, all or none. The caller makes the `booking_id`, so repeating it is harmless."""

    booking_id: str
    event_id: str
    fan: str
    seats: tuple[int, ...]
    now_us: int
    expires_at_us: int
    amount_minor: int = 0
    currency: str = "EUR"
    prices_minor: tuple[int, ...] = ()  # one per seat, or empty
    cap: int | None = None  # the most active seats this fan may have in this event, including these
    visit_id: str = ""  # the id of the pass
    idempotency_key: str | None = None  # scoped to the fan
    request_hash: str = ""  # of the first request with this key; another one raises IdempotencyMismatch
    price_lines: str = ""  # what the amount consists of, from pricing.model.prices.encode_lines
    ends_with_sale: bool = False  # refuse it if this visit has bought tickets already: the visit is over
    offer_id: str = ""  # of a hold that the waitlist offers
    sold_by: str = ""  # of a hold at the box office: the member of staff

    def check(self) -> None:
        """Raise InvalidInput for a request that can never succeed."""
        if not self.booking_id or not self.event_id or not self.fan:
            raise InvalidInput("a hold needs a booking id, an event and a fan", param="booking_id")
        if not 1 <= len(self.seats) <= MAX_SEATS_PER_HOLD:
            raise InvalidInput(f"a hold has 1 to {MAX_SEATS_PER_HOLD} seats, not {len(self.seats)}", param="seats")
        if min(self.seats) < 0 or (len(self.seats) > 1 and len(set(self.seats)) != len(self.seats)):
            raise InvalidInput("request each seat once, by an index from 0", param="seats")
        if self.expires_at_us <= self.now_us:
            raise InvalidInput("a hold must end after it begins", param="expires_at_us")
        texts = self.booking_id + self.event_id + self.fan + (self.idempotency_key or "") + self.currency
        texts += self.visit_id + self.offer_id + self.sold_by
        if "\0" in texts or (not texts.isascii() and _has_surrogates(texts)):
            raise InvalidInput("ids and names cannot contain NUL or invalid characters", param="booking_id")
        prices = self.prices_minor
        if not 0 <= self.amount_minor <= MAX_MINOR or (prices and (min(prices) < 0 or max(prices) > MAX_MINOR)):
            raise InvalidInput(f"amounts are 0 to {MAX_MINOR} minor units", param="amount_minor")
        if prices and len(self.prices_minor) != len(self.seats):
            raise InvalidInput("prices_minor has one price per seat, or is empty", param="prices_minor")


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


class PlacedHold(msgspec.Struct, frozen=True, gc=False):
    """The ledger has stored it: this booking has the seats until `expires_at_us`. `repeated`: it was already placed."""

    booking_id: str
    event_id: str
    fan: str
    seats: tuple[int, ...]
    fence: int
    expires_at_us: int
    state: BookingState = BookingState.HELD
    repeated: bool = False
    ended: tuple["ExpiredHold", ...] = ()  # expired holds of others that this one ended
    amount_minor: int = 0  # of a repeated one: what it costs, whatever its seats would cost today
    price_lines: str = ""  # likewise


class ChangedHold(msgspec.Struct, frozen=True):
    """A hold after its fan chose other seats, and the seats that it left."""

    booking: Booking
    left: tuple[int, ...] = ()


class ExpiredHold(msgspec.Struct, frozen=True):
    """A hold that the ledger ended because it expired; its seats are free."""

    booking_id: str
    event_id: str
    fan: str
    seats: tuple[int, ...]
    fence: int
    expired_at_us: int
    was: BookingState = BookingState.HELD  # `paying`: there may be an authorisation to void


class VisitHold(NamedTuple):
    """A live hold and the visit to the shop that it keeps."""

    visit: str
    booking_id: str
    expires_at_us: int


class ActiveSeat(msgspec.Struct, frozen=True):
    """One taken seat: `held` or `paying` until `expires_at_us`, or `confirmed` (expires_at_us 0)."""

    seat_index: int
    state: BookingState
    fan: str
    booking_id: str
    expires_at_us: int
    fence: int


class SeatsTaken(Refused):
    """Some of the seats belong to others; `seats` are exactly those (indexes)."""

    code = "seats_taken"

    def __init__(self, event_id: str, seats: Sequence[int]) -> None:
        self.event_id, self.seats = event_id, tuple(sorted(seats))
        super().__init__("these seats are taken; choose others", event=event_id, seats=list(self.seats))


class CapExceeded(CapReached):
    """With these seats the fan would have more active seats in this event than one person may have."""

    def __init__(self, event_id: str, fan: str, cap: int, active: int, asked: int) -> None:
        super().__init__(
            f"{asked} more seats would exceed the {cap} one person may have; {active} are held or bought already",
            event=event_id,
            cap=cap,
            active=active,
        )
        self.event_id, self.fan, self.cap, self.active, self.asked = event_id, fan, cap, active, asked


class VisitEnded(Refused):
    """The visit of this pass ended when it bought tickets. A hold of it could be neither paid nor extended."""

    code = "visit_ended"

    def __init__(self, event_id: str) -> None:
        super().__init__("your visit ended with your purchase; join the waiting room again to buy more", event=event_id)


class IdempotencyMismatch(InvalidInput):
    """This Idempotency-Key was already used with another request."""

    code = "idempotency_mismatch"
    http_status = 409

    def __init__(self, key: str) -> None:
        super().__init__(
            f"idempotency key {key[:80]!r} was used for another request; use a new one", param="Idempotency-Key"
        )
        self.key = key


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


class HoldNotExtendable(Refused):
    """The hold has reached its longest duration."""

    code = "hold_cannot_be_extended"


def extended_end_us(booking: Booking, hold_us: int, now_us: int) -> int:
    """When this hold ends if its fan asks for more time now, or `HoldNotExtendable`."""
    end_us = min(now_us + hold_us, booking.created_at_us + MAX_HOLD_FACTOR * hold_us)
    if booking.live(now_us) and end_us <= booking.hold_expires_at_us:
        raise HoldNotExtendable("this hold cannot be extended any further", booking=booking.id)
    return end_us


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
