"""The demo's card form: made-up numbers that lead to each outcome. With a real provider no card number comes here."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.web.site.languages import N_

NEEDED: Final = N_("Please fill this in.")
BAD_NUMBER: Final = N_("This is not a card number.")
BAD_EXPIRY: Final = N_("This is not an expiry date. Enter the month and the year, like 12/30.")
EXPIRED: Final = N_("This card has expired.")
BAD_CODE: Final = N_("This is not a security code. It has 3 digits, or 4 on American Express.")
MAX_YEARS_AHEAD: Final = 50
# `static/js/card-form.js` has the same rules
_EXPIRY: Final = re.compile(r"(0[1-9]|1[0-2]|[1-9](?=[^0-9]))\s*[/.-]?\s*(?:20)?([0-9]{2})")
_AMERICAN_EXPRESS: Final = re.compile(r"3[47]")

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
    ("4242 4242 4242 4242", N_("the payment succeeds")),
    ("4000 0000 0000 0002", N_("the bank declines")),
    ("4000 0027 6000 3184", N_("the bank asks you to confirm")),
)


@dataclass(frozen=True, slots=True)
class TypedCard:
    """What was typed into the form."""

    number: str = ""
    expiry: str = ""
    code: str = ""

    def errors(self, now_us: int) -> dict[str, str]:
        """What is wrong, by field of the form."""
        found = {
            "card": "" if method_of(self.number) else BAD_NUMBER,
            "expiry": _error_of_expiry(self.expiry.strip(), now_us),
            "cvc": "" if self._has_code() else BAD_CODE,
        }
        typed = {"card": self.number, "expiry": self.expiry, "cvc": self.code}
        return {field: error if typed[field].strip() else NEEDED for field, error in found.items() if error}

    def _has_code(self) -> bool:
        length = 4 if _AMERICAN_EXPRESS.match(_digits_of(self.number)) else 3
        return re.fullmatch(f"[0-9]{{{length}}}", self.code.strip()) is not None


def _error_of_expiry(text: str, now_us: int) -> str:
    """A card is valid until its month has ended everywhere: it ends last 12 hours west of Greenwich."""
    found = _EXPIRY.fullmatch(text)
    now = datetime.fromtimestamp(now_us // US_PER_S, UTC) - timedelta(hours=12)
    if found is None or (year := 2000 + int(found[2])) > now.year + MAX_YEARS_AHEAD:
        return BAD_EXPIRY
    return EXPIRED if (year, int(found[1])) < (now.year, now.month) else ""


def _digits_of(number: str) -> str:
    return re.sub(r"[ -]", "", number)


def method_of(text: str) -> str | None:
    """The payment method a number stands for; None when it cannot be a card number."""
    digits = _digits_of(text)
    if not re.fullmatch(r"[0-9]{12,19}", digits) or not _luhn(digits):
        return None
    return NUMBERS.get(digits, "pm_card_visa")


def _luhn(digits: str) -> bool:
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + position % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
