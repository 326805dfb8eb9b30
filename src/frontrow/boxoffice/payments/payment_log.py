"""Logs what one step of a payment decided: the difference between booking and payment before and after it.

Every step passes here once (`PaymentDriver.drive`), whoever took it: a request, a webhook, the worker, the reconciler.
"""

from typing import Final

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, Payment, PaymentState
from frontrow.core.clock import US_PER_S
from frontrow.shared.log_lines import (
    BOOKING_ENDED,
    BOOKING_SOLD,
    CARD_DECLINED,
    PAYMENT_AUTHORISED,
    PAYMENT_CAPTURED,
    PAYMENT_DECLINED,
    PAYMENT_GIVEN_UP,
    PAYMENT_LAPSED,
    PAYMENT_RETRIED,
    PAYMENT_VOIDED,
)

PAYMENT_JOB: Final = "payment"  # the job of every payment that a worker continues
OVER: Final = frozenset({BookingState.CANCELLED, BookingState.EXPIRED})


def log_step(was_booking: Booking, was: Payment, booking: Booking, payment: Payment) -> None:
    """Write a line for each thing that this step decided."""
    if payment.id == was.id and payment.state is not was.state:
        _log_payment(was, booking, payment)
    elif payment.id == was.id and payment.declines > was.declines:
        _log_declined(booking, payment)
    if booking.state is not was_booking.state:
        _log_booking(booking, payment)


def _log_payment(was: Payment, booking: Booking, payment: Payment) -> None:
    ids, money = _ids(booking, payment), _money(payment)
    match payment.state:
        case PaymentState.AUTHORISED:
            PAYMENT_AUTHORISED(**ids, **money)
        case PaymentState.CAPTURING if was.state is not PaymentState.AUTHORISED:  # both were saved at once
            PAYMENT_AUTHORISED(**ids, **money)
        case PaymentState.CAPTURED:
            PAYMENT_CAPTURED(**ids, **money)
        case PaymentState.OPEN | PaymentState.DECLINED if payment.declines > was.declines or payment.reason:
            _log_declined(booking, payment)
        case PaymentState.VOIDING:
            PAYMENT_GIVEN_UP(**ids, payment_state=was.state.value, reason=payment.reason)
        case PaymentState.VOIDED:
            PAYMENT_VOIDED(**ids, reason=payment.reason)
        case PaymentState.LAPSED:
            PAYMENT_LAPSED(**ids, reason=payment.reason)


def _log_declined(booking: Booking, payment: Payment) -> None:
    line = PAYMENT_DECLINED if payment.state in ENDED else CARD_DECLINED
    line(**_ids(booking, payment), reason=payment.reason, declines=payment.declines)


def _log_booking(booking: Booking, payment: Payment) -> None:
    if booking.state is BookingState.CONFIRMED:
        log_sale(booking, payment)
    elif booking.state in OVER:
        state, seats = booking.state.value, len(booking.seats)
        BOOKING_ENDED(**_ids(booking, payment), booking_state=state, seats=seats, reason=payment.reason)


def log_sale(booking: Booking, payment: Payment | None = None) -> None:
    """This booking was sold; without a payment it cost nothing."""
    BOOKING_SOLD(
        booking_id=booking.id,
        payment_id=payment.id if payment else "",
        event_id=booking.event_id,
        seats=len(booking.seats),
        amount_minor=booking.amount_minor,
        currency=booking.currency,
    )


def log_retry(booking: Booking, payment: Payment, now_us: int) -> None:
    """The provider did not answer, and this is when the payment is tried again."""
    retry_in_s = max(0, payment.retry_at_us - now_us) // US_PER_S
    state = payment.state.value
    PAYMENT_RETRIED(**_ids(booking, payment), payment_state=state, tries=payment.tries, retry_in_s=retry_in_s)


def _ids(booking: Booking, payment: Payment) -> dict[str, object]:
    return {"booking_id": booking.id, "payment_id": payment.id, "event_id": booking.event_id}


def _money(payment: Payment) -> dict[str, object]:
    return {"amount_minor": payment.amount_minor, "currency": payment.currency}


def about_payment(payment: Payment) -> dict[str, object]:
    """What a log line says of a payment."""
    return {"payment_id": payment.id, "booking_id": payment.booking_id, "payment_state": payment.state.value}
