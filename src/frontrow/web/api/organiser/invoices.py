"""Invoices and credit notes of an organiser: issue them, list them, one as PDF, all as CSV."""

from typing import Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody
from litestar.response import Stream

from frontrow.web.api.fans.invoices import Locale
from frontrow.web.api.organiser.parameters import NO_STORE, Cursor, Limit
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.invoices import InvoiceAsk, InvoiceList, invoice_view
from frontrow.web.http.cursors import cursor_of, read_number
from frontrow.web.platform.event_access import own_event_booking
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.invoice_files import exported_invoices, pdf_answer

INVOICES: Final = "/v1/organiser/invoices"
READS: Final = Access.staff("bookings:read")


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


ROUTES: list[HTTPRouteHandler] = [issue_own_invoice, list_own_invoices, own_invoice_pdf, export_invoices]
