"""Receipts: seller, buyer, what was paid, the tax it includes, and refunds. Pure values, exact to the cent.

Prices include tax. The tax of an amount is `amount × rate / (100 % + rate)`, rounded half up once per receipt, and the
net is what remains: net and tax always add up to the gross. A receipt is not an invoice and has no number of its own.
"""

import unicodedata
from dataclasses import dataclass
from typing import Final

from frontrow.core.errors import InvalidInput
from frontrow.core.money import BASIS_POINTS, Money

MAX_NAME_CHARS: Final = 200
MAX_ADDRESS_CHARS: Final = 500
MAX_TAX_ID_CHARS: Final = 40
MAX_TAX_BASIS_POINTS: Final = 5_000
SELLERS_TAX: Final = -1  # in an edit and in the history: the event uses the seller's rate


@dataclass(frozen=True, slots=True)
class Seller:
    """An organiser as shown on receipts. `tax_basis_points` is its rate unless an event has its own."""

    organiser_id: str
    name: str
    address: str = ""
    tax_id: str = ""
    tax_basis_points: int = 0


def checked_seller(seller: Seller) -> Seller:
    """The seller, if it is valid; otherwise an `InvalidInput` that names the field."""
    fields = (
        ("name", seller.name, MAX_NAME_CHARS),
        ("address", seller.address, MAX_ADDRESS_CHARS),
        ("tax_id", seller.tax_id, MAX_TAX_ID_CHARS),
    )
    for param, text, most in fields:
        if len(text) > most:
            raise InvalidInput(f"{param} has at most {most} characters", param=param)
        allowed = "\n" if param == "address" else ""
        if any(unicodedata.category(letter) == "Cc" and letter not in allowed for letter in text):
            raise InvalidInput(f"{param} has a character that cannot be printed", param=param)
    if not seller.name.strip():
        raise InvalidInput("name is required", param="name")
    check_tax(seller.tax_basis_points)
    return seller


def check_tax(basis_points: int) -> None:
    """Raise `InvalidInput` unless the rate is 0 to 50 percent."""
    if not 0 <= basis_points <= MAX_TAX_BASIS_POINTS:
        raise InvalidInput(f"tax_basis_points must be 0 to {MAX_TAX_BASIS_POINTS}", param="tax_basis_points")


def tax_inside(gross: Money, basis_points: int) -> Money:
    """The tax that a price includes, rounded half up."""
    whole = BASIS_POINTS + basis_points
    return Money((2 * gross.minor * basis_points + whole) // (2 * whole), gross.currency)


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """Something bought, with its gross price."""

    name: str
    price: Money


@dataclass(frozen=True, slots=True)
class MoneyMoved:
    """A payment or a refund that was made."""

    at_us: int
    amount: Money


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a booking cost, and its refunds."""

    booking_id: str
    event_name: str
    starts_at_us: int
    time_zone: str
    seller: Seller
    buyer: str
    lines: tuple[ReceiptLine, ...]
    tax_basis_points: int
    paid: MoneyMoved
    refunds: tuple[MoneyMoved, ...] = ()

    @property
    def total(self) -> Money:
        return self.paid.amount

    @property
    def tax(self) -> Money:
        return tax_inside(self.total, self.tax_basis_points)

    @property
    def net(self) -> Money:
        return self.total - self.tax

    @property
    def shows_tax(self) -> bool:
        """Whether the receipt mentions tax: only if the seller gave a rate or a tax number."""
        return bool(self.tax_basis_points or self.seller.tax_id)
