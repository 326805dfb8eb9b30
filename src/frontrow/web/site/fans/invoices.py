"""A fan's invoice: asked for on the page of the receipt, with a name and address, then downloaded as PDF."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.checkout.model.invoices import NothingToInvoice, PaymentNotTaken
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.texts.locale_formats import formats_of
from frontrow.boxoffice.texts.message_texts import words_of
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.invoice_files import invoice_of, pdf_answer
from frontrow.web.platform.platform import Platform
from frontrow.web.site.fans.checkout import booking_context
from frontrow.web.site.languages import N_
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
BAD_ADDRESS: Final = N_("This address cannot be printed.")
NOTHING_PAID: Final = N_("Nothing was paid for this booking, so there is nothing to invoice.")
NOT_TAKEN: Final = N_("The payment is still being completed. Please ask for the invoice again in a minute.")


@page("/bookings/{booking_id:str}/receipt", "receipt", Access.OWNER)
async def receipt_page(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str]
) -> Response[bytes]:
    """The receipt: seller, lines, included tax, payment and refunds; and the invoice, if it was asked for."""
    return await _receipt(request, platform, await platform.own_bookings.find_seen(caller, booking_id))


async def _receipt(
    request: Asked, platform: Platform, booking: Booking, problem: str = "", filled: str = ""
) -> Response[bytes]:
    receipt = await platform.box_office.receipts.of(booking.id)
    if receipt is None:
        raise BookingNotFound(booking.id)
    invoices = await platform.box_office.invoices.of_booking(booking.id)
    language = words_for(request).language
    formats = formats_of(language)
    context = await booking_context(platform, booking)
    return render(
        request,
        "receipt.html",
        status=422 if problem else 200,
        one=context["one"],
        receipt=receipt,
        invoices=invoices,
        missing=bool(receipt.total) and len(invoices) < 1 + len(receipt.refunds),
        problem=problem,
        filled=filled or receipt.buyer,
        labels=words_of(language),
        money=formats.money,
        percent=formats.percent,
    )


@action("/bookings/{booking_id:str}/invoice", "issue_invoice", Access.OWNER)
async def issue_invoice(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Issue the invoice, or the credit notes that are missing."""
    booking = await platform.own_bookings.find(caller, booking_id)
    billed_to = form.one("billed_to", 600)
    try:
        await platform.box_office.invoices.issue(booking, billed_to)
    except InvalidInput:
        return await _receipt(request, platform, booking, BAD_ADDRESS, billed_to)
    except NothingToInvoice:
        return await _receipt(request, platform, booking, NOTHING_PAID, billed_to)
    except PaymentNotTaken:
        return await _receipt(request, platform, booking, NOT_TAKEN, billed_to)
    return go_to(f"/bookings/{booking.id}/receipt#invoice")


@page("/bookings/{booking_id:str}/invoices/{number:int}", "invoice", Access.OWNER)
async def invoice(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], number: FromPath[int]
) -> Response[bytes]:
    """The document as PDF, in the reader's language."""
    booking = await platform.own_bookings.find_seen(caller, booking_id)
    found = await invoice_of(platform, booking.id, number)
    return await pdf_answer(platform, found, words_for(request).language)


ROUTES: list[HTTPRouteHandler] = [receipt_page, issue_invoice, invoice]
