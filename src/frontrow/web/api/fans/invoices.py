"""Invoices of a booking, for its owner: asked for once, then the same document for ever."""

from typing import Annotated

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.web.http.access import Access
from frontrow.web.http.bodies.invoices import InvoiceAsk, InvoiceList, invoice_view
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.invoice_files import invoice_of, pdf_answer

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
    booking = await platform.own_bookings.find(caller, booking_id)
    issued = await platform.box_office.invoices.issue(booking, data.billed_to)
    return Response(InvoiceList([invoice_view(one) for one in issued]), headers=PRIVATE)


@get(
    "/v1/bookings/{booking_id:str}/invoices",
    operation_id="list_invoices",
    summary="The invoice and the credit notes of a booking",
    opt={"access": Access.OWNER},
)
async def list_invoices(platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]) -> Response[InvoiceList]:
    booking = await platform.own_bookings.find(caller, booking_id)
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
    booking = await platform.own_bookings.find(caller, booking_id)
    return await pdf_answer(platform, await invoice_of(platform, booking.id, number), locale)


ROUTES: list[HTTPRouteHandler] = [issue_invoice, list_invoices, invoice_pdf]
