"""Invoices of a booking, for its owner: asked for once, then the same document for ever."""

from typing import Annotated

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceNotFound
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, own_booking
from frontrow.web.api.invoice_bodies import InvoiceAsk, InvoiceList, invoice_view
from frontrow.web.platform.platform import Platform

PRIVATE = {"cache-control": "private, no-store"}
Locale = Annotated[str, QueryParameter(pattern=r"^[A-Za-z-]{2,10}$", max_length=10)]


@post(
    "/v1/bookings/{booking_id:str}/invoices",
    operation_id="issue_invoice",
    summary="Issue the invoice of a booking and the credit notes of its refunds",
    opt={"access": Access.OWNER, "problems": (409,)},
    status_code=200,
)
async def issue_invoice(
    platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], data: JSONBody[InvoiceAsk]
) -> Response[InvoiceList]:
    booking = await own_booking(platform, caller, booking_id)
    issued = await platform.box_office.invoices.issue(booking, data.billed_to)
    return Response(InvoiceList([invoice_view(one) for one in issued]), headers=PRIVATE)


@get(
    "/v1/bookings/{booking_id:str}/invoices",
    operation_id="list_invoices",
    summary="The invoice and the credit notes of a booking",
    opt={"access": Access.OWNER},
)
async def list_invoices(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[InvoiceList]:
    booking = await own_booking(platform, caller, booking_id)
    issued = await platform.box_office.invoices.of_booking(booking.id)
    return Response(InvoiceList([invoice_view(one) for one in issued]), headers=PRIVATE)


@get(
    "/v1/bookings/{booking_id:str}/invoices/{number:int}",
    operation_id="invoice_pdf",
    summary="An invoice or a credit note to print",
    opt={"access": Access.OWNER, "answers": {200: "application/pdf"}},
    media_type="application/pdf",
)
async def invoice_pdf(
    platform: FromPlatform,
    caller: FromCaller,
    booking_id: FromPath[str],
    number: FromPath[int],
    locale: Locale = "en",
) -> Response[bytes]:
    booking = await own_booking(platform, caller, booking_id)
    return await pdf_answer(platform, await invoice_of(platform, booking.id, number), locale)


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


ROUTES: list[HTTPRouteHandler] = [issue_invoice, list_invoices, invoice_pdf]
