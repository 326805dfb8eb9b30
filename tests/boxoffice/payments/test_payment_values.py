"""Ways of paying, the rules of an event, accounts and disputes: values only."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.payments.model.disputes import (
    BookingDisputed,
    DisputeState,
    PaymentDispute,
    check_undisputed,
    disputed_minor,
    is_disputed,
    states_before,
    sum_by_state,
)
from frontrow.boxoffice.payments.model.payment_accounts import (
    MAX_ACCOUNT_CHARS,
    MAX_FEE_BASIS_POINTS,
    PaymentAccount,
    SellerCannotBePaid,
    platform_fee_minor,
)
from frontrow.boxoffice.payments.model.payment_methods import (
    CARD,
    IDEAL,
    PRZELEWY24,
    SEPA_DEBIT,
    MethodFamily,
    PaymentMethod,
    find_method,
    offered_methods,
)
from frontrow.boxoffice.payments.model.payment_rules import (
    DAY_US,
    MAX_DAYS_BEFORE,
    MAX_PAY_DAYS,
    PaymentRules,
    check_payment_rules,
    offers_slow,
    pay_until_us,
)
from frontrow.core.errors import InvalidInput

# ways of paying


def test_a_method_takes_the_prices_between_its_bounds_in_its_currencies() -> None:
    bounded = PaymentMethod("m", MethodFamily.AT_ONCE, "M", least_minor={"EUR": 100, "": 50}, most_minor={"EUR": 200})
    assert [bounded.takes(amount, "EUR") for amount in (99, 100, 200, 201)] == [False, True, True, False]
    assert [bounded.takes(amount, "PLN") for amount in (49, 50, 10**9)] == [False, True, True]
    usual = replace(bounded, most_minor={"": 70})
    assert [usual.takes(amount, "PLN") for amount in (70, 71)] == [True, False]
    assert CARD.takes(0, "EUR")
    assert not IDEAL.takes(100, "PLN")
    assert PRZELEWY24.takes(100, "PLN")


def test_a_fan_is_offered_what_the_event_names_and_the_price_allows_in_the_providers_order() -> None:
    methods = (CARD, IDEAL, SEPA_DEBIT, PRZELEWY24)
    assert offered_methods(methods, 100, "EUR") == (CARD, IDEAL, PRZELEWY24)
    assert offered_methods(methods, 100, "EUR", slow=True) == methods
    assert offered_methods(methods, 100, "PLN", slow=True) == (CARD, PRZELEWY24)
    assert offered_methods(methods, 100, "EUR", wanted=("sepa_debit", "ideal")) == (IDEAL,)
    assert offered_methods(methods, 100, "EUR", wanted=("sepa_debit", "ideal"), slow=True) == (IDEAL, SEPA_DEBIT)
    assert find_method(methods, "ideal") is IDEAL
    assert find_method(methods, "swish") is None


# the rules of an event


def param_of(rules: PaymentRules) -> str:
    with pytest.raises(InvalidInput) as refused:
        check_payment_rules(rules)
    return str(refused.value.param)


def test_rules_have_bounds() -> None:
    for fitting in (
        PaymentRules(),
        PaymentRules(("card", "ideal")),
        PaymentRules(pay_days=MAX_PAY_DAYS, days_before_show=MAX_PAY_DAYS),
        PaymentRules(pay_days=1, days_before_show=MAX_DAYS_BEFORE),
        PaymentRules(days_before_show=0),
    ):
        check_payment_rules(fitting)
    assert param_of(PaymentRules(("card", "coins"))) == "payments.methods"
    assert param_of(PaymentRules(("card", "card"))) == "payments.methods"
    assert param_of(PaymentRules(pay_days=-1)) == "payments.pay_days"
    assert param_of(PaymentRules(pay_days=MAX_PAY_DAYS + 1, days_before_show=20)) == "payments.pay_days"
    assert param_of(PaymentRules(pay_days=5, days_before_show=4)) == "payments.days_before_show"
    assert param_of(PaymentRules(days_before_show=MAX_DAYS_BEFORE + 1)) == "payments.days_before_show"


def test_slow_methods_are_offered_until_so_many_days_before_the_show() -> None:
    rules, show_us = PaymentRules(pay_days=3, days_before_show=10), 100 * DAY_US
    ends_us = 90 * DAY_US
    assert offers_slow(rules, show_us, ends_us - 1, has_queue=False)
    assert not offers_slow(rules, show_us, ends_us, has_queue=False)
    assert not offers_slow(rules, show_us, 0, has_queue=True)
    with_queue = PaymentRules(pay_days=3, days_before_show=10, slow_with_queue=True)
    assert offers_slow(with_queue, show_us, 0, has_queue=True)
    assert offers_slow(with_queue, show_us, 0, has_queue=False)
    assert not offers_slow(PaymentRules(), show_us, 0, has_queue=False)
    assert DAY_US == 24 * 3_600 * 1_000_000


def test_slow_money_holds_seats_for_its_days_and_never_beyond_the_show() -> None:
    rules = PaymentRules(pay_days=3)
    assert pay_until_us(rules, 100 * DAY_US, 7) == 3 * DAY_US + 7
    assert pay_until_us(rules, 2 * DAY_US, 7) == 2 * DAY_US
    assert pay_until_us(PaymentRules(), 100 * DAY_US, 7) == 0


# accounts


def test_a_part_of_a_cent_of_the_fee_is_the_organisers() -> None:
    assert [platform_fee_minor(amount, 250) for amount in (0, 39, 40, 79, 10_000)] == [0, 0, 1, 1, 250]
    assert platform_fee_minor(10_000, 0) == 0


def test_an_account_has_a_name_without_spaces_and_a_fee_within_bounds() -> None:
    account = PaymentAccount("org_1", "adyen", "HallECOM")
    for fitting in (
        account,
        replace(account, fee_basis_points=MAX_FEE_BASIS_POINTS),
        replace(account, account="x" * MAX_ACCOUNT_CHARS),
        replace(account, account="x"),
    ):
        fitting.check()
    for fee in (-1, MAX_FEE_BASIS_POINTS + 1):
        with pytest.raises(InvalidInput) as refused:
            replace(account, fee_basis_points=fee).check()
        assert refused.value.param == "fee"
    for name in ("", "x" * (MAX_ACCOUNT_CHARS + 1), "Hall ECOM", "Hallé"):
        with pytest.raises(InvalidInput) as refused:
            replace(account, account=name).check()
        assert refused.value.param == "account"


def test_who_cannot_be_paid_is_named() -> None:
    error = SellerCannotBePaid("org_1")
    assert (error.code, error.about) == ("seller_cannot_be_paid", {"organiser": "org_1"})
    assert error.message == (
        "this organiser cannot take payments at the moment; nothing was charged, and the seats stay held until the "
        "hold ends"
    )


# disputes


def dispute(state: DisputeState, amount_minor: int = 10, ref: str = "pi_1", currency: str = "EUR") -> PaymentDispute:
    return PaymentDispute("stripe", f"dp_{state}", ref, "pay_1", "bkg_1", "evt_1", amount_minor, currency, state)


def test_money_is_disputed_while_it_is_with_the_bank_for_now_or_for_good() -> None:
    against = {state for state in DisputeState if is_disputed([dispute(state)])}
    assert against == {DisputeState.OPEN, DisputeState.LOST}
    assert not is_disputed([])
    assert is_disputed([dispute(DisputeState.WON), dispute(DisputeState.LOST)])
    several = [dispute(state, 2**number) for number, state in enumerate(DisputeState)]
    with_bank = sum(one.amount_minor for one in several if one.state in against)
    assert disputed_minor([*several, dispute(DisputeState.LOST, 1_000, "pi_2")], "pi_1") == with_bank
    assert disputed_minor(several, "pi_3") == 0


def test_why_nothing_is_refunded_is_said() -> None:
    check_undisputed("bkg_1", [])
    check_undisputed("bkg_1", [dispute(DisputeState.WON), dispute(DisputeState.CLOSED)])
    for states, says in (
        ((DisputeState.OPEN, DisputeState.LOST), "wait until that is decided"),
        ((DisputeState.WON, DisputeState.LOST), "nothing to refund"),
    ):
        with pytest.raises(BookingDisputed, match=says) as refused:
            check_undisputed("bkg_1", [dispute(state) for state in states])
        assert refused.value.about == {"booking": "bkg_1"}


def test_from_which_states_a_dispute_comes_to_another() -> None:
    assert states_before(DisputeState.OPEN) == []
    assert states_before(DisputeState.WON) == [DisputeState.OPEN, DisputeState.CLOSED]
    assert states_before(DisputeState.CLOSED) == [DisputeState.OPEN]
    assert states_before(DisputeState.LOST) == [DisputeState.OPEN, DisputeState.CLOSED, DisputeState.WON]


def test_sums_are_by_currency() -> None:
    found = [
        dispute(DisputeState.LOST, 5),
        dispute(DisputeState.LOST, 7),
        dispute(DisputeState.OPEN, 100),
        dispute(DisputeState.LOST, 3, currency="CHF"),
    ]
    assert sum_by_state(found, DisputeState.LOST) == {"EUR": 12, "CHF": 3}
    assert sum_by_state(found, DisputeState.WON) == {}
