"""Invoices and credit notes as files: one as PDF, all of an organiser as CSV."""

from collections.abc import AsyncIterator
from typing import Final

from litestar import Response
from litestar.response import Stream

from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceNotFound
from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.http.bodies.json_values import time_text
from frontrow.web.platform.platform import Platform

PRIVATE: Final = {"cache-control": "private, no-store"}
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


async def invoice_of(platform: Platform, booking_id: str, number: int) -> Invoice:
    """A document of this booking, or `InvoiceNotFound`."""
    for one in await platform.box_office.invoices.of_booking(booking_id):
        if one.number == number:
            return one
    raise InvoiceNotFound(f"this booking has no invoice {number}", number=number)


async def pdf_answer(platform: Platform, invoice: Invoice, locale: str) -> Response[bytes]:
    """The document as a file with its number as the name."""
    kind = "credit-note" if invoice.is_credit_note else "invoice"
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{kind}-{invoice.number:06}.pdf"'}
    body = await platform.box_office.invoices.pdf(invoice, locale)
    return Response(body, headers=headers, media_type="application/pdf")


async def exported_invoices(platform: Platform, caller: Caller) -> Stream:
    """The table. The export is recorded in the audit, because it contains people's names."""
    await platform.organiser.log.note(editor_of(caller), "export", "", {"table": "invoices"})
    headers = {
        "content-disposition": 'attachment; filename="invoices.csv"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }
    return Stream(_csv(platform, caller.organiser_id), headers=headers, media_type="text/csv")


async def _csv(platform: Platform, organiser_id: str) -> AsyncIterator[bytes]:
    yield to_csv(COLUMNS, []).encode("utf-8-sig")
    async for page in platform.box_office.invoices.all_of(organiser_id):
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
