"""The invoices and credit notes of an organiser as a CSV table."""

from collections.abc import AsyncIterator
from typing import Final

from frontrow.boxoffice.checkout.model.invoices import Invoice
from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.shared.local_time import time_text

COLUMNS: Final = (
    "number",
    "kind",
    "issued_at",
    "booking",
    "billed_to",
    "currency",
    "net_minor",
    "tax_minor",
    "total_minor",
    "tax_basis_points",
    "corrects",
)


async def invoices_csv(pages: AsyncIterator[list[Invoice]]) -> AsyncIterator[bytes]:
    """The pages of `Invoices.all_of` as a file that spreadsheets open."""
    yield to_csv(COLUMNS, []).encode("utf-8-sig")
    async for page in pages:
        yield "".join(to_csv(COLUMNS, [_row(one) for one in page]).partition("\r\n")[2:]).encode()


def _row(one: Invoice) -> tuple[object, ...]:
    document = one.document
    return (
        one.label,
        "credit_note" if one.is_credit_note else "invoice",
        time_text(one.issued_at_us),
        one.booking_id,
        document.billed_to.replace("\n", ", "),
        document.total.currency,
        document.net.minor,
        document.tax.minor,
        document.total.minor,
        document.tax_basis_points,
        document.corrects,
    )
