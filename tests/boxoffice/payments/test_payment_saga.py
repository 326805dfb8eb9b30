"""The saga's table (B6, B8): every state of a payment in every situation of its booking has one decided step."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payment_saga import PaymentStep, next_step
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S

NOW_US = 1_000_000_000
# paying: the hold lasts. over: it has ended, and the sweeper may or may not have seen it.
TABLE = """
             paying     over     sold         cancelled  refunded
creating     create     abandon  create       abandon    abandon
open         rest       void     authorise    void       void
authorising  authorise  void     authorise    void       void
action       rest       void     void         void       void
authorised   confirm    void     capture      void       void
capturing    void       void     capture      void       void
captured     confirm    return   rest         return     rest
voiding      void       void     void         void       void
voided       rest       rest     cancel       rest       rest
declined     decline    decline  cancel       rest       rest
lapsed       rest       rest     cancel       rest       rest
"""
SITUATIONS = {
    "paying": [(BookingState.PAYING, NOW_US + 1)],
    "over": [(BookingState.PAYING, NOW_US)],
    "sold": [(BookingState.CONFIRMED, NOW_US + 1), (BookingState.CONFIRMED, NOW_US)],
    "cancelled": [(BookingState.CANCELLED, NOW_US + 1)],
    "refunded": [(BookingState.REFUNDED, NOW_US)],
}


def cells() -> list[tuple[PaymentState, BookingState, int, PaymentStep]]:
    head, *rows = (line.split() for line in TABLE.strip().splitlines())
    return [
        (PaymentState(name), state, end_us, PaymentStep(step))
        for name, *steps in rows
        for situation, step in zip(head, steps, strict=True)
        for state, end_us in SITUATIONS[situation]
    ]


def booking(state: BookingState, end_us: int) -> Booking:
    return Booking("bkg_1", "evt_1", "ada", state, 1, (1,), 5000, "EUR", "", 0, 0, end_us)


def test_the_table_names_every_state() -> None:
    assert {name for name, *_ in cells()} == set(PaymentState)


@pytest.mark.parametrize("tries", [0, len(RETRIES_S), 50], ids=lambda tries: f"{tries} tries")
@pytest.mark.parametrize(("state", "of_booking", "end_us", "step"), cells())
def test_every_cell_is_decided_and_the_number_of_tries_decides_nothing(
    state: PaymentState, of_booking: BookingState, end_us: int, step: PaymentStep, tries: int
) -> None:
    """B8: only the hold's end ends a payment. 50 tries: as a server of version 0.1 may have counted them."""
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state, tries=tries)
    assert next_step(booking(of_booking, end_us), payment, NOW_US) is step


def test_what_the_provider_may_have_is_voided_and_a_declined_object_is_dropped() -> None:
    """The cells that depend on the payment's object."""
    over = booking(BookingState.EXPIRED, NOW_US)
    creating = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR")
    assert next_step(over, creating, NOW_US) is PaymentStep.ABANDON
    assert next_step(over, replace(creating, method="pm_card_visa"), NOW_US) is PaymentStep.VOID
    declined = replace(creating, state=PaymentState.DECLINED, ref="pi_1", retry_at_us=NOW_US)
    assert next_step(over, declined, NOW_US) is PaymentStep.DROP
    refunded, capturing = booking(BookingState.REFUNDED, NOW_US), replace(creating, state=PaymentState.CAPTURING)
    assert next_step(refunded, capturing, NOW_US) is PaymentStep.VOID
    assert next_step(refunded, capturing, NOW_US, kept_minor=1) is PaymentStep.CAPTURE
    sold, lapsed = booking(BookingState.CONFIRMED, NOW_US), replace(creating, state=PaymentState.LAPSED, method="pm_1")
    assert next_step(sold, lapsed, NOW_US) is PaymentStep.REAUTHORISE
    assert next_step(sold, replace(lapsed, attempt=3), NOW_US) is PaymentStep.CANCEL


def test_retries_follow_the_schedule_and_never_count_beyond_it() -> None:
    """B8: after 5, 15, 45, 135 s, then every 135 s. A server of version 0.1 gives up after a fifth."""
    payment, pauses = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR"), []
    for _ in range(7):
        payment = payment.retry_later(NOW_US, answered=False)
        pauses.append((payment.retry_at_us - NOW_US) // 1_000_000)
        assert payment.tries <= len(RETRIES_S)
    assert pauses == [5, 15, 45, 135, 135, 135, 135]


@pytest.mark.parametrize("state", [PaymentState.VOIDED, PaymentState.DECLINED, PaymentState.LAPSED])
def test_a_sold_booking_that_costs_nothing_is_not_cancelled_for_its_payment(state: PaymentState) -> None:
    free = replace(booking(BookingState.CONFIRMED, NOW_US), amount_minor=0)
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state, method="pm_1")
    assert next_step(free, payment, NOW_US) is PaymentStep.REST
    assert next_step(free, replace(payment, state=PaymentState.CREATING), NOW_US) is PaymentStep.VOID
    assert next_step(free, replace(payment, state=PaymentState.CAPTURING), NOW_US) is PaymentStep.CAPTURE
