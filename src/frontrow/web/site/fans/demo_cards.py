"""The demo's card form: made-up numbers that lead to each outcome. With a real provider no card number comes here."""

import re
from typing import Final

from frontrow.web.site.languages import N_

# the well-known test numbers -> the simulated provider's cards
NUMBERS: Final = {
    "4242424242424242": "pm_card_visa",
    "4000000000000002": "pm_card_declined",
    "4000000000009995": "pm_card_insufficient_funds",
    "4000000000000069": "pm_card_expired",
    "4000000000000127": "pm_card_incorrect_cvc",
    "4000002760003184": "pm_card_3ds",
    "4000000000005126": "pm_card_refund_fails",
    "4000000000007726": "pm_card_refund_pends",
    "4000008400001629": "pm_card_3ds_declined",
}
SHOWN: Final = (
    ("4242 4242 4242 4242", N_("pays")),
    ("4000 0000 0000 0002", N_("is declined")),
    ("4000 0027 6000 3184", N_("asks the bank first")),
)


def method_of(text: str) -> str | None:
    """The payment method a number stands for; None when it cannot be a card number."""
    digits = re.sub(r"[ -]", "", text)
    if not re.fullmatch(r"[0-9]{12,19}", digits) or not _luhn(digits):
        return None
    return NUMBERS.get(digits, "pm_card_visa")


def _luhn(digits: str) -> bool:
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + position % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
