"""What the owner of held seats does with them: keep them longer, give them back, begin to pay, pay.

This is the one policy of all doors (lane, API, pages), which only translate. Each act needs a visit to the shop: a pass
for the booking's event (B17). A live hold keeps its visit: while its seats are held, the pass they were chosen with is
good enough even after it has run out. Whether a visit was ended is checked where the pass is read.
"""

from typing import Final

from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutResult
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.model.bookings import HOLD_STATES, Booking, StaleFence
from frontrow.boxoffice.model.hold_values import ShopPass
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Refused, Unauthorised

MOST_TIMES: Final = 2  # a hold lasts at most so many times its event's time to hold, however often it is extended
KEPT_AFTER_S: Final = 5  # a visit outlasts the hold that keeps it by this, so that its end can be noticed first


class HoldFull(Refused):
    """The hold has lasted as long as it may."""

    code = "hold_cannot_be_extended"


def kept_until_s(booking: Booking) -> int:
    """Until when a live hold keeps its visit."""
    return -(-booking.hold_expires_at_us // US_PER_S) + KEPT_AFTER_S


def held_now(booking: Booking, now_us: int) -> bool:
    """Whether the booking's seats are held and not sold."""
    return booking.state in HOLD_STATES and booking.live(now_us)


class Purchases:
    """Everything between choosing seats and owning tickets."""

    def __init__(self, sales: Sales, holds: HoldService, checkout: Checkout, clock: Clock) -> None:
        self._sales, self._holds, self._checkout, self._clock = sales, holds, checkout, clock

    def need_visit(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> ShopPass:
        """The visit that allows acting on this booking, or 401. `fence`, if given, must be the booking's."""
        now_us = self._clock()
        if visit is None or visit.event_id != booking.event_id:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=booking.event_id)
        kept = visit.id == booking.session and held_now(booking, now_us)
        if now_us >= visit.expires_at_us and not kept:
            raise Unauthorised("the pass has ended; join the waiting room again", event=booking.event_id)
        if fence is not None and fence != booking.fence:
            raise StaleFence(booking.id, fence)
        return visit

    async def extend(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """A later end of the hold, within the event's bound."""
        self.need_visit(booking, visit, fence)
        hold_us = self._sales.get(booking.event_id).hold_us
        end_us = min(self._clock() + hold_us, booking.created_at_us + MOST_TIMES * hold_us)
        if booking.live(self._clock()) and end_us <= booking.hold_expires_at_us:
            raise HoldFull("this hold has lasted as long as it may", booking=booking.id)
        return await self._holds.extend(booking.id, booking.fence, end_us)

    async def release(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """The seats go back on sale, and what was opened at the provider is voided; the visit goes on."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.release(booking.id, booking.fence)

    async def begin(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> CheckoutResult:
        """Open the payment, for the provider's own form."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.begin(booking.id, booking.fence, loaded=booking)

    async def step_back(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """Void the open payment and keep the seats, to pay otherwise."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.step_back(booking.id, booking.fence)

    async def pay(
        self, booking: Booking, visit: ShopPass | None, method: str, fence: int | None = None
    ) -> CheckoutResult:
        """Pay with this method; a booking that costs nothing needs none."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.pay(booking.id, booking.fence, method or "none", loaded=booking)
