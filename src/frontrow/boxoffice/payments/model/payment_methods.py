"""What people can pay with, and which ways of paying fit a price. Pure.

A provider lists its methods (`PaymentProvider.methods`). Their ids are ours and the same for every provider; an adapter
translates them. The family decides how the money comes, and with it which branch of the saga a payment takes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec


class MethodFamily(StrEnum):
    """How the money of a method comes."""

    RESERVE = "reserve"  # it is reserved first and taken after the sale
    AT_ONCE = "at_once"  # all of it comes in one step, usually from the bank's page
    SLOW = "slow"  # it comes days after the fan agreed: direct debit, bank transfer


class PaymentMethod(msgspec.Struct, frozen=True):
    """One way to pay at one provider, and the payments it can be used for."""

    id: str
    family: MethodFamily
    name: str  # the brand, or a plain English word
    currencies: frozenset[str] = frozenset()  # empty: every currency
    least_minor: Mapping[str, int] = {}  # by currency; "" is for every other one
    most_minor: Mapping[str, int] = {}
    countries: frozenset[str] = frozenset()  # where people have it; empty: everywhere, or unknown
    recallable: bool = False  # while its money is awaited, the payment can still be cancelled at the provider

    def takes(self, amount_minor: int, currency: str) -> bool:
        """Whether it can be used for this price."""
        if self.currencies and currency not in self.currencies:
            return False
        least = self.least_minor.get(currency, self.least_minor.get("", 0))
        most = self.most_minor.get(currency, self.most_minor.get("", amount_minor))
        return least <= amount_minor <= most


_EUR: Final = frozenset({"EUR"})
CARD: Final = PaymentMethod("card", MethodFamily.RESERVE, "Card")
APPLE_PAY: Final = PaymentMethod("apple_pay", MethodFamily.RESERVE, "Apple Pay")
GOOGLE_PAY: Final = PaymentMethod("google_pay", MethodFamily.RESERVE, "Google Pay")
LINK: Final = PaymentMethod("link", MethodFamily.RESERVE, "Link")
PAYPAL: Final = PaymentMethod("paypal", MethodFamily.RESERVE, "PayPal")
KLARNA: Final = PaymentMethod("klarna", MethodFamily.RESERVE, "Klarna")
IDEAL: Final = PaymentMethod("ideal", MethodFamily.AT_ONCE, "iDEAL | Wero", _EUR, countries=frozenset({"NL"}))
BANCONTACT: Final = PaymentMethod("bancontact", MethodFamily.AT_ONCE, "Bancontact", _EUR, countries=frozenset({"BE"}))
EPS: Final = PaymentMethod("eps", MethodFamily.AT_ONCE, "EPS", _EUR, countries=frozenset({"AT"}))
PRZELEWY24: Final = PaymentMethod(
    "przelewy24", MethodFamily.AT_ONCE, "Przelewy24", frozenset({"EUR", "PLN"}), countries=frozenset({"PL"})
)
TWINT: Final = PaymentMethod("twint", MethodFamily.AT_ONCE, "TWINT", frozenset({"CHF"}), countries=frozenset({"CH"}))
SWISH: Final = PaymentMethod("swish", MethodFamily.AT_ONCE, "Swish", frozenset({"SEK"}), countries=frozenset({"SE"}))
SEPA_DEBIT: Final = PaymentMethod("sepa_debit", MethodFamily.SLOW, "SEPA Direct Debit", _EUR)
BANK_TRANSFER: Final = PaymentMethod("bank_transfer", MethodFamily.SLOW, "Bank transfer", _EUR, recallable=True)
ALL_METHODS: Final = (
    *(CARD, APPLE_PAY, GOOGLE_PAY, LINK, PAYPAL, KLARNA),
    *(IDEAL, BANCONTACT, EPS, PRZELEWY24, TWINT, SWISH, SEPA_DEBIT, BANK_TRANSFER),
)
# What a provider gets as the method when a page of its own is to ask the fan.
HOSTED: Final = PaymentMethod("hosted", MethodFamily.RESERVE, "Card")


def find_method(methods: Iterable[PaymentMethod], method_id: str) -> PaymentMethod | None:
    """The method with this id, if it is among them."""
    for one in methods:
        if one.id == method_id:
            return one
    return None


def offered_methods(
    methods: Sequence[PaymentMethod],
    amount_minor: int,
    currency: str,
    *,
    wanted: Collection[str] = (),
    slow: bool = False,
) -> tuple[PaymentMethod, ...]:
    """The methods that a fan is offered for this price, in the provider's order.

    `wanted` are those that the event names; none: all. `slow`: whether slow ones are allowed at all.
    """
    return tuple(
        one
        for one in methods
        if one.takes(amount_minor, currency)
        and (one.family is not MethodFamily.SLOW or slow)
        and (one.id in wanted or not wanted)
    )
