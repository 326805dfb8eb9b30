"""What happens to seats that are already held: changed, extended, released, sold or freed.

The ledger decides. The claim store, this server's seat cache and the map follow. If the second step fails, claim
recovery soon makes the claim store agree with the ledger again.
"""

import asyncio
from collections.abc import Callable, Sequence

from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.model.bookings import HOLD_STATES, Booking, Origin
from frontrow.boxoffice.holds.model.claims import SeatClaim, sold_seat
from frontrow.boxoffice.holds.model.holds import (
    ExpiredHold,
    Hold,
    IdempotencyMismatch,
    NewHold,
    PlacedHold,
    SeatsTaken,
    ShopPass,
)
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.recent_holds import RecentHolds
from frontrow.boxoffice.pricing.model.prices import Quote, decode_lines, encode_lines
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, NotFound, Unavailable

# Called with seats of an event that may have changed, so that the map can be updated.
SeatChangeListener = Callable[[str, Sequence[int]], None]


class HeldSeats:
    """Extends and releases holds, and passes the ledger's decisions on to the claim store and the map."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        on_change: SeatChangeListener | None = None,
        on_doubt: Callable[[str], None] | None = None,
    ) -> None:
        self._sales, self._claims, self._ledger, self._clock = sales, claims, ledger, clock
        self._on_change = on_change
        self._on_doubt = on_doubt  # called when the claim store is lost or disagrees with the ledger
        self.recent = RecentHolds()

    async def of_fan(self, event_id: str, fan: str) -> tuple[Booking | None, int]:
        """The live hold of a fan who chooses seats, and how many bookings they had. An offer of the waitlist is none,
        nor are seats that wait for slow money."""
        bookings = await self._ledger.bookings_of(event_id, fan)
        now_us = self._clock()
        live = [one for one in bookings if one.state in HOLD_STATES and one.live(now_us) and not one.is_ordered]
        return next((one for one in live if one.origin is not Origin.OFFER), None), len(bookings)

    def show_placed(self, sale: Sale, placed: PlacedHold, quote: Quote, visit_id: str, now_us: int) -> Hold:
        """Update the seat cache and the map by a hold that the ledger has written, and build the fan's view of it."""
        self.recent.remember(placed, quote, encode_lines(quote.lines), visit_id, now_us)
        if placed.repeated:  # its seats or its end may differ from what was claimed now
            sale.seats.mark_taken(placed.seats, placed.fan, placed.expires_at_us, now_us)
        for ended in placed.ended:
            sale.seats.mark_free(seat for seat in ended.seats if seat not in placed.seats)
            self.notify_change(sale.event.id, ended.seats)
        self.notify_change(sale.event.id, placed.seats)
        ids = sale.plan.seat_ids
        amount_minor, lines = quote.total_minor, quote.lines
        if placed.repeated:
            amount_minor, lines = placed.amount_minor, decode_lines(placed.price_lines)
        return Hold(
            placed.booking_id,
            placed.event_id,
            placed.fan,
            tuple([ids[seat] for seat in placed.seats]),
            placed.seats,
            placed.fence,
            placed.expires_at_us,
            amount_minor,
            quote.currency,
            placed.repeated,
            lines,
        )

    async def release_refused(
        self, sale: Sale, booking_id: str, seats: Sequence[int], error: FrontrowError, now_us: int
    ) -> None:
        """Release a claim that the ledger refused, except for seats that this booking already has."""
        if isinstance(error, IdempotencyMismatch):
            booking = await self._ledger.booking(booking_id)
            own = booking.seats if booking is not None and booking.live(now_us) else ()
            seats = [seat for seat in seats if seat not in own]
        await self._claims.release(sale.event.id, seats, booking_id)
        if isinstance(error, SeatsTaken):  # the claim store granted a seat that is not free
            self.report_doubt(sale.event.id)

    async def change(self, sale: Sale, booking: Booking, seats: Sequence[int]) -> Hold:
        """Write other seats of a live hold, which the claim store has granted. A refused hold keeps those it has."""
        now_us, event = self._clock(), sale.event
        quote = sale.quote(seats)
        wish = NewHold(
            booking.id,
            event.id,
            booking.fan,
            tuple(seats),
            now_us,
            max(booking.hold_expires_at_us, now_us + 1),
            quote.total_minor,
            event.currency,
            quote.seat_totals_minor,
            event.max_per_person,
            price_lines=encode_lines(quote.lines),
        )
        try:
            changed = await self._ledger.change_hold(wish, booking.fence)
        except Unavailable:
            raise  # it may be written: the claim stays until claim recovery compares it with the ledger
        except FrontrowError as error:
            await self._give_up(sale, booking.id, seats)
            raise sale.new_refusal(error.seats) if isinstance(error, SeatsTaken) else error from error
        held = changed.booking
        self.recent.forget(held.id)
        sale.seats.mark_taken(held.seats, held.fan, held.hold_expires_at_us, now_us)
        if changed.left:
            await self.freed(event.id, changed.left, held.id)
        self.notify_change(event.id, held.seats)
        names = tuple(sale.plan.seat_ids[seat] for seat in held.seats)
        return Hold(
            held.id,
            event.id,
            held.fan,
            names,
            held.seats,
            held.fence,
            held.hold_expires_at_us,
            held.amount_minor,
            held.currency,
            lines=quote.lines,
        )

    async def _give_up(self, sale: Sale, booking_id: str, seats: Sequence[int]) -> None:
        """Release those of the claimed seats that the booking does not have in the ledger."""
        booking = await self._ledger.booking(booking_id)
        own = booking.seats if booking is not None and booking.live(self._clock()) else ()
        extra = [seat for seat in seats if seat not in own]
        await self._claims.release(sale.event.id, extra, booking_id)
        sale.seats.mark_free(extra)

    async def extend(self, booking_id: str, fence: int, expires_at_us: int) -> Booking:
        """Move the end of a live hold to a later time."""
        booking = await self._ledger.extend_hold(booking_id, fence, self._clock(), expires_at_us)
        await self.held_longer(booking)
        return booking

    async def held_longer(self, booking: Booking) -> None:
        """The ledger moved the end of this hold to a later time."""
        now_us = self._clock()
        self.recent.forget(booking.id)
        claim = SeatClaim(booking.event_id, booking.seats, booking.fan, booking.id, booking.hold_expires_at_us)
        await self._claims.claim(claim, now_us)
        self._sales.get(booking.event_id).seats.mark_taken(
            booking.seats, booking.fan, booking.hold_expires_at_us, now_us
        )

    async def release(self, booking_id: str, fence: int) -> Booking:
        """Give the seats of a hold back."""
        booking = await self._ledger.release_hold(booking_id, fence, self._clock())
        await self.freed(booking.event_id, booking.seats, booking.id)
        return booking

    async def sold(self, booking: Booking) -> None:
        """Mark the seats of a booking that the ledger confirmed as sold."""
        now_us = self._clock()
        seats = [sold_seat(seat, booking.fan, booking.id, now_us) for seat in booking.seats]
        await self._claims.put(booking.event_id, seats, now_us)
        self._sales.get(booking.event_id).seats.mark_taken(booking.seats, booking.fan, 0, now_us)
        self.notify_change(booking.event_id, booking.seats)

    async def freed(self, event_id: str, seats: Sequence[int], booking_id: str) -> None:
        """The ledger ended this booking (released, expired, declined, cancelled, refunded): its seats are on sale.

        An event that this server has closed has no claims and no map here.
        """
        self.recent.forget(booking_id)
        try:
            await self._claims.release(event_id, seats, booking_id)
            sale = self._sales.get(event_id)
        except NotFound:
            return
        sale.seats.mark_free(seats)
        self.notify_change(event_id, seats)

    async def expired(self, holds: Sequence[ExpiredHold]) -> None:
        """Release the claims of holds that the sweeper ended. One that cannot be released does not block the others."""
        freed = (self.freed(hold.event_id, hold.seats, hold.booking_id) for hold in holds)
        for failure in await asyncio.gather(*freed, return_exceptions=True):
            if isinstance(failure, BaseException):
                raise failure

    def notify_change(self, event_id: str, seats: Sequence[int]) -> None:
        """Notify the map that these seats may have changed."""
        if self._on_change is not None:
            self._on_change(event_id, seats)

    def report_doubt(self, event_id: str) -> None:
        """Have claim recovery check the claim store of this event."""
        if self._on_doubt is not None:
            self._on_doubt(event_id)


def new_hold(
    sale: Sale,
    shop_pass: ShopPass,
    booking_id: str,
    seats: tuple[int, ...],
    quote: Quote,
    now_us: int,
    key: str | None,
    request: str,
) -> NewHold:
    """What the ledger is asked to write for claimed seats."""
    event = sale.event
    return NewHold(
        booking_id,
        event.id,
        shop_pass.fan,
        seats,
        now_us,
        now_us + sale.hold_us,
        quote.total_minor,
        event.currency,
        quote.seat_totals_minor,
        event.max_per_person,
        shop_pass.id,
        key,
        request,
        encode_lines(quote.lines),
        shop_pass.ends_with_sale,
    )
