"""What a fan chooses for held seats: ticket types, add-ons, a code. Unknown codes are counted as guesses."""

from typing import Annotated, Any

import msgspec
from litestar import Request, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.hold_values import ShopPass
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, choice_of, offered_types
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.boxoffice.pricing.model.sale_options import fold_code
from frontrow.core.errors import InvalidInput
from frontrow.web.api import FromCaller, FromPlatform
from frontrow.web.api.access import Access, client_ip, need_visit, own_booking
from frontrow.web.api.booking_bodies import BookingView, booking_view, seat_ids
from frontrow.web.endpoints.event_details import TicketTypeView, type_views
from frontrow.web.endpoints.seats import SeatName
from frontrow.web.platform.platform import Platform

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
    booking = await own_booking(platform, caller, booking_id)
    visit = need_visit(platform, caller, booking)
    names = dict(zip(await seat_ids(platform, booking.event_id, booking.seats), booking.seats, strict=True))
    unknown = sorted(data.types.keys() - names.keys())
    if unknown:
        raise InvalidInput(f"{unknown[0]} is not among the held seats", param="types")
    choice = BookingChoice({names[seat]: key for seat, key in data.types.items()}, data.add_ons, fold_code(data.code))
    changed = await choose_for(platform, booking, visit, choice, client_ip(platform, request))
    view = await booking_view(platform, changed, tax=True)
    event = platform.box_office.sales.get(booking.event_id).event
    offered = type_views(event, offered_types(event, choice.code))
    return ChosenBookingView(**msgspec.structs.asdict(view), ticket_types=offered)


async def choose_for(platform: Platform, booking: Booking, visit: ShopPass, choice: BookingChoice, ip: str) -> Booking:
    """Make the choice. A new code counts as a try until it proves right, so that codes cannot be guessed."""
    event = platform.box_office.sales.get(booking.event_id).event
    is_new = bool(choice.code) and choice.code != choice_of(event, decode_lines(booking.price_lines)).code
    limits = platform.people.sign_in_limits
    who = f"{booking.event_id} {booking.fan}"
    if is_new:
        await limits.discount.count_attempt(who)
        await limits.discount_ip.count_attempt(ip)
    changed = await platform.box_office.purchases.choose(booking, visit, choice)
    if is_new:
        await limits.discount.forgive_attempt(who)
        await limits.discount_ip.forgive_attempt(ip)
    return changed


ROUTES: list[HTTPRouteHandler] = [choose]
