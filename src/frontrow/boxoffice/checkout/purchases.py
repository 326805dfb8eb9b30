"""What the owner of held seats can do with them: choose others, extend the hold, release it, begin to pay, pay.

The policy is here, once. The fast path, the API and the pages only translate. Each action needs a visit to the shop,
which is a pass for the booking's event (B17). A live hold keeps its visit: while the seats are held, the pass they were
chosen with is accepted even after it has expired. Whether a visit was ended is checked where the pass is read.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutResult
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, BookingState, HoldEnded, StaleFence
from frontrow.boxoffice.holds.model.holds import Hold, IdempotencyMismatch, ShopPass, extended_end_us
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, CARD, PaymentMethod, find_method
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import NotFound, Overloaded, Unauthorised

MAX_CHANGES: Final = 4  # tries when other tabs of the same fan are faster
KEPT_AFTER_S: Final = 5  # a visit outlasts the hold that keeps it, so that the hold's end is noticed first


def kept_until_s(hold_expires_at_us: int) -> int:
    """When the visit that a live hold keeps ends, in seconds."""
    return -(-hold_expires_at_us // US_PER_S) + KEPT_AFTER_S


def is_held(booking: Booking, now_us: int) -> bool:
    """Whether the booking's seats are held at `now_us` and not sold."""
    return booking.state in HOLD_STATES and booking.live(now_us)


def keeps_visit(booking: Booking, now_us: int) -> bool:
    """Whether the booking keeps its visit: seats that wait for slow money need none."""
    return is_held(booking, now_us) and not booking.is_ordered


