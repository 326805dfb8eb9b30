"""The organiser's page about itself as a seller: what receipts show."""

import re
from typing import Any, Final

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler

from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.events import Fee
from frontrow.core.errors import InvalidInput
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.site.languages import N_
from frontrow.web.site.organiser.events.event_forms import Values, fee_values, read_fee
from frontrow.web.site.organiser.events.new_event import CURRENCIES
from frontrow.web.site.organiser.form_fields import BAD_TAX, Reading, percent_text
from frontrow.web.site.render import render
from frontrow.web.site.routes import Form, FromForm, action, go_to, page

Asked = Request[Any, Any, Any]
SELLER: Final = "/organiser/seller"
PERCENT: Final = re.compile(r"[0-9]{1,2}([.,][0-9]{1,2})?", re.ASCII)
REFUSED: Final = {
    "name": N_("Please fill in the seller's name."),
    "address": N_("This address cannot be printed."),
    "tax_id": N_("This tax number cannot be printed."),
    "tax_basis_points": BAD_TAX,
    "contact_email": N_("This is not an email address."),
    "invoice_prefix": N_("The prefix has at most 20 characters."),
}
BAD_FEES: Final = N_("Each fee needs a name, and amounts like 2.50.")
MOST_FEES: Final = 3
DONE: Final = {"saved": N_("Saved. New receipts show it.")}


@page(SELLER, "seller", Access.staff("events:read"))
async def seller(request: Asked, platform: FromPlatform, caller: FromCaller) -> Response[bytes]:
    """The details that receipts show."""
    stored = await platform.box_office.receipts.seller_of(caller.organiser_id)
    return render(
        request,
        "organiser/seller.html",
        filled=_values(stored),
        currencies=CURRENCIES,
        problem="",
        field="",
        write="events:write" in caller.permissions,
        done=DONE.get(request.query_params.get("done", ""), ""),
    )


@action(SELLER, "change_seller", Access.staff("events:write"))
async def change_seller(request: Asked, platform: FromPlatform, caller: FromCaller, form: FromForm) -> Response[bytes]:
    """Save the details."""
    try:
        await platform.organiser.sellers.change(editor_of(caller), _given(caller.organiser_id, form))
    except InvalidInput as error:
        field = error.param or "name"
        return render(
            request,
            "organiser/seller.html",
            status=422,
            filled=_values(Seller(caller.organiser_id, "")) | form.first(),
            currencies=CURRENCIES,
            problem=REFUSED.get(field, BAD_FEES),
            field=field,
            write=True,
            done="",
        )
    return go_to(f"{SELLER}?done=saved")


def _values(stored: Seller) -> Values:
    """What the form shows."""
    filled = Values(name=stored.name, address=stored.address, tax_id=stored.tax_id)
    filled |= {"rate": percent_text(stored.tax_basis_points), "invoice_prefix": stored.invoice_prefix}
    filled |= {"fees_currency": stored.fees_currency, "contact_email": stored.contact_email}
    return filled | fee_values(stored.fees, stored.fees_currency or "EUR", MOST_FEES)


def _fees(form: Form) -> tuple[tuple[Fee, ...], str]:
    """The fees and their currency."""
    currency = form.one("fees_currency", 3)
    if currency not in CURRENCIES:
        currency = CURRENCIES[0]
    reading = Reading(form, currency=currency)
    fees = tuple(fee for number in range(MOST_FEES) if (fee := read_fee(reading, number)) is not None)
    if reading.errors:
        raise InvalidInput("a fee has a name and amounts", param="fees")
    return fees, currency if fees else ""


def _given(organiser_id: str, form: Form) -> Seller:
    rate = form.one("rate", 8) or "0"
    if not PERCENT.fullmatch(rate):
        raise InvalidInput("a tax rate is a number of percent", param="tax_basis_points")
    whole, _, part = rate.replace(",", ".").partition(".")
    address = "\n".join(line.strip() for line in form.one("address", 600).splitlines() if line.strip())
    return Seller(
        organiser_id,
        form.one("name", 250),
        address,
        form.one("tax_id", 60),
        int(whole) * 100 + int(part.ljust(2, "0")),
        form.one("invoice_prefix", 40),
        *_fees(form),
        form.one("contact_email", 260),
    )


ROUTES: list[HTTPRouteHandler] = [seller, change_seller]
