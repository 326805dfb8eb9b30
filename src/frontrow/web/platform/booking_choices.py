"""The choice of ticket types, add-ons and a code for held seats, with its limit on guessed codes."""

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice, choice_of
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.web.platform.platform import Platform


async def choose_for(platform: Platform, booking: Booking, visit: ShopPass, choice: BookingChoice, ip: str) -> Booking:
    """Make the choice. A new code counts as a try until it proves right, so that codes cannot be guessed."""
    event = platform.box_office.sales.get(booking.event_id).event
    is_new = bool(choice.code) and choice.code != choice_of(event, decode_lines(booking.price_lines)).code
    limits = platform.box_office.code_limits
    if is_new:
        await limits.count_try(booking.event_id, booking.fan, ip)
    changed = await platform.box_office.purchases.choose(booking, visit, choice)
    if is_new:
        await limits.forgive_try(booking.event_id, booking.fan, ip)
    return changed