class Purchases:
    """The steps from held seats to tickets."""

    def __init__(self, sales: Sales, holds: HoldService, checkout: Checkout, clock: Clock) -> None:
        self._sales, self._holds, self._checkout, self._clock = sales, holds, checkout, clock

    def need_visit(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> ShopPass:
        """The visit that allows acting on this booking, or `Unauthorised`. A given `fence` must be the booking's."""
        now_us = self._clock()
        if visit is None or visit.event_id != booking.event_id:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=booking.event_id)
        kept = visit.id == booking.visit_id and keeps_visit(booking, now_us)
        if now_us >= visit.expires_at_us and not kept:
            raise Unauthorised("the pass has ended; join the waiting room again", event=booking.event_id)
        if fence is not None and fence != booking.fence:
            raise StaleFence(booking.id, fence)
        return visit

    def just_held(self, booking_id: str, method: str) -> Booking | None:
        """A hold as this server has placed it, to pay it once with this card without reading it again.

        It may be out of date. Paying by card decides nothing before its first write, which compares state, fence, end
        and price with the ledger, and goes on with what the ledger has. Whatever decides earlier needs the booking as
        it is: other methods, events with limits to count, seats that cost nothing.
        """
        recent = self._holds.held.recent
        booking = recent.find(booking_id, self._clock())
        if booking is None or not booking.amount_minor or not method or find_method(ALL_METHODS, method):
            return None
        event = self._event_of(booking)
        if event is None or event.payments.methods or _counts_uses(event):
            return None
        recent.forget(booking_id)
        return booking

    async def place_or_change(
        self, event_id: str, visit: ShopPass, seat_ids: Sequence[str], wish: Wish | None = None
    ) -> Hold:
        """Hold these seats, or the best for the wish: instead of those that the fan holds already, if there are any.

        Two requests of one fan at once, from two tabs, end in one hold: both make the same booking id, and the second
        one changes what the first one made.
        """
        for _ in range(MAX_CHANGES):
            held, turn = await self._holds.held.of_fan(event_id, visit.fan)
            if held is not None:
                return await self.change(held, visit, seat_ids, wish)
            try:
                if wish is not None:
                    return await self._holds.place_best(event_id, visit, wish, turn=turn)
                return await self._holds.place(event_id, visit, seat_ids, turn=turn)
            except (IdempotencyMismatch, HoldEnded):  # another tab was faster, or its hold has just ended
                continue
        raise Overloaded("your seats are being changed by another request; try again", retry_after_s=0.5)

    async def change(
        self,
        booking: Booking,
        visit: ShopPass | None,
        seat_ids: Sequence[str],
        wish: Wish | None = None,
        fence: int | None = None,
    ) -> Hold:
        """Give the hold other seats; on any refusal it keeps its own. A payment that was opened is voided first."""
        visit = self.need_visit(booking, visit, fence)
        if booking.state is BookingState.PAYING:
            booking = await self._checkout.step_back(booking.id, booking.fence)
        if wish is not None:
            return await self._holds.change_best(booking, visit, wish)
        return await self._holds.change(booking, visit, seat_ids)

    async def held_by(self, event_id: str, fan: str) -> Booking | None:
        """The seats that this fan holds now."""
        return (await self._holds.held.of_fan(event_id, fan))[0]

    async def extend(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """Extend the hold, within the event's bound."""
        self.need_visit(booking, visit, fence)
        end_us = extended_end_us(booking, self._sales.get(booking.event_id).hold_us, self._clock())
        return await self._holds.held.extend(booking.id, booking.fence, end_us)

    async def release(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """Put the seats back on sale and void what was opened at the provider. The visit goes on."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.release(booking.id, booking.fence)

    async def begin(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> CheckoutResult:
        """Open a payment for the provider's own form."""
        self.need_visit(booking, visit, fence)
        booking = await self._count_limits(booking)
        return await self._checkout.begin(booking.id, booking.fence, loaded=booking, event=self._event_of(booking))

    async def step_back(self, booking: Booking, visit: ShopPass | None, fence: int | None = None) -> Booking:
        """Void the open payment and keep the seats, to pay another way."""
        self.need_visit(booking, visit, fence)
        return await self._checkout.step_back(booking.id, booking.fence)

    async def pay(
        self, booking: Booking, visit: ShopPass | None, method: str, fence: int | None = None
    ) -> CheckoutResult:
        """Pay with this method: our id of one, or the provider's id of a card. A booking that costs nothing needs
        none."""
        self.need_visit(booking, visit, fence)
        booking = await self._count_limits(booking)
        return await self._checkout.pay(
            booking.id, booking.fence, method or "none", loaded=booking, event=self._event_of(booking)
        )

    async def methods(self, booking: Booking) -> Sequence[PaymentMethod]:
        """What the booking can be paid with now, in the order in which it is offered."""
        event = self._event_of(booking)
        return await self._checkout.offered(booking, event) if event is not None else (CARD,)

    def _event_of(self, booking: Booking) -> Event | None:
        """The event, if it is sold here. What was held before may still be paid, with a card."""
        try:
            return self._sales.get(booking.event_id).event
        except NotFound:
            return None

    async def choose(
        self, booking: Booking, visit: ShopPass | None, choice: BookingChoice, fence: int | None = None
    ) -> Booking:
        """Change ticket types, add-ons and the code of held seats."""
        self.need_visit(booking, visit, fence)
        sale = self._sales.get(booking.event_id)
        return await self._checkout.choose(booking, choice, sale.event, sale.plan)

    async def _count_limits(self, booking: Booking) -> Booking:
        """Count a hold in the event's shared limits, also if its fan has chosen nothing. Its price stays.

        A code that unlocks ticket types counts from now on only if one of them was chosen.
        """
        try:
            sale = self._sales.get(booking.event_id)
        except NotFound:  # not sold here any more; it may still be paid
            return booking
        if not _counts_uses(sale.event) or booking.state is not BookingState.HELD:
            return booking
        return await self._checkout.count_limits(booking, sale.event, sale.plan)


def _counts_uses(event: Event) -> bool:
    """Whether a hold of this event is counted in shared limits when it is paid."""
    return bool(event.limits) or any(one.unlocks for one in event.discounts)
