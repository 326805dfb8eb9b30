"""The pass of a booking that gives priority (B8)."""

from frontrow.boxoffice.checkout.model.outage_priority import NoPriority
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.core.clock import US_PER_S
from frontrow.web.platform.platform import Platform


async def make_priority_pass(platform: Platform, booking: Booking) -> tuple[str, int]:
    """The one pass of a booking that gives priority (B8), and when it ends. Asked for again it is the same."""
    first_us = await platform.box_office.checkout.claim_priority(booking)
    text, expires_s = platform.room.passes.beside_the_line(booking.event_id, booking.fan, booking.id, first_us)
    if platform.clock() >= expires_s * US_PER_S:
        raise NoPriority("the pass was fetched and has run out; join the waiting room", booking=booking.id)
    return text, expires_s
