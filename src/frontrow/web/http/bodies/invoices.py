"""The bodies of invoices and credit notes."""

from typing import Annotated

import msgspec

from frontrow.boxoffice.checkout.model.invoices import MAX_BILLED_TO_CHARS, Invoice
from frontrow.shared.local_time import time_text
from frontrow.web.http.bodies.json_values import MoneyView, Time


class InvoiceAsk(msgspec.Struct, forbid_unknown_fields=True):
    """Name and address for an invoice that is not issued yet. Without it, the buyer's name."""

    billed_to: Annotated[
        str, msgspec.Meta(max_length=MAX_BILLED_TO_CHARS, examples=["Analytical Engines Ltd\n1 Main Street\nLondon"])
    ] = ""


class InvoiceView(msgspec.Struct):
    """An invoice (`kind` invoice) or a credit note (`kind` credit_note, with negative amounts) with its number."""

    number: int
    label: Annotated[str, msgspec.Meta(examples=["2026-000017"], description="the number as it is printed")]
    kind: Annotated[str, msgspec.Meta(examples=["invoice"])]
    booking: str
    issued_at: Time
    net: MoneyView
    tax: MoneyView
    total: MoneyView
    tax_basis_points: int
    corrects: str


class InvoiceList(msgspec.Struct):
    invoices: list[InvoiceView]
    next: str | None = None


def invoice_view(one: Invoice) -> InvoiceView:
    document = one.document
    net, tax, total = (
        MoneyView(amount.minor, amount.currency) for amount in (document.net, document.tax, document.total)
    )
    return InvoiceView(
        one.number,
        one.label,
        "credit_note" if one.is_credit_note else "invoice",
        one.booking_id,
        time_text(one.issued_at_us),
        net,
        tax,
        total,
        document.tax_basis_points,
        document.corrects,
    )
