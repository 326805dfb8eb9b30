"""The saga's table (B6, B8): every state of a payment in every situation of its booking has one decided step."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.card_declines import count_decline, may_try_again
from frontrow.boxoffice.payments.model.payment_saga import (
    LATE_MONEY_S,
    MONEY_CHECK_MAX_S,
    TRIED,
    PaymentStep,
    is_late_money,
    next_check_us,
    next_step,
    remind_at_us,
    state_from_intent,
)
from frontrow.boxoffice.payments.model.payments import ENDED, LATE_MONEY, Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState, ProviderRefund, TransferDetails
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S, retry_pause_s

NOW_US = 1_000_000_000
# paying: the hold lasts. over: it has ended, and the sweeper may or may not have seen it. long_over: for 30 days.
TABLE = """
             paying     over     sold         cancelled  refunded  long_over
creating     create     abandon  create       abandon    abandon  abandon
open         rest       void     authorise    void       void     void
authorising  authorise  void     authorise    void       void     void
action       rest       void     void         void       void     void
processing   rest       rest     rest         rest       rest     void
authorised   confirm    void     capture      void       void     void
capturing    void       void     capture      void       void     void
captured     confirm    return   rest         return     rest     return
voiding      void       void     void         void       void     void
voided       rest       rest     cancel       rest       rest     rest
declined     decline    decline  cancel       rest       rest     rest
lapsed       rest       rest     cancel       rest       rest     rest
"""
SITUATIONS = {
    "paying": [(BookingState.PAYING, NOW_US + 1)],
    "over": [(BookingState.PAYING, NOW_US)],
    "sold": [(BookingState.CONFIRMED, NOW_US + 1), (BookingState.CONFIRMED, NOW_US)],
    "cancelled": [(BookingState.CANCELLED, NOW_US + 1)],
    "refunded": [(BookingState.REFUNDED, NOW_US)],
    "long_over": [(BookingState.EXPIRED, NOW_US - LATE_MONEY_S * 1_000_000)],
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
    for nothing_left in (replace(declined, ref=""), replace(declined, retry_at_us=0)):
        assert next_step(over, nothing_left, NOW_US) is PaymentStep.REST
    refunded, capturing = booking(BookingState.REFUNDED, NOW_US), replace(creating, state=PaymentState.CAPTURING)
    assert next_step(refunded, capturing, NOW_US) is PaymentStep.VOID
    assert next_step(refunded, capturing, NOW_US, kept_minor=1) is PaymentStep.CAPTURE
    sold, lapsed = booking(BookingState.CONFIRMED, NOW_US), replace(creating, state=PaymentState.LAPSED, method="pm_1")
    assert next_step(sold, lapsed, NOW_US) is PaymentStep.REAUTHORISE
    assert next_step(sold, replace(lapsed, attempt=2), NOW_US) is PaymentStep.REAUTHORISE
    assert next_step(sold, replace(lapsed, attempt=3), NOW_US) is PaymentStep.CANCEL
    assert next_step(sold, replace(lapsed, method=""), NOW_US) is PaymentStep.CANCEL, "no card that we could use again"


ONLY_FOR_THE_NEWEST = {PaymentStep.CREATE, PaymentStep.AUTHORISE, PaymentStep.CONFIRM, PaymentStep.CAPTURE}
ONLY_FOR_THE_NEWEST |= {PaymentStep.DECLINE, PaymentStep.CANCEL, PaymentStep.REAUTHORISE}


@pytest.mark.parametrize(("state", "of_booking", "end_us", "step"), cells())
def test_an_earlier_payment_never_decides_what_becomes_of_its_booking(
    state: PaymentState, of_booking: BookingState, end_us: int, step: PaymentStep
) -> None:
    """N4: found by the simulation. A declined card of before cancelled a booking that a later one had paid."""
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state, ref="pi_1", retry_at_us=NOW_US, method="pm")
    taken = next_step(booking(of_booking, end_us), payment, NOW_US, superseded=True)
    assert taken not in ONLY_FOR_THE_NEWEST
    if state is PaymentState.DECLINED:
        assert taken is PaymentStep.DROP, "no browser may use another card on it"
    if state is PaymentState.CAPTURED and of_booking is not BookingState.REFUNDED:
        assert taken is PaymentStep.RETURN, "it was paid twice"


@pytest.mark.parametrize(("state", "of_booking", "end_us", "step"), cells())
def test_slow_money_makes_a_hold_longer_only_while_it_lasts_and_only_if_the_organiser_lets_it(
    state: PaymentState, of_booking: BookingState, end_us: int, step: PaymentStep
) -> None:
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state)
    held = booking(of_booking, end_us)
    longer = next_step(held, payment, NOW_US, pay_until_us=end_us + 1)
    is_awaited = state is PaymentState.PROCESSING and of_booking is BookingState.PAYING and end_us > NOW_US
    assert longer is (PaymentStep.EXTEND if is_awaited else step)
    assert next_step(held, payment, NOW_US, pay_until_us=end_us) is step, "it is held for that long already"


@pytest.mark.parametrize(("state", "of_booking", "end_us", "step"), cells())
def test_only_a_transfer_that_holds_seats_for_days_and_has_not_come_is_reminded_of_once(
    state: PaymentState, of_booking: BookingState, end_us: int, step: PaymentStep
) -> None:
    to = TransferDetails("DE02", "FR-1")
    now_us, end_us = NOW_US + 10**15, end_us + 10**15  # longer after the epoch than anybody waits
    began_us = end_us - 5 * 86_400 * 1_000_000
    payment = Payment("pay_1", "bkg_1", 1, "s", 5000, "EUR", state, transfer=to, agreed_at_us=began_us)
    ordered = replace(booking(of_booking, end_us), payment_begun_at_us=began_us)
    is_due = state is PaymentState.PROCESSING and of_booking is BookingState.PAYING and end_us > now_us
    assert next_step(ordered, payment, now_us) is (PaymentStep.REMIND if is_due else step)
    assert next_step(ordered, replace(payment, reminded_at_us=1), now_us) is step
    assert next_step(ordered, replace(payment, transfer=None), now_us) is step
    assert next_step(replace(ordered, payment_begun_at_us=now_us), payment, now_us) is step, "a usual hold"
    assert next_step(ordered, payment, now_us, superseded=True) is not PaymentStep.REMIND


@pytest.mark.parametrize(("days", "before_s"), [(1, 43_200), (3, 129_600), (5, 172_800), (14, 172_800)])
def test_a_reminder_comes_two_days_before_the_end_or_at_half_of_the_time(days: int, before_s: int) -> None:
    began_us, end_us = 10**15, 10**15 + days * 86_400 * 1_000_000
    to = TransferDetails("DE02", "FR-1")
    payment = Payment("p", "b", 1, "s", 1, "EUR", PaymentState.PROCESSING, transfer=to, agreed_at_us=began_us)
    ordered = replace(booking(BookingState.PAYING, end_us), payment_begun_at_us=began_us)
    at_us = end_us - before_s * 1_000_000
    assert remind_at_us(ordered, payment) == at_us
    assert next_check_us(ordered, payment, at_us - 7) == at_us, "the worker looks then"
    assert next_check_us(ordered, replace(payment, reminded_at_us=at_us), at_us + 7) > at_us + 7


@pytest.mark.parametrize("superseded", [False, True])
@pytest.mark.parametrize(("state", "of_booking", "end_us", "step"), cells())
def test_money_of_a_payment_that_was_ended_goes_back_whatever_became_of_the_booking(
    state: PaymentState, of_booking: BookingState, end_us: int, step: PaymentStep, superseded: bool
) -> None:
    payment = Payment("pay_1", "bkg_1", 1, "s", 5000, "EUR", state, reason=LATE_MONEY, retry_at_us=NOW_US, ref="pi_1")
    taken = next_step(booking(of_booking, end_us), payment, NOW_US, superseded=superseded)
    assert (taken is PaymentStep.SEND_BACK) == (state in ENDED)
    done = replace(payment, retry_at_us=0)
    assert next_step(booking(of_booking, end_us), done, NOW_US, superseded=superseded) is not PaymentStep.SEND_BACK


def test_late_money_is_what_was_captured_of_an_ended_payment_and_has_not_gone_back() -> None:
    taken = Intent("pi_1", IntentState.CAPTURED, 5000, "EUR", captured_minor=5000)
    for state in PaymentState:
        payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state)
        assert is_late_money(payment, taken) == (state in ENDED)
        assert not is_late_money(payment, replace(taken, state=IntentState.VOID))
        assert not is_late_money(payment, replace(taken, refunds=(ProviderRefund("re_1", 5000),)))
        assert is_late_money(payment, replace(taken, refunds=(ProviderRefund("re_1", 4999),))) == (state in ENDED)


@pytest.mark.parametrize(
    ("waited_s", "after_s"), [(0, 15), (15, 15), (60, 60), (3600, 3600), (MONEY_CHECK_MAX_S + 1, MONEY_CHECK_MAX_S)]
)
def test_awaited_money_is_looked_for_whenever_it_was_awaited_twice_as_long(waited_s: int, after_s: int) -> None:
    now_us = 10**15
    payment = Payment("pay_1", "bkg_1", 1, "s", 1, "EUR", PaymentState.PROCESSING)
    payment = replace(payment, agreed_at_us=now_us - waited_s * 1_000_000)
    held = booking(BookingState.PAYING, now_us + 10**12)
    assert next_check_us(held, payment, now_us) == now_us + after_s * 1_000_000
    ending = replace(held, hold_expires_at_us=now_us + 7)
    assert next_check_us(ending, payment, now_us) == now_us + 7, "the seats are freed in time"
    over = replace(held, hold_expires_at_us=now_us)
    assert next_check_us(over, payment, now_us) == now_us + after_s * 1_000_000, "late money is found, too"


def test_retries_follow_the_schedule_and_never_count_beyond_it() -> None:
    """B8: after 5, 15, 45, 135 s, then every 135 s. A server of version 0.1 gives up after a fifth."""
    payment, pauses = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR"), []
    for _ in range(7):
        payment = payment.retry_later(NOW_US, answered=False)
        pauses.append((payment.retry_at_us - NOW_US) // 1_000_000)
        assert payment.tries <= len(RETRIES_S)
    assert pauses == [5, 15, 45, 135, 135, 135, 135]
    assert [retry_pause_s(tries) for tries in range(6)] == [5, 15, 45, 135, 135, 135]


@pytest.mark.parametrize("state", [PaymentState.VOIDED, PaymentState.DECLINED, PaymentState.LAPSED])
def test_a_sold_booking_that_costs_nothing_is_not_cancelled_for_its_payment(state: PaymentState) -> None:
    free = replace(booking(BookingState.CONFIRMED, NOW_US), amount_minor=0)
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state, method="pm_1")
    assert next_step(free, payment, NOW_US) is PaymentStep.REST
    assert next_step(free, replace(payment, state=PaymentState.CREATING), NOW_US) is PaymentStep.VOID
    for reserved in (PaymentState.CAPTURING, PaymentState.AUTHORISED):
        assert next_step(free, replace(payment, state=reserved), NOW_US) is PaymentStep.CAPTURE
    assert next_step(replace(free, amount_minor=1), payment, NOW_US) is not PaymentStep.REST


def test_the_organisers_fee_of_a_refunded_booking_is_captured_only_for_a_payment_on_its_way() -> None:
    refunded = booking(BookingState.REFUNDED, NOW_US)
    for state in PaymentState:
        payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state)
        kept = next_step(refunded, payment, NOW_US, kept_minor=700)
        assert (kept is PaymentStep.CAPTURE) == (state is PaymentState.CAPTURING), state
    capturing = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", PaymentState.CAPTURING)
    cancelled = booking(BookingState.CANCELLED, NOW_US)
    assert next_step(cancelled, capturing, NOW_US, kept_minor=700) is PaymentStep.VOID


@pytest.mark.parametrize(
    ("age_s", "after_s"), [(0, 15), (14, 15), (16, 16), (60, 60), (119, 119), (120, 120), (500, 120)]
)
def test_an_open_payment_is_looked_at_whenever_its_age_has_doubled(age_s: int, after_s: int) -> None:
    now_us, end_us = 10**12, 10**12 + 3_600_000_000
    payment = Payment("pay_1", "bkg_1", 1, "s", 1, "EUR", PaymentState.OPEN, created_at_us=now_us - age_s * 1_000_000)
    held = booking(BookingState.PAYING, end_us)
    assert next_check_us(held, payment, now_us) == now_us + after_s * 1_000_000
    assert next_check_us(replace(held, hold_expires_at_us=now_us + 7), payment, now_us) == now_us + 7


def test_a_payment_that_waits_for_the_bank_is_looked_at_after_15_seconds_and_others_never() -> None:
    held = booking(BookingState.PAYING, NOW_US + 3_600_000_000)
    for state in PaymentState:
        payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state, created_at_us=NOW_US)
        waits = state in (PaymentState.ACTION, PaymentState.OPEN, PaymentState.PROCESSING)
        assert next_check_us(held, payment, NOW_US) == (NOW_US + 15_000_000 if waits else 0)


# What the provider's object makes of a payment. A dash: nothing new.
INTENTS = """
             created  processing  authorised  action  captured  void
