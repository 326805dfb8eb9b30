"""After a declined card or a hold that ended: the same seats once more, with the same tickets, extras and code."""

from typing import Any

from litestar import Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from frontrow.boxoffice.checkout.purchases import is_held
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass, VisitEnded
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, choice_of
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.core.errors import FrontrowError, Unavailable
from frontrow.web.http.access import Access
from frontrow.web.platform.injected import FromCaller, FromPlatform
from frontrow.web.platform.platform import Platform
from frontrow.web.site.fans.booking_choices import choose_with_code, offered_only, refuse_choice
from frontrow.web.site.fans.seats import REFUSALS, REFUSED, pass_for
from frontrow.web.site.form_answers import tell
from frontrow.web.site.routes import FromForm, action, go_to

Asked = Request[Any, Any, Any]


@action("/checkout/{booking_id:str}/again", "hold_again", Access.OWNER)
async def hold_again(
    request: Asked, platform: FromPlatform, caller: FromCaller, booking_id: FromPath[str], form: FromForm
) -> Response[bytes]:
    """Hold the seats of an ended booking again, if nobody has taken one of them."""
    booking = await platform.own_bookings.find(caller, booking_id)
    event_id = booking.event_id
    if is_held(booking, platform.clock()):
        return go_to(f"/checkout/{booking.id}")
    visit = pass_for(platform, caller, event_id)
    if visit is None:
        return go_to(f"/v1/events/{event_id}/room/")
    held = await platform.box_office.purchases.held_by(event_id, visit.fan)
    if held is not None:  # pressed twice, or other seats were chosen in another tab: those stay
        return go_to(f"/checkout/{held.id}")
    wanted = await platform.booking_views.seat_ids(event_id, booking.seats)
    try:
        hold = await platform.box_office.purchases.place_or_change(event_id, visit, wanted)
    except Unavailable:
        raise
    except FrontrowError as error:
        if isinstance(error, VisitEnded):
            await platform.room.passes.end_bought(visit, platform.box_office.purchases)
        return tell(request, f"/checkout/{booking.id}", {"refusal": REFUSALS.get(error.code, REFUSED)})
    again = await platform.own_bookings.find(caller, hold.booking_id)
    return await _choose_again(request, platform, visit, booking, again)


async def _choose_again(
    request: Asked, platform: Platform, visit: ShopPass, before: Booking, booking: Booking
) -> Response[bytes]:
    """Go to the checkout with what was chosen before. What is not possible any more is said there."""
    event = platform.box_office.sales.get(booking.event_id).event
    choice = choice_of(event, decode_lines(before.price_lines))
    if choice == BookingChoice():
        return go_to(f"/checkout/{booking.id}")
    without = BookingChoice(offered_only(event, choice.types, ""), choice.add_ons)
    try:
        refused = await choose_with_code(request, platform, booking, visit, choice, without)
    except Unavailable:
        raise
    except FrontrowError as error:
        refused = error
    if refused is not None:
        return refuse_choice(request, booking, None, refused, choice.code)
    return go_to(f"/checkout/{booking.id}")


ROUTES: list[HTTPRouteHandler] = [hold_again]
