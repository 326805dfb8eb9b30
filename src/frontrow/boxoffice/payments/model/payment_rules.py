"""An event's rules about paying: which methods fans may choose, and how long slow money may hold seats. Pure.

Slow methods (direct debit, bank transfer) are offered only if the organiser gives them days. They hold the seats for
that long, and are offered until so many days before the show that the money is there, or the seats are free, in time.
"""

from dataclasses import dataclass
from typing import Final

from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

DAY_US: Final = 86_400 * US_PER_S
MAX_PAY_DAYS: Final = 14
USUAL_DAYS_BEFORE: Final = 14
MAX_DAYS_BEFORE: Final = 365
METHOD_IDS: Final = tuple(method.id for method in ALL_METHODS)


@dataclass(frozen=True, slots=True)
class PaymentRules:
    """How fans may pay for one event."""

    methods: tuple[str, ...] = ()  # ids of methods; empty: every method of the provider
    pay_days: int = 0  # how long slow money may hold seats; 0: slow methods are not offered
    days_before_show: int = USUAL_DAYS_BEFORE  # slow methods are offered until then
    slow_with_queue: bool = False  # slow methods are offered while people wait in the waiting room, too


ANY_METHOD: Final = PaymentRules()


def check_payment_rules(rules: PaymentRules) -> None:
    """Raise `InvalidInput` for rules that cannot be followed."""
    unknown = sorted(set(rules.methods) - set(METHOD_IDS))
    if unknown:
        raise InvalidInput(
            f"there is no payment method {unknown[0]!r}; there are {', '.join(METHOD_IDS)}", param="payments.methods"
        )
    if len(set(rules.methods)) != len(rules.methods):
        raise InvalidInput("name each payment method once", param="payments.methods")
    if not 0 <= rules.pay_days <= MAX_PAY_DAYS:
        raise InvalidInput(f"pay_days must be 0 to {MAX_PAY_DAYS}", param="payments.pay_days")
    if not rules.pay_days <= rules.days_before_show <= MAX_DAYS_BEFORE:
        raise InvalidInput(
            f"days_before_show must be {rules.pay_days} (pay_days) to {MAX_DAYS_BEFORE}, so that the money comes "
            "before the show",
            param="payments.days_before_show",
        )


def offers_slow(rules: PaymentRules, starts_at_us: int, now_us: int, *, has_queue: bool) -> bool:
    """Whether slow methods may be offered at `now_us`."""
    if not rules.pay_days or (has_queue and not rules.slow_with_queue):
        return False
    return now_us < starts_at_us - rules.days_before_show * DAY_US


def pay_until_us(rules: PaymentRules, starts_at_us: int, agreed_at_us: int) -> int:
    """Until when slow money holds the seats, once its fan agreed; 0 if slow methods were taken back meanwhile."""
    if not rules.pay_days:
        return 0
    return min(agreed_at_us + rules.pay_days * DAY_US, starts_at_us)
