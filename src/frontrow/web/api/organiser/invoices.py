"""Invoices and credit notes of an organiser: issue them, list them, one as PDF, all as CSV."""

from collections.abc import AsyncIterator
from typing import Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from frontrow.boxoffice.checkout.model.invoices import Invoice
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.organiser.model.csv_cells import to_csv
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, Caller, own_event_booking
from frontrow.web.api.fans.invoices import Locale, pdf_answer
from frontrow.web.api.invoice_bodies import InvoiceAsk, InvoiceList, invoice_view
from frontrow.web.api.organiser.common import NO_STORE, Cursor, Limit, cursor_of, editor_of, read_number
from frontrow.web.endpoints.json_values import time_text
from frontrow.web.platform.platform import Platform

INVOICES: Final = "/v1/organiser/invoices"
READS: Final = Access.staff("bookings:read")
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


@post(
    "/v1/organiser/events/{event_id:str}/bookings/{booking_id:str}/invoices",
    operation_id="issue_own_invoice",
    summary="Issue the invoice of a booking and the credit notes of its refunds",
    opt={"access": Access.staff("refunds:write"), "problems": (404, 409)},
    status_code=200,
)
async def issue_own_invoice(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    booking_id: FromPath[str],
    data: JSONBody[InvoiceAsk],
) -> Response[InvoiceList]:
    _, booking = await own_event_booking(platform, caller, event_id, booking_id)
    issued = await platform.box_office.invoices.issue(booking, data.billed_to)
    return Response(InvoiceList([invoice_view(one) for one in issued]), headers=NO_STORE)


@get(
    INVOICES,
    operation_id="list_own_invoices",
    summary="Invoices and credit notes, the newest first",
    opt={"access": READS},
)
async def list_own_invoices(
    platform: FromPlatform, caller: FromCaller, cursor: Cursor = "", limit: Limit = 50
) -> Response[InvoiceList]:
    before = read_number(cursor) if cursor else 0
    found = await platform.box_office.invoices.page(caller.organiser_id, before, limit)
    more = cursor_of(found[-1].number) if len(found) == limit else None
    return Response(InvoiceList([invoice_view(one) for one in found], more), headers=NO_STORE)


@get(
    f"{INVOICES}/{{number:int}}",
    operation_id="own_invoice_pdf",
    summary="An invoice or a credit note to print",
    opt={"access": READS, "answers": {200: "application/pdf"}},
    media_type="application/pdf",
)
async def own_invoice_pdf(
    platform: FromPlatform, caller: FromCaller, number: FromPath[int], locale: Locale = "en"
) -> Response[bytes]:
    return await pdf_answer(platform, await platform.box_office.invoices.of_number(caller.organiser_id, number), locale)


@get(
    f"{INVOICES}.csv",
    operation_id="export_invoices",
    summary="Every invoice and credit note with net, tax and total, as CSV",
    media_type="text/csv",
    opt={"access": READS, "answers": {200: "text/csv"}},
)
async def export_invoices(platform: FromPlatform, caller: FromCaller) -> Stream:
    return await exported_invoices(platform, caller)


async def exported_invoices(platform: Platform, caller: Caller) -> Stream:
    """The table. The export is recorded in the audit, because it contains people's names."""
    change = Change(editor_of(caller), "export", "", platform.clock(), {"table": "invoices"})
    await platform.ledger.organiser.note(change)
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


ROUTES: list[HTTPRouteHandler] = [issue_own_invoice, list_own_invoices, own_invoice_pdf, export_invoices]
