"""Money that cannot be reserved: it comes in one step from the bank's page, or slowly."""

from tests.mutants.mutant import Mutant

TESTS = "tests/boxoffice/payments/test_paid_at_once.py"

MUTANTS = (
    Mutant(
        "slow money that came is not seen",
        "money that came in time sells, and goes back if it came too late",
        "boxoffice/payments/model/payment_saga.py",
        "    PaymentState.PROCESSING: {\n"
        "        IntentState.CREATED: PaymentState.OPEN,\n"
        "        IntentState.AUTHORISED: PaymentState.AUTHORISED,\n"
        "        IntentState.CAPTURED: PaymentState.CAPTURED,\n",
        "    PaymentState.PROCESSING: {\n"
        "        IntentState.CREATED: PaymentState.OPEN,\n"
        "        IntentState.AUTHORISED: PaymentState.AUTHORISED,\n",
        (f"{TESTS}::test_money_that_comes_days_later_sells_and_ten_days_too_late_goes_back",),
    ),
    Mutant(
        "money for a payment that was left stays at the provider",
        "what a booking is not sold for goes back",
        "boxoffice/payments/model/payment_saga.py",
        "        payment.state in ENDED\n        and intent.state is IntentState.CAPTURED\n",
        "        payment.state is PaymentState.DECLINED\n        and intent.state is IntentState.CAPTURED\n",
        (f"{TESTS}::test_money_for_a_payment_the_fan_left_goes_back_although_another_one_bought_the_seats",),
    ),
    Mutant(
        "slow money holds seats a day longer",
        "slow money holds seats for as long as the organiser allows",
        "boxoffice/payments/model/payment_rules.py",
        "    return min(agreed_at_us + rules.pay_days * DAY_US, starts_at_us)",
        "    return agreed_at_us + (rules.pay_days + 1) * DAY_US",
        (f"{TESTS}::test_slow_money_holds_the_seats_for_as_long_as_the_organiser_allows",),
    ),
    Mutant(
        "a method that was taken back still holds seats",
        "slow money holds seats for as long as the organiser allows",
        "boxoffice/payments/model/payment_rules.py",
        "    if not rules.pay_days:\n        return 0\n",
        "    if not rules.pay_days:\n        return agreed_at_us + DAY_US\n",
        (f"{TESTS}::test_a_hold_is_not_made_longer_by_a_method_that_the_organiser_has_taken_back",),
    ),
    Mutant(
        "a capture that was only accepted counts as money",
        "money is what the provider says it took",
        "boxoffice/payments/provider_calls.py",
        "        if intent.state is IntentState.PROCESSING:  # accepted; the next driver reads what became of it\n"
        "            return await self._await_capture(payment)\n",
        "",
        (f"{TESTS}::test_a_capture_whose_result_comes_later_is_called_once_and_awaited",),
    ),
    Mutant(
        "a method that the event does not name is taken",
        "an event chooses how it is paid",
        "boxoffice/payments/model/payment_methods.py",
        "        and (one.id in wanted or not wanted)\n",
        "",
        (f"{TESTS}::test_only_what_the_event_names_and_the_price_allows_is_offered_and_taken",),
    ),
)
