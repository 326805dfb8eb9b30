"""The checkout saga as two pure functions (B6): what to do next, and what a look at the provider's object means.

CONFIRMED is the pivot. Before it every failure goes backward (void, free the seats); after it only forward (capture,
and if the bank took its word back: authorise once more, else cancel and tell the person). Whoever finds a payment, the
process that began it or another one after a crash, asks `next_step` and goes on from there.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from frontrow.boxoffice.model.bookings import HOLD_STATES, Booking, BookingState
from frontrow.boxoffice.model.payments import TAKES_CARDS, Payment, PaymentState
from frontrow.boxoffice.model.provider_intents import Intent, IntentState
from frontrow.core.clock import US_PER_S

ACTION_LOOK_S: Final = 15  # how often we look whether the fan has answered the bank, should the webhook be lost
OPEN_LOOK_S: Final = 15  # how often we look whether the fan has paid in the browser: less and less often, up to
OPEN_LOOK_MOST_S: Final = 120
MAX_ATTEMPTS: Final = 3  # authorisations of one booking after captures that failed for good


class Step(StrEnum):
    """What to do next about a payment."""

    REST = "rest"  # nothing, until somebody comes (a fan with a card, a webhook, the hold's end)
    CREATE = "create"
    AUTHORISE = "authorise"
    CONFIRM = "confirm"
    CAPTURE = "capture"
    VOID = "void"
    ABANDON = "abandon"  # nothing was ever made at the provider that could hold money
    DECLINE = "decline"
    GIVE_UP = "give_up"  # retries ran out: void, free the seats, priority pass
    REAUTHORISE = "reauthorise"
    CANCEL = "cancel"
    RETURN = "return"  # captured for a booking that is over: give it back
    DROP = "drop"  # declined for good: void the object, or a browser could still put a card to it


def next_step(booking: Booking, payment: Payment, now_us: int) -> Step:
    """The one decision of the saga."""
    paying = booking.state in HOLD_STATES and now_us < booking.hold_expires_at_us
    sold = booking.state is BookingState.CONFIRMED
    return _TABLE[payment.state](paying, sold, booking, payment)


def next_check_us(booking: Booking, payment: Payment, now_us: int) -> int:
    """When to look at a payment that rests, should nobody tell of it before; 0: never. At the latest at the hold's end.

    An open payment is looked at after 15 s, then whenever its age has doubled, and at least every two minutes: a hold
    of ten minutes costs eight reads.
    """
    if payment.state is PaymentState.ACTION:
        pause_us = ACTION_LOOK_S * US_PER_S
    elif payment.state is PaymentState.OPEN:
        age_us = now_us - payment.created_at_us
        pause_us = min(max(age_us, OPEN_LOOK_S * US_PER_S), OPEN_LOOK_MOST_S * US_PER_S)
    else:
        return 0
    return min(now_us + pause_us, booking.hold_expires_at_us)


def _creating(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if paying and payment.exhausted:
        return Step.GIVE_UP
    return Step.CREATE if paying or sold else Step.ABANDON


def _open(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if sold:
        return Step.AUTHORISE
    return Step.REST if paying else Step.VOID


def _authorising(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if paying and payment.exhausted:
        return Step.GIVE_UP
    return Step.AUTHORISE if paying or sold else Step.VOID


def _action(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    return Step.REST if paying else Step.VOID


def _authorised(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if paying:
        return Step.CONFIRM
    return Step.CAPTURE if sold else Step.VOID


def _capturing(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    return Step.CAPTURE if sold else Step.VOID


def _captured(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if paying:
        return Step.CONFIRM
    return Step.REST if sold or booking.state is BookingState.REFUNDED else Step.RETURN


def _declined(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if sold:
        return Step.CANCEL  # a second authorisation after a lapsed capture
    if booking.state is BookingState.PAYING:
        return Step.DECLINE
    return Step.DROP if payment.ref and payment.retry_at_us else Step.REST


def _lapsed(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    if not sold:
        return Step.REST
    return Step.REAUTHORISE if payment.attempt < MAX_ATTEMPTS else Step.CANCEL


def _voiding(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    return Step.VOID


def _voided(paying: bool, sold: bool, booking: Booking, payment: Payment) -> Step:
    return Step.CANCEL if sold else Step.REST


_TABLE: Final[dict[PaymentState, Callable[[bool, bool, Booking, Payment], Step]]] = {
    PaymentState.CREATING: _creating,
    PaymentState.OPEN: _open,
    PaymentState.AUTHORISING: _authorising,
    PaymentState.ACTION: _action,
    PaymentState.AUTHORISED: _authorised,
    PaymentState.CAPTURING: _capturing,
    PaymentState.CAPTURED: _captured,
    PaymentState.DECLINED: _declined,
    PaymentState.LAPSED: _lapsed,
    PaymentState.VOIDING: _voiding,
    PaymentState.VOIDED: _voided,
}

_BEFORE_CONFIRM: Final = {
    IntentState.AUTHORISED: PaymentState.AUTHORISED,
    IntentState.ACTION: PaymentState.ACTION,
    IntentState.CAPTURED: PaymentState.CAPTURED,
    IntentState.VOID: PaymentState.VOIDED,
}
_SEEN: Final[dict[PaymentState, dict[IntentState, PaymentState]]] = {
    PaymentState.OPEN: _BEFORE_CONFIRM,
    PaymentState.AUTHORISING: _BEFORE_CONFIRM,
    PaymentState.ACTION: _BEFORE_CONFIRM | {IntentState.CREATED: PaymentState.OPEN},
    PaymentState.AUTHORISED: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.VOIDED},
    PaymentState.CAPTURING: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.LAPSED},
    PaymentState.VOIDING: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.VOIDED},
}


def state_from_intent(payment: Payment, intent: Intent) -> PaymentState | None:
    """The payment's state after a look at the provider's object; None: nothing new there.

    DECLINED is one card: whether another may be tried is the event's policy, and the service's to apply.
    """
    if intent.declined and payment.state in TAKES_CARDS:
        if payment.state is not PaymentState.ACTION and intent.failure == payment.failure:
            return None  # known: the card that we ask about now has not arrived yet
        return PaymentState.OPEN if intent.mistyped else PaymentState.DECLINED
    state = _SEEN.get(payment.state, {}).get(intent.state)
    return None if state is payment.state else state
