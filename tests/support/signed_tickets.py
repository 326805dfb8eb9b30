"""The tickets of a booking as gates and fans see them."""

from frontrow.boxoffice.tickets.model.tickets import Ticket
from frontrow.web.platform.platform import Platform


async def signed_tickets(platform: Platform, booking_id: str) -> list[Ticket]:
    """The ledger's tickets with their signed codes."""
    return [platform.box_office.renderer.signed(one) for one in await platform.ledger.tickets.tickets_of(booking_id)]
