"""What a fan chooses for held seats: ticket types, add-ons, a code. Unknown codes are counted as guesses."""

from typing import Annotated, Any

import msgspec
from litestar import Request, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, offered_types
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.core.errors import InvalidInput
from frontrow.web.endpoints.event_details import TicketTypeView, type_views
from frontrow.web.http.access import Access
from frontrow.web.http.bodies.bookings import BookingView
from frontrow.web.http.bodies.holds import SeatName
from frontrow.web.platform.access_check import client_ip
from frontrow.web.platform.booking_choices import choose_for
from frontrow.web.platform.injected import FromCaller, FromPlatform

OptionKey = Annotated[str, msgspec.Meta(max_length=40)]


class ChoiceBody(msgspec.Struct, forbid_unknown_fields=True):
    """The whole choice; what is left out is not chosen. A seat without a type has the event's first one."""

    types: Annotated[dict[SeatName, OptionKey], msgspec.Meta(max_length=100, examples=[{"S-A-14": "child"}])] = {}
    add_ons: Annotated[
        dict[OptionKey, Annotated[int, msgspec.Meta(ge=0, le=100)]],
        msgspec.Meta(max_length=20, examples=[{"parking": 1}]),
    ] = {}
    code: Annotated[str, msgspec.Meta(max_length=60, examples=["EARLY-10"])] = ""


class ChosenBookingView(BookingView):
    """The booking at its new price, with the ticket types that can be chosen, unlocked ones included."""

    ticket_types: list[TicketTypeView] = msgspec.field(default_factory=list)


@put(
    "/v1/bookings/{booking_id:str}/choice",
    operation_id="choose",
    summary="Choose ticket types, add-ons and a code for held seats; the price changes with them",
    opt={"access": Access.OWNER, "problems": (409, 410, 429)},
)
async def choose(
    request: Request[Any, Any, Any],
    platform: FromPlatform,
    caller: FromCaller,
    booking_id: FromPath[str],
    data: JSONBody[ChoiceBody],
) -> ChosenBookingView:
    booking = await platform.own_bookings.find(caller, booking_id)
    visit = platform.own_bookings.need_visit(caller, booking)
    names = dict(
        zip(await platform.booking_views.seat_ids(booking.event_id, booking.seats), booking.seats, strict=True)
    )
    unknown = sorted(data.types.keys() - names.keys())
    if unknown:
        raise InvalidInput(f"{unknown[0]} is not among the held seats", param="types")
    choice = BookingChoice({names[seat]: key for seat, key in data.types.items()}, data.add_ons, fold_code(data.code))
    changed = await choose_for(platform, booking, visit, choice, client_ip(platform, request))
    view = await platform.booking_views.view(changed, tax=True)
    event = platform.box_office.sales.get(booking.event_id).event
    offered = type_views(event, offered_types(event, choice.code))
    return ChosenBookingView(**msgspec.structs.asdict(view), ticket_types=offered)


ROUTES: list[HTTPRouteHandler] = [choose]
