"""The pass of a booking that gives priority (B8)."""

from frontrow.boxoffice.checkout.priority import NoPriority, check_priority
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.core.clock import US_PER_S
from frontrow.web.platform.platform import Platform


async def make_priority_pass(platform: Platform, booking: Booking) -> tuple[str, int]:
    """The one pass of a booking that gives priority (B8), and when it ends. Asked for again it is the same."""
    now_us = platform.clock()
    check_priority(booking, await platform.ledger.payments.payments_of(booking.id), now_us)
    first_us = await platform.ledger.messages.first_seen("priority", booking.id, now_us)
    text, expires_s = platform.room.passes.beside_the_line(booking.event_id, booking.fan, booking.id, first_us)
    if platform.clock() >= expires_s * US_PER_S:
        raise NoPriority("the pass was fetched and has run out; join the waiting room", booking=booking.id)
    return text, expires_s
