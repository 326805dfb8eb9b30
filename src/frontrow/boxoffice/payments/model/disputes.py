"""A dispute: the fan's bank takes the money of a payment back, for now or for good (B12). Pure.

While one is open, or once it is lost, the money is not the organiser's to give: no refund may use it. What the gate
does with the tickets is the event's rule (`block_disputed`). Notices come late, twice and in any order, so a dispute
that has ended does not open again; the one move after the end is that a bank takes back what was won.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.boxoffice.payments.model.provider_intents import NoticeKind
from frontrow.core.errors import Refused


class DisputeState(StrEnum):
    """`closed`: it ended without a decision, such as an inquiry, and no money moved."""

    OPEN = "open"
    WON = "won"
    LOST = "lost"
    CLOSED = "closed"


NEXT_DISPUTE: Final[Mapping[DisputeState, frozenset[DisputeState]]] = {
    DisputeState.OPEN: frozenset({DisputeState.WON, DisputeState.LOST, DisputeState.CLOSED}),
    DisputeState.CLOSED: frozenset({DisputeState.WON, DisputeState.LOST}),
    DisputeState.WON: frozenset({DisputeState.LOST}),
    DisputeState.LOST: frozenset(),
}
STATE_OF_NOTICE: Final = {
    NoticeKind.DISPUTE_OPENED: DisputeState.OPEN,
    NoticeKind.DISPUTE_WON: DisputeState.WON,
    NoticeKind.DISPUTE_LOST: DisputeState.LOST,
    NoticeKind.DISPUTE_CLOSED: DisputeState.CLOSED,
}
DISPUTE_CHECK_S: Final = 3600  # how often what waits for a dispute looks again, should the notice of its end be lost
AGAINST: Final = frozenset({DisputeState.OPEN, DisputeState.LOST})  # the money is not the organiser's


class PaymentDispute(msgspec.Struct, frozen=True):
    """A dispute of one payment, as the ledger has it."""

    provider: str
    ref: str  # the provider's name for it
    payment_ref: str  # the provider's name for the payment
    payment_id: str  # empty if no payment of ours has that name
    booking_id: str
    event_id: str
    amount_minor: int
    currency: str
    state: DisputeState
    reason: str = ""  # in the provider's words
    answer_by_us: int = 0  # until when evidence can be given; 0: unknown
    opened_at_us: int = 0
    changed_at_us: int = 0


class BookingDisputed(Refused):
    """The booking's money is disputed, so nothing of it is refunded."""

    code = "booking_disputed"


def states_before(state: DisputeState) -> list[DisputeState]:
    """The states from which a known dispute comes to this one."""
    return [was for was, following in NEXT_DISPUTE.items() if state in following]


def is_disputed(disputes: Iterable[PaymentDispute]) -> bool:
    """Whether the money is with the bank, for now or for good."""
    return any(one.state in AGAINST for one in disputes)


def disputed_minor(disputes: Iterable[PaymentDispute], payment_ref: str) -> int:
    """How much of a payment is with the bank."""
    return sum(one.amount_minor for one in disputes if one.state in AGAINST and one.payment_ref == payment_ref)


def check_undisputed(booking_id: str, disputes: Iterable[PaymentDispute]) -> None:
    """Raise `BookingDisputed` if nothing of the booking may be refunded."""
    states = {one.state for one in disputes}
    if DisputeState.OPEN in states:
        raise BookingDisputed(
            "the buyer's bank is taking this money back; wait until that is decided", booking=booking_id
        )
    if DisputeState.LOST in states:
        raise BookingDisputed(
            "the buyer's bank took this money back, so there is nothing to refund", booking=booking_id
        )


def sum_by_state(disputes: Iterable[PaymentDispute], state: DisputeState) -> dict[str, int]:
    """The sums of the disputes in this state, in minor units by currency."""
    sums: dict[str, int] = {}
    for one in disputes:
        if one.state is state:
            sums[one.currency] = sums.get(one.currency, 0) + one.amount_minor
    return sums
