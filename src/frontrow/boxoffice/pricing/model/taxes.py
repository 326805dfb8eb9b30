"""The tax that prices include: its rate in basis points, and how much of an amount it is.

Prices include tax. The tax of an amount is `amount × rate / (100 % + rate)`, rounded half up once per amount, and the
net is what remains: net and tax always add up to the gross.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.shared.money import BASIS_POINTS, Money

MAX_TAX_BASIS_POINTS: Final = 5_000
SELLERS_TAX: Final = -1  # in an edit and in the history: the event uses the seller's rate


class TaxRates(msgspec.Struct, frozen=True):
    """The rates of one event over time, as (since when, basis points), oldest first."""

    own: Sequence[tuple[int, int]]  # of the event; SELLERS_TAX: the seller's
    sellers: Sequence[tuple[int, int]]

    def at(self, at_us: int) -> int:
        """The rate of a sale at this time."""
        own = next((rate for since_us, rate in reversed(self.own) if since_us <= at_us), SELLERS_TAX)
        if own != SELLERS_TAX:
            return own
        return next((rate for since_us, rate in reversed(self.sellers) if since_us <= at_us), 0)


def check_tax(basis_points: int) -> None:
    """Raise `InvalidInput` unless the rate is 0 to 50 percent."""
    if not 0 <= basis_points <= MAX_TAX_BASIS_POINTS:
        raise InvalidInput(f"tax_basis_points must be 0 to {MAX_TAX_BASIS_POINTS}", param="tax_basis_points")


def tax_inside(gross: Money, basis_points: int) -> Money:
    """The tax that a price includes, rounded half up."""
    whole = BASIS_POINTS + basis_points
    return Money((2 * gross.minor * basis_points + whole) // (2 * whole), gross.currency)