creating     -        -           -           -       -         -
open         -        processing  authorised  action  captured  voided
authorising  -        processing  authorised  action  captured  voided
action       open     processing  authorised  -       captured  voided
processing   open     -           authorised  -       captured  voided
authorised   -        -           -           -       captured  voided
capturing    -        -           -           -       captured  lapsed
captured     -        -           -           -       -         -
voiding      -        -           -           -       captured  voided
voided       -        -           -           -       -         -
declined     -        -           -           -       -         -
lapsed       -        -           -           -       -         -
"""


def test_every_state_of_the_providers_object_has_one_meaning_in_every_state_of_a_payment() -> None:
    head, *rows = (line.split() for line in INTENTS.strip().splitlines())
    assert {name for name, *_ in rows} == set(PaymentState)
    for name, *meant in rows:
        payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", PaymentState(name))
        for intent, becomes in zip(head, meant, strict=True):
            found = state_from_intent(payment, Intent("pi_1", IntentState(intent), 5000, "EUR"))
            assert found == (None if becomes == "-" else PaymentState(becomes)), (name, intent)


def test_a_declined_card_is_told_once_and_a_typing_error_leaves_the_payment_open() -> None:
    refused = Intent("pi_1", IntentState.CREATED, 5000, "EUR", error="card_declined", failure="ch_1")
    mistyped = replace(refused, error="incorrect_cvc", failure="ch_2")
    for state in (PaymentState.OPEN, PaymentState.AUTHORISING, PaymentState.ACTION, PaymentState.PROCESSING):
        payment = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", state)
        assert state_from_intent(payment, refused) is PaymentState.DECLINED
        assert state_from_intent(payment, mistyped) is PaymentState.OPEN
        seen = state_from_intent(replace(payment, failure="ch_1"), refused)
        assert seen is (PaymentState.DECLINED if state in TRIED else None), state
    sold = Payment("pay_1", "bkg_1", 1, "simulated", 5000, "EUR", PaymentState.CAPTURING)
    assert state_from_intent(sold, refused) is None


def test_typing_errors_use_up_no_try() -> None:
    assert count_decline(1, "card_declined") == 2
    assert count_decline(1, "incorrect_cvc") == 1
    assert [may_try_again(declines, "card_declined", 3) for declines in (0, 2, 3, 4)] == [True, True, False, False]
    assert may_try_again(3, "incorrect_cvc", 3)
    assert may_try_again(0, "card_declined", 1)
    assert not may_try_again(0, "incorrect_cvc", 0), "the hold is over"
