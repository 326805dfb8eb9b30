"""The organiser's invoices: the list, one as PDF, all as CSV, and issuing the invoice of a booking."""

from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response import Stream

from frontrow.boxoffice.checkout.model.invoices import NothingToInvoice, PaymentNotTaken
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.invoice_files import exported_invoices, pdf_answer
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.bookings.booking_list import ABOUT_BOOKING, FromBooking
from frontrow.web.site.render import render, words_for
from frontrow.web.site.routes import FromForm, action, page

Asked = Request[Any, Any, Any]
INVOICES: Final = "/organiser/invoices"
PAGE: Final = 50
BAD_ADDRESS: Final = N_("This address cannot be printed.")
NOTHING_PAID: Final = N_("Nothing was paid for this booking, so there is nothing to invoice.")
NOT_TAKEN: Final = N_("The payment is still being completed. Please ask for the invoice again in a minute.")


@page(INVOICES, "invoices", Access.staff("bookings:read"))
async def invoices(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The newest documents; `before` in the query shows older ones."""
    text = request.query_params.get("before", "")[:18]
    before = int(text) if text.isascii() and text.isdecimal() else 0
    found = await platform.box_office.invoices.page(caller.organiser_id, before, PAGE)
    more = str(found[-1].number) if len(found) == PAGE else ""
    return render(request, "organiser/invoices.html", found=found, more=more)


@page(f"{INVOICES}/{{number:int}}", "own_invoice", Access.staff("bookings:read"))
async def own_invoice(
    request: Asked, platform: FromPlatform, caller: FromCaller, number: FromPath[int]
) -> Response[bytes]:
    """One document as PDF, in the reader's language."""
    found = await platform.box_office.invoices.of_number(caller.organiser_id, min(number, 2**62))
    return await pdf_answer(platform, found, words_for(request).language)


@page(f"{INVOICES}.csv", "invoices_csv", Access.staff("bookings:read"))
async def invoices_csv(request: Asked, platform: FromPlatform, caller: FromCaller) -> Stream:
    """All documents as a table."""
    return await exported_invoices(platform, caller)


@action(
    "/organiser/events/{event_id:str}/bookings/{booking_id:str}/invoice",
    "issue_own_invoice",
    Access.staff("refunds:write"),
    loads=ABOUT_BOOKING,
)
async def issue_invoice(of: FromBooking, form: FromForm) -> Response[bytes]:
    """Issue what is missing, and back to the booking."""
    try:
        await of.platform.box_office.invoices.issue(of.booking, form.one("billed_to", 600))
    except InvalidInput:
        return await of.refuse(BAD_ADDRESS)
    except NothingToInvoice:
        return await of.refuse(NOTHING_PAID)
    except PaymentNotTaken:
        return await of.refuse(NOT_TAKEN)
    return of.back("#invoice")


ROUTES: list[HTTPRouteHandler] = [invoices, own_invoice, invoices_csv, issue_invoice]
