"""The checkout saga as two pure functions (B6): what to do next, and what the provider's object means.

CONFIRMED is the pivot. Before it every failure goes backward: void, free the seats. After it everything goes forward:
capture; if the bank dropped the authorisation, authorise once more, else cancel and notify the fan.

Money that cannot be reserved (iDEAL, a bank transfer) is captured before the pivot: it confirms the booking if the hold
still lasts, and goes back if it does not. While it is awaited (`processing`) nothing here can stop it, so the payment
is read until it has come or failed. If the organiser lets it, such a payment makes the hold longer. Any process that
finds a payment, the one that began it or another one after a crash, calls `next_step` and continues from there.

The number of outages does not matter here: while the hold lasts, the same step is retried (B8). Only the end of the
hold ends the payment.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, LATE_MONEY, TAKES_CARDS, Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState
from frontrow.core.clock import US_PER_S

ACTION_CHECK_S: Final = 15  # how often to check whether the fan answered the bank, in case the webhook is lost
OPEN_CHECK_S: Final = 15  # how soon to check whether the fan paid in the browser; then less often, up to
OPEN_CHECK_MAX_S: Final = 120
MONEY_CHECK_S: Final = 15  # how soon to check for awaited money, in case the webhook is lost; then less often, up to
MONEY_CHECK_MAX_S: Final = 6 * 3600
REMIND_BEFORE_S: Final = 2 * 86_400  # before the time to transfer the money is over, at most half of it
LATE_MONEY_S: Final = 30 * 86_400  # awaited for this long after the hold; then the payment is cancelled
TRIED: Final = frozenset({PaymentState.ACTION, PaymentState.PROCESSING})  # a failure that is seen in them is new
_RESERVED: Final = frozenset({PaymentState.AUTHORISED, PaymentState.CAPTURING, PaymentState.CAPTURED})
MAX_ATTEMPTS: Final = 3  # authorisations of one booking after captures that failed for good


class PaymentStep(StrEnum):
    """What to do next about a payment."""

    REST = "rest"  # nothing, until a card, a webhook or the hold's end
    CREATE = "create"
    AUTHORISE = "authorise"
    CONFIRM = "confirm"
    CAPTURE = "capture"
    VOID = "void"
    ABANDON = "abandon"  # the provider has no object: only the ledger changes
    DECLINE = "decline"
    REAUTHORISE = "reauthorise"
    CANCEL = "cancel"
    RETURN = "return"  # captured for a booking that is over: refund it
    DROP = "drop"  # declined for good: void the object, so that no browser can use a card on it
    EXTEND = "extend"  # the money comes slowly: hold the seats for as long as the organiser allows
    REMIND = "remind"  # the time to transfer the money is nearly over: tell the fan once more
    SEND_BACK = "send_back"  # the payment was ended here, and money came after all: refund it at the provider


def next_step(
    booking: Booking,
    payment: Payment,
    now_us: int,
    *,
    kept_minor: int = 0,
    superseded: bool = False,
    pay_until_us: int = 0,
) -> PaymentStep:
    """The one decision of the saga.

    `kept_minor` is what the organiser keeps of a booking that was refunded: its fees. For them the money is taken after
    the refund, too. `superseded`: the booking has a later payment, which alone sells, declines or cancels it. What is
    left of this one is ended at the provider. `pay_until_us`: how long the organiser lets this payment hold the seats
    (0: no longer than any other).
    """
    if payment.state in ENDED and payment.reason == LATE_MONEY and payment.retry_at_us:
        return PaymentStep.SEND_BACK
    if payment.state is PaymentState.PROCESSING and now_us >= booking.hold_expires_at_us + LATE_MONEY_S * US_PER_S:
        return PaymentStep.VOID
    if superseded:
        return (
            _ended(payment)
            if payment.state is PaymentState.DECLINED
            else _TABLE[payment.state](False, False, booking, payment)
        )
    paying = booking.state in HOLD_STATES and now_us < booking.hold_expires_at_us
    sold = booking.state is BookingState.CONFIRMED
    if sold and not booking.amount_minor and payment.state not in _RESERVED:
        sold = False  # nothing is owed for it: it needs no payment, and keeps its seats without one
    if payment.state is PaymentState.PROCESSING and paying and pay_until_us > booking.hold_expires_at_us:
        return PaymentStep.EXTEND
    if paying and 0 < remind_at_us(booking, payment) <= now_us:
        return PaymentStep.REMIND
    if payment.state is PaymentState.CAPTURING and booking.state is BookingState.REFUNDED and kept_minor > 0:
        return PaymentStep.CAPTURE
    return _TABLE[payment.state](paying, sold, booking, payment)


def remind_at_us(booking: Booking, payment: Payment) -> int:
    """When the fan is to be reminded of a transfer; 0: there is none to be made, or the fan was reminded."""
    if payment.state is not PaymentState.PROCESSING or payment.transfer is None or payment.reminded_at_us:
        return 0
    if not booking.is_ordered:  # the organiser gives transfers no time any more
        return 0
    ends_us = booking.hold_expires_at_us
    return ends_us - min(REMIND_BEFORE_S * US_PER_S, (ends_us - payment.agreed_at_us) // 2)


def next_check_us(booking: Booking, payment: Payment, now_us: int) -> int:
    """When to check an idle payment, in case no webhook arrives before: at the latest at the hold's end. 0: never.

    An open payment is checked after 15 s, then whenever its age has doubled, and at least every two minutes. A hold of
    ten minutes costs eight reads. Awaited money is checked likewise, at least every six hours, also after the hold.
    """
    if payment.state is PaymentState.PROCESSING:
        later_us = now_us + money_pause_us(payment, now_us)
        wanted = (booking.hold_expires_at_us, remind_at_us(booking, payment))
        return min([later_us, *(at_us for at_us in wanted if at_us > now_us)])
    if payment.state is PaymentState.ACTION:
        pause_us = ACTION_CHECK_S * US_PER_S
    elif payment.state is PaymentState.OPEN:
        age_us = now_us - payment.created_at_us
        pause_us = min(max(age_us, OPEN_CHECK_S * US_PER_S), OPEN_CHECK_MAX_S * US_PER_S)
    else:
        return 0
    return min(now_us + pause_us, booking.hold_expires_at_us)


def money_pause_us(payment: Payment, now_us: int) -> int:
    """How long to wait before money that was awaited since `agreed_at_us` is looked for again."""
    age_us = now_us - (payment.agreed_at_us or payment.created_at_us)
    return min(max(age_us, MONEY_CHECK_S * US_PER_S), MONEY_CHECK_MAX_S * US_PER_S)


def _creating(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if paying or sold:
        return PaymentStep.CREATE
    return PaymentStep.VOID if payment.may_have_object else PaymentStep.ABANDON


def _open(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if sold:
        return PaymentStep.AUTHORISE
    return PaymentStep.REST if paying else PaymentStep.VOID


def _authorising(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.AUTHORISE if paying or sold else PaymentStep.VOID


def _action(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.REST if paying else PaymentStep.VOID


def _processing(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.REST


def _authorised(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if paying:
        return PaymentStep.CONFIRM
    return PaymentStep.CAPTURE if sold else PaymentStep.VOID


def _capturing(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.CAPTURE if sold else PaymentStep.VOID


def _captured(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if paying:
        return PaymentStep.CONFIRM
    return PaymentStep.REST if sold or booking.state is BookingState.REFUNDED else PaymentStep.RETURN


def _declined(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if sold:
        return PaymentStep.CANCEL  # a second authorisation after a lapsed capture
    if booking.state is BookingState.PAYING:
        return PaymentStep.DECLINE
    return _ended(payment)


def _ended(payment: Payment) -> PaymentStep:
    """A payment that took no card: its object must take none any more."""
    return PaymentStep.DROP if payment.ref and payment.retry_at_us else PaymentStep.REST


def _lapsed(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    if not sold:
        return PaymentStep.REST
    # This server does not see a card that the fan gave to the provider's own form, so it cannot retry it.
    return PaymentStep.REAUTHORISE if payment.method and payment.attempt < MAX_ATTEMPTS else PaymentStep.CANCEL


def _voiding(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.VOID


def _voided(paying: bool, sold: bool, booking: Booking, payment: Payment) -> PaymentStep:
    return PaymentStep.CANCEL if sold else PaymentStep.REST


_TABLE: Final[dict[PaymentState, Callable[[bool, bool, Booking, Payment], PaymentStep]]] = {
    PaymentState.CREATING: _creating,
    PaymentState.OPEN: _open,
    PaymentState.AUTHORISING: _authorising,
    PaymentState.ACTION: _action,
    PaymentState.PROCESSING: _processing,
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
    IntentState.PROCESSING: PaymentState.PROCESSING,
    IntentState.CAPTURED: PaymentState.CAPTURED,
    IntentState.VOID: PaymentState.VOIDED,
}
_STATE_BY_INTENT: Final[dict[PaymentState, dict[IntentState, PaymentState]]] = {
    PaymentState.OPEN: _BEFORE_CONFIRM,
    PaymentState.AUTHORISING: _BEFORE_CONFIRM,
    PaymentState.ACTION: _BEFORE_CONFIRM | {IntentState.CREATED: PaymentState.OPEN},
    PaymentState.PROCESSING: {
        IntentState.CREATED: PaymentState.OPEN,
        IntentState.AUTHORISED: PaymentState.AUTHORISED,
        IntentState.CAPTURED: PaymentState.CAPTURED,
        IntentState.VOID: PaymentState.VOIDED,
    },
    PaymentState.AUTHORISED: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.VOIDED},
    PaymentState.CAPTURING: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.LAPSED},
    PaymentState.VOIDING: {IntentState.CAPTURED: PaymentState.CAPTURED, IntentState.VOID: PaymentState.VOIDED},
}


def is_late_money(payment: Payment, intent: Intent) -> bool:
    """Whether money came for a payment that was ended here, and has not gone back."""
    return (
        payment.state in ENDED
        and intent.state is IntentState.CAPTURED
        and intent.refunded_minor < intent.captured_minor
    )


def state_from_intent(payment: Payment, intent: Intent) -> PaymentState | None:
    """The payment's state by the provider's object; None when there is nothing new.

    DECLINED means one card. Whether another may be tried is the event's policy, which the service applies.
    """
    if intent.declined and payment.state in TAKES_CARDS:
        if payment.state not in TRIED and intent.failure == payment.failure:
            return None  # seen before: the present card has not been tried yet
        return PaymentState.OPEN if intent.mistyped else PaymentState.DECLINED
    state = _STATE_BY_INTENT.get(payment.state, {}).get(intent.state)
    return None if state is payment.state else state
