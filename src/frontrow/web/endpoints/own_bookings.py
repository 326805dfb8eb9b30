"""The caller's own bookings. Another person's booking answers 404."""

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound
from frontrow.boxoffice.holds.model.hold_values import ShopPass
from frontrow.boxoffice.messages.mail_links import LinkPurpose
from frontrow.boxoffice.people.people import People
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.http.access import Caller


class OwnBookings:
    """Loads bookings for the people they belong to."""

    def __init__(self, ledger: SqlLedger, people: People, purchases: Purchases, room: WaitingRoom) -> None:
        self._ledger, self._people, self._purchases, self._room = ledger, people, purchases, room

    async def find(self, caller: Caller, booking_id: str) -> Booking:
        """The booking, if it is the caller's."""
        booking = await self._ledger.booking(booking_id)
        if booking is None or not await self.may_change(caller, booking):
            raise BookingNotFound(booking_id)
        return booking

    async def find_seen(self, caller: Caller, booking_id: str) -> Booking:
        """The booking, if the caller may look at it: as its owner, or by a link from a message about it."""
        purposes = (LinkPurpose.BOOKING.value, LinkPurpose.PRIORITY.value)
        if any((purpose, booking_id) in caller.links for purpose in purposes):
            booking = await self._ledger.booking(booking_id)
            if booking is not None:
                return booking
        return await self.find(caller, booking_id)

    async def may_change(self, caller: Caller, booking: Booking) -> bool:
        """Whether the caller may change the booking, not only look at it."""
        if caller.owns(booking):
            return True
        return caller.kind == "fan" and await self._people.fans.owns_booking(caller.id, booking)

    def need_visit(self, caller: Caller, booking: Booking, fence: int | None = None) -> ShopPass:
        """The caller's visit for acting on this booking, or 401 (`Purchases.need_visit`). Counts as a sign of life."""
        visit = self._purchases.need_visit(booking, caller.shop_pass or caller.past_pass, fence)
        self._room.visits.hear(visit.id)
        return visit
