"""Money: a whole number of minor units (cents, yen) and a currency. No floats and no silent mixing of currencies.

Splitting never loses a cent: the parts always add up to the whole and differ by at most one minor unit from the exact
share (earlier parts get the larger pieces). Percentages are basis points (1/100 of a percent), rounded half up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontrow.core.errors import InvalidInput

# Currencies whose amounts do not have two digits after the point (ISO 4217).
DIGITS = {"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0}
DIGITS |= {"UGX": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0}
DIGITS |= {"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3}
BASIS_POINTS = 10_000


@dataclass(frozen=True, slots=True)
class Money:
    """`minor` units of `currency`, e.g. Money(1250, "EUR") is 12.50 euros."""

    minor: int
    currency: str

    def __post_init__(self) -> None:
        if type(self.minor) is not int:
            raise InvalidInput(f"an amount is a whole number of minor units, not {self.minor!r}", param="minor")
        if len(self.currency) != 3 or not (self.currency.isascii() and self.currency.isupper()):
            raise InvalidInput(f"{self.currency!r} is not a currency code like EUR", param="currency")

    def __add__(self, other: "Money") -> "Money":
        return Money(self.minor + self._same(other), self.currency)

    def __sub__(self, other: "Money") -> "Money":
        return Money(self.minor - self._same(other), self.currency)

    def __mul__(self, times: int) -> "Money":
        return Money(self.minor * times, self.currency)

    def __neg__(self) -> "Money":
        return Money(-self.minor, self.currency)

    def __lt__(self, other: "Money") -> bool:
        return self.minor < self._same(other)

    def __le__(self, other: "Money") -> bool:
        return self.minor <= self._same(other)

    def __bool__(self) -> bool:
        return self.minor != 0

    def __str__(self) -> str:
        digits = DIGITS.get(self.currency, 2)
        whole, part = divmod(abs(self.minor), 10**digits)
        sign = "-" if self.minor < 0 else ""
        return f"{sign}{whole}.{part:0{digits}d} {self.currency}" if digits else f"{sign}{whole} {self.currency}"

    def _same(self, other: "Money") -> int:
        if other.currency != self.currency:
            raise InvalidInput(f"{self} and {other} are of different currencies; convert one first", param="currency")
        return other.minor

    def percent(self, basis_points: int) -> "Money":
        """The given share of this amount, rounded half up (away from zero)."""
        sign = -1 if self.minor * basis_points < 0 else 1
        exact = abs(self.minor * basis_points)
        return Money(sign * ((exact + BASIS_POINTS // 2) // BASIS_POINTS), self.currency)

    @classmethod
    def zero(cls, currency: str) -> "Money":
        return cls(0, currency)

    @classmethod
    def total(cls, amounts: "Sequence[Money]", currency: str) -> "Money":
        """The sum of `amounts`, all in `currency`. Zero if there are none."""
        result = cls.zero(currency)
        for amount in amounts:
            result = result + amount
        return result


def share_out(amount_minor: int, weights: Sequence[int]) -> list[int]:
    """Parts in proportion to `weights` that add up to this amount, each less than a minor unit off its share."""
    total = sum(weights)
    if total < 1 or min(weights) < 0:
        raise InvalidInput("weights must be 0 or more and not all 0", param="weights")
    sign = -1 if amount_minor < 0 else 1
    amount = abs(amount_minor)
    floors = [amount * weight // total for weight in weights]
    # The cents lost by rounding down go to the largest remainders; ties go to the earlier part.
    order = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i] % total), i))
    for i in order[: amount - sum(floors)]:
        floors[i] += 1
    return [sign * part for part in floors]
