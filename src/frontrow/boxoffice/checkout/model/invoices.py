"""Invoices and credit notes: numbered documents of a seller. Pure values.

A document is a copy of everything it shows, made when it gets its number, and never changes. It is made once the money
is taken, because a sale may still fail before that, and a number cannot be given back. Numbers count up by one
per organiser, over invoices and credit notes together, without a gap. A booking has at most one invoice, and each
refund that was paid at most one credit note, which names the invoice it corrects.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.checkout.model.receipts import Receipt, ReceiptLine, Seller
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, Payment, PaymentState
from frontrow.boxoffice.pricing.model.prices import LineKind
from frontrow.boxoffice.pricing.model.taxes import tax_inside
from frontrow.boxoffice.refunds.model.refund_lines import RefundLineKind, decode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.core.errors import InvalidInput, NotFound, Refused
from frontrow.shared.money import Money

MAX_BILLED_TO_CHARS: Final = 500
MAX_BILLED_TO_LINES: Final = 8


class NothingToInvoice(Refused):
    """Nothing was paid for this booking, so it gets no invoice."""

    code = "nothing_to_invoice"


class PaymentNotTaken(Refused):
    """The booking is sold, but its money is not taken yet. An invoice says that it is."""

    code = "payment_not_taken"


class InvoiceNotFound(NotFound):
    code = "invoice_not_found"


def check_taken(booking: Booking, payments: Sequence[Payment], refunds: Sequence[Refund]) -> None:
    """Raise unless the money of the sale is taken, so that an invoice can be issued."""
    if any(one.state is PaymentState.CAPTURED for one in payments) or not payments:
        return
    if payments[-1].state in ENDED or not _will_be_taken(booking, payments[-1], refunds):
        raise NothingToInvoice("nothing was paid for this booking, so it has no invoice", booking=booking.id)
    raise PaymentNotTaken("the payment is not finished yet; ask for the invoice again soon", booking=booking.id)


def _will_be_taken(booking: Booking, payment: Payment, refunds: Sequence[Refund]) -> bool:
    """Whether a payment that is not finished is for something: a sale, or a fee of what was returned."""
    if booking.state is not BookingState.REFUNDED:
        return booking.state is BookingState.CONFIRMED
    kept = any(one.fee_minor for one in refunds if one.payment_id == payment.id)
    return kept and payment.state is PaymentState.CAPTURING


class InvoiceDocument(msgspec.Struct, frozen=True):
    """What an invoice or a credit note says. A credit note has negative amounts."""

    prefix: str
    seller: Seller
    billed_to: str
    booking_id: str
    event_name: str
    starts_at_us: int
    time_zone: str
    lines: tuple[ReceiptLine, ...]
    total: Money
    tax_basis_points: int
    paid_at_us: int
    corrects: str = ""  # the number of the invoice, on a credit note

    @property
    def tax(self) -> Money:
        if self.total.minor < 0:
            return -tax_inside(-self.total, self.tax_basis_points)
        return tax_inside(self.total, self.tax_basis_points)

    @property
    def net(self) -> Money:
        return self.total - self.tax


class Invoice(msgspec.Struct, frozen=True):
    """A numbered document. `refund_id` is empty for the invoice itself."""

    organiser_id: str
    number: int
    booking_id: str
    refund_id: str
    issued_at_us: int
    document: InvoiceDocument

    @property
    def is_credit_note(self) -> bool:
        return bool(self.refund_id)

    @property
    def label(self) -> str:
        """The number as it is printed."""
        return printed_number(self.document.prefix, self.number)


def printed_number(prefix: str, number: int) -> str:
    return f"{prefix}{number:06}"


def invoice_document(receipt: Receipt, prefix: str, billed_to: str) -> InvoiceDocument:
    """The invoice of a paid booking."""
    return InvoiceDocument(
        prefix,
        receipt.seller,
        billed_to or receipt.buyer,
        receipt.booking_id,
        receipt.event_name,
        receipt.starts_at_us,
        receipt.time_zone,
        receipt.lines,
        receipt.total,
        receipt.tax_basis_points,
        receipt.paid.at_us,
    )


def credit_document(invoice: Invoice, lines: Sequence[ReceiptLine], amount: Money, paid_at_us: int) -> InvoiceDocument:
    """The credit note for a refund of this amount. The lines add up to it, as negative amounts."""
    return msgspec.structs.replace(
        invoice.document, lines=tuple(lines), total=-amount, paid_at_us=paid_at_us, corrects=invoice.label
    )


def credit_lines(refund: Refund, name_of: Callable[[int], str]) -> tuple[ReceiptLine, ...]:
    """The lines of a refund's credit note. What was withheld is one line without a name. A refund without lines has one
    for its seats."""
    amount = Money(refund.amount_minor, refund.currency)
    if not refund.lines:
        return (ReceiptLine(LineKind.SEAT, "", -amount, 1, None, tuple(map(name_of, refund.seats))),)
    lines = decode_refund_lines(refund.lines)
    named = [line for line in lines if line.kind in _CREDITED]
    rest = amount.minor - sum(line.amount_minor for line in named)
    found = [
        ReceiptLine(
            _CREDITED[line.kind],
            line.name,
            Money(-line.amount_minor, refund.currency),
            line.quantity,
            None,
            tuple(map(name_of, line.seats)),
        )
        for line in named
    ]
    return (*found, *([ReceiptLine(LineKind.FEE, "", Money(-rest, refund.currency))] if rest else []))


_CREDITED: Final = {
    RefundLineKind.SEAT: LineKind.SEAT,
    RefundLineKind.ADD_ON: LineKind.ADD_ON,
    RefundLineKind.FEE: LineKind.FEE,
}


def checked_billed_to(text: str) -> str:
    """A name and address that can be printed; otherwise an `InvalidInput`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(text) > MAX_BILLED_TO_CHARS or len(lines) > MAX_BILLED_TO_LINES:
        raise InvalidInput(
            f"billed_to has at most {MAX_BILLED_TO_CHARS} characters in {MAX_BILLED_TO_LINES} lines", param="billed_to"
        )
    if any(unicodedata.category(letter) == "Cc" for line in lines for letter in line):
        raise InvalidInput("billed_to has a character that cannot be printed", param="billed_to")
    return "\n".join(lines)
