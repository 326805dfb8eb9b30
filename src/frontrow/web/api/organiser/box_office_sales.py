"""Sales by staff: cash, a card reader, or free tickets for guests; and what each member of the team took."""

from datetime import date
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from frontrow.boxoffice.organiser.model.box_office_sales import MAX_SEATS_PER_SALE, BoxOfficeWish, PaidBy
from frontrow.boxoffice.people.model.person_names import MAX_NAME_CHARS
from frontrow.boxoffice.pricing.model.sale_options import MAX_ADD_ONS, MAX_OF_ONE_ADD_ON
from frontrow.web.api.fans.booking_choices import OptionKey
from frontrow.web.api.organiser.bookings import OwnBookingView, booking_views
from frontrow.web.http.access import Access, editor_of
from frontrow.web.http.bodies.holds import SeatName
from frontrow.web.http.bodies.json_values import MoneyView
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

PATH = "/v1/organiser/events/{event_id:str}/desk-sales"


class DeskSaleAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Seats to sell, also withheld ones. `paid_by` free: for guests, with name and address. The tickets are mailed to
    the address, if there is one."""

    seats: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_SEATS_PER_SALE, examples=[["S-A-1"]])]
    paid_by: PaidBy
    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS)] = ""
    email: Annotated[str, msgspec.Meta(max_length=254)] = ""
    types: Annotated[
        dict[SeatName, OptionKey],
        msgspec.Meta(
            max_length=MAX_SEATS_PER_SALE, examples=[{"S-A-1": "child"}], description="ticket types, hidden ones too"
        ),
    ] = {}
    add_ons: Annotated[
        dict[OptionKey, Annotated[int, msgspec.Meta(ge=0, le=MAX_OF_ONE_ADD_ON)]],
        msgspec.Meta(max_length=MAX_ADD_ONS, examples=[{"parking": 1}]),
    ] = {}
    code: Annotated[str, msgspec.Meta(max_length=60, examples=["EARLY-10"], description="not for free tickets")] = ""


class DeskTotalView(msgspec.Struct):
    """What one member of the team took in one way."""

    staff: str
    paid_by: PaidBy
    bookings: int
    seats: int
    taken: MoneyView
    refunded: MoneyView


class DeskTotalsView(msgspec.Struct):
    """The sales of one day in the venue's time."""

    day: Annotated[str, msgspec.Meta(examples=["2026-11-16"])]
    totals: list[DeskTotalView]


@post(
    PATH,
    operation_id="sell_at_desk",
    summary="Sell seats for cash or on a card reader, or give them to guests",
    status_code=201,
    opt={"access": Access.staff("refunds:write"), "problems": (409,)},
)
async def sell_at_desk(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[DeskSaleAsked]
) -> OwnBookingView:
    event = await own_event(platform, caller, event_id)
    wish = BoxOfficeWish(data.types, data.add_ons, data.code)
    sold = await platform.organiser.box_office_sales.sell(
        editor_of(caller), event, data.seats, data.paid_by, name=data.name, email=data.email, wish=wish
    )
    return (await booking_views(platform, event, [sold]))[0]


@get(
    f"{PATH}/totals",
    operation_id="get_desk_totals",
    summary="What each member of the team took at the box office on a day",
    opt={"access": Access.staff("bookings:read")},
)
async def get_desk_totals(
    platform: FromPlatform,
    caller: FromCaller,
    event_id: FromPath[str],
    day: Annotated[date | None, QueryParameter(description="in the venue's time; today if left out")] = None,
) -> DeskTotalsView:
    event = await own_event(platform, caller, event_id)
    shown, totals = await platform.organiser.box_office_sales.totals(event, day)
    return DeskTotalsView(
        shown.isoformat(),
        [
            DeskTotalView(
                one.staff,
                one.paid_by,
                one.bookings,
                one.seats,
                MoneyView(one.taken_minor, event.currency),
                MoneyView(one.refunded_minor, event.currency),
            )
            for one in totals
        ],
    )


ROUTES: list[HTTPRouteHandler] = [sell_at_desk, get_desk_totals]
