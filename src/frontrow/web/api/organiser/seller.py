"""The organiser as a seller: its details on receipts, and the tax rate of its prices."""

from typing import Annotated

import msgspec
from litestar import get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from frontrow.boxoffice.checkout.model.receipts import (
    MAX_ADDRESS_CHARS,
    MAX_NAME_CHARS,
    MAX_PREFIX_CHARS,
    MAX_TAX_ID_CHARS,
    Seller,
)
from frontrow.boxoffice.events.model.events import Fee
from frontrow.boxoffice.pricing.model.taxes import MAX_TAX_BASIS_POINTS
from frontrow.web.api.organiser.event_bodies import FeeGiven, Fees
from frontrow.web.http.access import Access, editor_of
from frontrow.web.platform.injected import FromCaller, FromPlatform

SELLER = "/v1/organiser/seller"


class SellerBody(msgspec.Struct, forbid_unknown_fields=True):
    """Who sells. Prices include tax at `tax_basis_points` (1900 is 19 %), unless an event has a rate of its own.

    New events begin with `fees`; those with fixed amounts only if the event is in `fees_currency`. Invoices are
    numbered `invoice_prefix` and six digits. Answers to messages to buyers go to `contact_email`.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_CHARS, examples=["Waldbühne GmbH"])]
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS_CHARS, examples=["Hauptstraße 1\n1010 Wien"])] = ""
    tax_id: Annotated[str, msgspec.Meta(max_length=MAX_TAX_ID_CHARS, examples=["ATU12345678"])] = ""
    tax_basis_points: Annotated[int, msgspec.Meta(ge=0, le=MAX_TAX_BASIS_POINTS, examples=[1300])] = 0
    invoice_prefix: Annotated[str, msgspec.Meta(max_length=MAX_PREFIX_CHARS, examples=["2026-"])] = ""
    fees: Fees = []
    fees_currency: Annotated[str, msgspec.Meta(pattern="^([A-Z]{3})?$", examples=["EUR"])] = ""
    contact_email: Annotated[str, msgspec.Meta(max_length=254, examples=["hall@example.org"])] = ""


@get(
    SELLER,
    operation_id="get_seller",
    summary="The seller's details on receipts",
    opt={"access": Access.staff("events:read")},
)
async def get_seller(platform: FromPlatform, caller: FromCaller) -> SellerBody:
    seller = await platform.box_office.receipts.seller_of(caller.organiser_id)
    fees = [FeeGiven(f.name, f.per_seat_minor, f.per_booking_minor, f.basis_points) for f in seller.fees]
    return SellerBody(
        seller.name,
        seller.address,
        seller.tax_id,
        seller.tax_basis_points,
        seller.invoice_prefix,
        fees,
        seller.fees_currency,
        seller.contact_email,
    )


@put(
    SELLER,
    operation_id="put_seller",
    summary="Change the seller's details on receipts",
    opt={"access": Access.staff("events:write")},
)
async def put_seller(platform: FromPlatform, caller: FromCaller, data: JSONBody[SellerBody]) -> SellerBody:
    given = Seller(
        caller.organiser_id,
        data.name,
        data.address,
        data.tax_id,
        data.tax_basis_points,
        data.invoice_prefix,
        tuple(Fee(f.name, f.per_seat_minor, f.per_booking_minor, f.basis_points) for f in data.fees),
        data.fees_currency,
        data.contact_email.strip(),
    )
    await platform.organiser.sellers.change(editor_of(caller), given)
    return data


ROUTES: list[HTTPRouteHandler] = [get_seller, put_seller]
