"""Add-ons at the gate: what a booking has of each, what of it was redeemed, and whether more may be (ADR 0199). Pure.

Add-ons belong to the booking, not to a ticket: any valid ticket of the booking that its buyer has shows them, and a
ticket that was transferred shows none. An add-on that was refunded cannot be redeemed, and one that was redeemed cannot
be refunded: both decide under the booking's lock.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.refunds.model.refund_lines import kept_lines

MAX_TOGETHER: Final = 100  # of one add-on in one redemption


class RedeemAnswer(StrEnum):
    """What came of a redemption."""

    OK = "ok"
    USED_UP = "used_up"  # all that the booking has were redeemed before
    NOT_BOUGHT = "not_bought"  # the booking has none, or they were refunded
    UNDONE = "undone"  # a repeated request for a redemption that was taken back


class Redemption(msgspec.Struct, frozen=True):
    """Some of one add-on of a booking, handed out at a gate. The gate makes the `id`, so repeating it is harmless.

    `refused`: a gate that was offline handed it out although it was not possible. It counts for nothing and is a
    conflict that the gate and the organiser see.
    """

    id: str
    event_id: str
    booking_id: str
    add_on: str
    quantity: int
    gate: str
    made_by: str
    at_us: int
    refused: str = ""
    undone_at_us: int | None = None

    @property
    def counts(self) -> bool:
        return not self.refused and self.undone_at_us is None

    @property
    def answer(self) -> RedeemAnswer:
        """What came of it, for a repeated request."""
        if self.undone_at_us is not None:
            return RedeemAnswer.UNDONE
        return RedeemAnswer(self.refused) if self.refused else RedeemAnswer.OK


class AddOnUse(msgspec.Struct, frozen=True):
    """One add-on that a booking has: how many, and how many of them were redeemed."""

    key: str
    name: str
    bought: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.bought - self.used)


class GateGuest(msgspec.Struct, frozen=True):
    """Who has a ticket: the buyer with the add-ons of the booking, or whoever it was transferred to."""

    name: str
    add_ons: tuple[AddOnUse, ...] = ()


class Redeemed(msgspec.Struct, frozen=True):
    """The answer to a redemption, with all add-ons of the booking after it. `last`: by whom the add-on was used up."""

    answer: RedeemAnswer
    add_ons: tuple[AddOnUse, ...]
    last: Redemption | None = None


def count_used(redemptions: Iterable[Redemption]) -> Counter[str]:
    """How many of which add-on were redeemed."""
    used: Counter[str] = Counter()
    for one in redemptions:
        if one.counts:
            used[one.add_on] += one.quantity
    return used


def find_add_ons(booking: Booking, gone: Mapping[str, int], used: Mapping[str, int]) -> tuple[AddOnUse, ...]:
    """The add-ons that a paid booking still has. `gone` were refunded, `used` redeemed."""
    if booking.state is not BookingState.CONFIRMED:
        return ()
    lines = [line for line in kept_lines(booking, gone) if line.kind is LineKind.ADD_ON]
    return tuple(AddOnUse(line.key, line.name, line.quantity, used.get(line.key, 0)) for line in lines)


def decide_redemption(add_ons: Sequence[AddOnUse], key: str, quantity: int) -> RedeemAnswer:
    """Whether so many of this add-on may be handed out now."""
    found = next((one for one in add_ons if one.key == key), None)
    if found is None or found.bought < quantity:
        return RedeemAnswer.NOT_BOUGHT
    return RedeemAnswer.OK if quantity <= found.left else RedeemAnswer.USED_UP
