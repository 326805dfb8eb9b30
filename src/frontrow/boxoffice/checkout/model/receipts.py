"""Receipts: seller, buyer, what was paid, the tax it includes, and refunds. Pure values, exact to the cent.

A receipt lists what was bought as it was sold (`pricing.model.prices`), whatever was returned later; refunds follow
below. A receipt has no number of its own; invoices do (`checkout.model.invoices`).
"""

import unicodedata
from dataclasses import dataclass
from typing import Final

from frontrow.boxoffice.events.model.events import Fee, check_fees
from frontrow.boxoffice.people.model.email_addresses import is_email
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.pricing.model.taxes import check_tax, tax_inside
from frontrow.boxoffice.seats.model.seat_names import name_in
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money

MAX_NAME_CHARS: Final = 200
MAX_ADDRESS_CHARS: Final = 500
MAX_TAX_ID_CHARS: Final = 40
MAX_PREFIX_CHARS: Final = 20


@dataclass(frozen=True, slots=True)
class Seller:
    """An organiser as shown on receipts and invoices. `tax_basis_points` is its rate unless an event has its own."""

    organiser_id: str
    name: str
    address: str = ""
    tax_id: str = ""
    tax_basis_points: int = 0
    invoice_prefix: str = ""  # before the number of its invoices
    fees: tuple[Fee, ...] = ()  # which new events begin with
    fees_currency: str = ""  # of their fixed amounts
    contact_email: str = ""  # where buyers' answers to its messages go

    def fees_in(self, currency: str) -> tuple[Fee, ...]:
        """The fees that a new event begins with. In another currency only those that are percentages."""
        if currency == self.fees_currency:
            return self.fees
        return tuple(fee for fee in self.fees if not fee.per_seat_minor and not fee.per_booking_minor)


def checked_seller(seller: Seller) -> Seller:
    """The seller, if it is valid; otherwise an `InvalidInput` that names the field."""
    fields = (
        ("name", seller.name, MAX_NAME_CHARS),
        ("address", seller.address, MAX_ADDRESS_CHARS),
        ("tax_id", seller.tax_id, MAX_TAX_ID_CHARS),
        ("invoice_prefix", seller.invoice_prefix, MAX_PREFIX_CHARS),
    )
    for param, text, most in fields:
        if len(text) > most:
            raise InvalidInput(f"{param} has at most {most} characters", param=param)
        allowed = "\n" if param == "address" else ""
        if any(unicodedata.category(letter) == "Cc" and letter not in allowed for letter in text):
            raise InvalidInput(f"{param} has a character that cannot be printed", param=param)
    if not seller.name.strip():
        raise InvalidInput("name is required", param="name")
    if seller.contact_email and not is_email(seller.contact_email):
        raise InvalidInput(
            "contact_email is not an e-mail address; one is like hall@example.org", param="contact_email"
        )
    check_tax(seller.tax_basis_points)
    if seller.fees:
        Money(0, seller.fees_currency)  # raises for a wrong currency
        check_fees(seller.fees)
    return seller


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """A line of a price with its seats by name. `included`: a part of the amounts above it, only shown."""

    kind: LineKind
    name: str
    amount: Money
    quantity: int = 1
    unit: Money | None = None  # None: the parts differ
    seats: tuple[str, ...] = ()
    included: bool = False
    seat_ids: tuple[str, ...] = ()  # of `seats`: standing places have one name

    def title_in(self, language: str) -> str:
        """Its name, or the names of its seats in a language."""
        return self.name or self.seats_in(language)

    def seats_in(self, language: str) -> str:
        """The names of its seats in a language."""
        return "; ".join(name_in(seat, language) for seat in self.seats)


@dataclass(frozen=True, slots=True)
class PriceSummary:
    """What a booking costs: the lines, the tax inside the total, and the total."""

    lines: tuple[ReceiptLine, ...]
    total: Money
    tax_basis_points: int = 0

    @property
    def tax(self) -> Money:
        return tax_inside(self.total, self.tax_basis_points)

    @property
    def net(self) -> Money:
        return self.total - self.tax

    def prices(self) -> dict[str, Money]:
        """The price of each seat, by its id."""
        seats = [line for line in self.lines if line.kind is LineKind.SEAT]
        return {seat: line.unit for line in seats if line.unit is not None for seat in line.seat_ids}


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
