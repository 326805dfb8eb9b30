"""The answers with invoices and credit notes as files, for the API and the pages: one as PDF, all as CSV."""

from typing import Final

from litestar import Response
from litestar.response import Stream

from frontrow.boxoffice.checkout.invoice_export import invoices_csv
from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceNotFound
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.platform.platform import Platform

PRIVATE: Final = {"cache-control": "private, no-store"}


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
    return Stream(
        invoices_csv(platform.box_office.invoices.all_of(caller.organiser_id)), headers=headers, media_type="text/csv"
    )
