"""The tax that prices include: its rate in basis points, and how much of an amount it is.

Prices include tax. The tax of an amount is `amount × rate / (100 % + rate)`, rounded half up once per amount, and the
net is what remains: net and tax always add up to the gross.
"""

from typing import Final

from frontrow.core.errors import InvalidInput
from frontrow.core.money import BASIS_POINTS, Money

MAX_TAX_BASIS_POINTS: Final = 5_000
SELLERS_TAX: Final = -1  # in an edit and in the history: the event uses the seller's rate


def check_tax(basis_points: int) -> None:
    """Raise `InvalidInput` unless the rate is 0 to 50 percent."""
    if not 0 <= basis_points <= MAX_TAX_BASIS_POINTS:
        raise InvalidInput(f"tax_basis_points must be 0 to {MAX_TAX_BASIS_POINTS}", param="tax_basis_points")


def tax_inside(gross: Money, basis_points: int) -> Money:
    """The tax that a price includes, rounded half up."""
    whole = BASIS_POINTS + basis_points
    return Money((2 * gross.minor * basis_points + whole) // (2 * whole), gross.currency)
