"""Phone numbers for SMS: their form, and the country whose operators they belong to. Pure.

A country is a calling code. North America shares +1: the islands of the Caribbean and the Pacific, whose numbers cost
many times more, are countries of their own here, so that a cap or a list of countries can tell them apart.
"""

import re
from collections.abc import Sequence
from typing import Final

from frontrow.core.errors import InvalidInput, Refused

PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_SEPARATORS: Final = re.compile(r"[ ()/.-]")
_ONE_DIGIT: Final = frozenset("17")
_SPANS: Final = ((20, 20), (27, 27), (30, 34), (36, 36), (39, 41), (43, 49), (51, 58), (60, 66), (81, 82), (84, 84))
_LAST_SPANS: Final = ((86, 86), (90, 95), (98, 98))
_TWO_DIGITS: Final = frozenset(str(code) for first, last in (*_SPANS, *_LAST_SPANS) for code in range(first, last + 1))
_CARIBBEAN: Final = (242, 246, 264, 268, 284, 340, 345, 441, 473, 649, 658, 664, 721, 758, 767, 784, 787, 809, 829, 849)
# area codes of +1 that are neither in the United States nor in Canada
_ISLANDS: Final = frozenset(map(str, (*_CARIBBEAN, 868, 869, 876, 939, 670, 671, 684)))


class CountryNotServed(Refused):
    """SMS are not sent to this country."""

    code = "country_not_served"


def read_phone(text: str) -> str:
    """The number that somebody typed, as +436641234567. Empty stays empty; anything else is `InvalidInput`."""
    phone = _SEPARATORS.sub("", text)
    if phone and not PHONE.fullmatch(phone):
        raise InvalidInput("a phone number is like +436641234567", param="phone")
    return phone


def country_of(phone: str) -> str:
    """The calling code of a number, as +43; for the islands of +1 with their area code, as +1876."""
    digits = phone.removeprefix("+")
    if digits[:1] in _ONE_DIGIT:
        return "+1" + digits[1:4] if digits[:1] == "1" and digits[1:4] in _ISLANDS else "+" + digits[:1]
    return "+" + digits[: 2 if digits[:2] in _TWO_DIGITS else 3]


def check_country(phone: str, served: Sequence[str]) -> None:
    """Raise `CountryNotServed` unless the number's country is in the list. An empty list has every country."""
    country = country_of(phone)
    if served and country not in served:
        raise CountryNotServed(f"text messages are not sent to numbers that begin with {country}", country=country)
