"""The methods that Stripe has, with its limits, and how its API names them. Pure.

Limits are those of Stripe's public pages on each method. An account may have others: Stripe's refusal is then told.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from frontrow.boxoffice.payments.model.payment_methods import (
    APPLE_PAY,
    BANCONTACT,
    BANK_TRANSFER,
    CARD,
    EPS,
    GOOGLE_PAY,
    IDEAL,
    KLARNA,
    LINK,
    PAYPAL,
    PRZELEWY24,
    SEPA_DEBIT,
    SWISH,
    TWINT,
    MethodFamily,
)

# Stripe's least charge, in minor units
LEAST: Final = {"EUR": 50, "USD": 50, "CHF": 50, "GBP": 30, "PLN": 200, "SEK": 300, "NOK": 300, "DKK": 250, "CZK": 1500}
_KLARNA_CURRENCIES: Final = frozenset(
    {"EUR", "GBP", "USD", "SEK", "NOK", "DKK", "CHF", "PLN", "CZK", "AUD", "NZD", "CAD"}
)
_PAYPAL_CURRENCIES: Final = frozenset(
    {"EUR", "GBP", "USD", "CHF", "CZK", "DKK", "NOK", "PLN", "SEK", "AUD", "CAD", "HKD", "NZD", "SGD"}
)
METHODS: Final = tuple(
    replace(method, least_minor=LEAST)
    for method in (
        CARD,
        APPLE_PAY,
        GOOGLE_PAY,
        LINK,
        replace(PAYPAL, currencies=_PAYPAL_CURRENCIES),
        replace(KLARNA, currencies=_KLARNA_CURRENCIES),
        IDEAL,
        BANCONTACT,
        EPS,
        PRZELEWY24,
        replace(TWINT, most_minor={"CHF": 500_000}),
        replace(SWISH, most_minor={"SEK": 15_000_000}),
        replace(SEPA_DEBIT, most_minor={"EUR": 1_000_000}),
        BANK_TRANSFER,
    )
)
_TYPES: Final = {"apple_pay": "card", "google_pay": "card", "przelewy24": "p24", "bank_transfer": "customer_balance"}
_RESERVED: Final = frozenset(_TYPES.get(one.id, one.id) for one in METHODS if one.family is MethodFamily.RESERVE)
DOMAIN_METHODS: Final = ("apple_pay", "google_pay", "link", "paypal")


def types_of(offered: Sequence[str]) -> list[str]:
    """Stripe's `payment_method_types` for our ids. The wallets are cards to it."""
    return list(dict.fromkeys(_TYPES.get(one, one) for one in offered))


def options_of(types: Sequence[str]) -> dict[str, Any]:
    """Stripe's `payment_method_options`: what can be reserved is captured later, and a transfer comes to an IBAN."""
    options: dict[str, Any] = {kind: {"capture_method": "manual"} for kind in types if kind in _RESERVED}
    if "customer_balance" in types:
        transfer = {"type": "eu_bank_transfer", "eu_bank_transfer": {"country": "DE"}}
        options["customer_balance"] = {"funding_type": "bank_transfer", "bank_transfer": transfer}
    return options
