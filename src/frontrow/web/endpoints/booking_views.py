"""Bookings and refunds as their owners see them, made from the ledger's records."""

from collections.abc import Sequence

from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutResult
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.events.ports import Catalogue
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState, HoldEnded
from frontrow.boxoffice.pricing.model.prices import decode_lines
from frontrow.boxoffice.refunds.model.refund_lines import RefundLine, RefundLineKind, decode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import Refund
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.clock import Clock
from frontrow.core.errors import NotFound, Refused
from frontrow.shared.local_time import time_text
from frontrow.web.http.bodies.bookings import BookingView, RefundLineView, RefundView, checkout_view, line_views
from frontrow.web.http.bodies.json_values import MoneyView


class BookingViews:
    """Makes the bodies of bookings and refunds; knows the seats of every event by name."""

    def __init__(
        self,
        sales: Sales,
        tickets: TicketRenderer,
        receipts: Receipts,
        checkout: Checkout,
        catalogue: Catalogue,
        clock: Clock,
    ) -> None:
        self._sales, self._tickets, self._receipts, self._checkout = sales, tickets, receipts, checkout
        self._catalogue, self._clock = catalogue, clock

    async def seat_ids(self, event_id: str, seats: tuple[int, ...]) -> list[str]:
        """The public ids of seats of an event, also of one that is not sold on this server."""
        names = await self.all_seat_ids(event_id)
        return [names[seat] for seat in seats if seat < len(names)]

    async def all_seat_ids(self, event_id: str) -> tuple[str, ...]:
        """The public ids of all seats of an event, by index."""
        try:
            return self._sales.get(event_id).plan.seat_ids
        except NotFound:
            return await self._tickets.seat_names(await self._catalogue.event(event_id))

    async def indexes(self, booking: Booking, seats: list[str]) -> list[int] | None:
        """The seats' indexes; None when none are named (all)."""
        if not seats:
            return None
        names = await self.seat_ids(booking.event_id, booking.seats)
        indexes = dict(zip(names, booking.seats, strict=True))
        missing = [seat for seat in seats if seat not in indexes]
        if missing:
            raise Refused(f"not part of this booking: {', '.join(missing[:10])}", param="seats", seats=missing[:10])
        return sorted({indexes[seat] for seat in seats})

    async def view(self, booking: Booking, outcome: CheckoutResult | None = None, *, tax: bool = False) -> BookingView:
        """The booking. With `tax` its price has a line for the tax too."""
        live = booking.state in (BookingState.HELD, BookingState.PAYING)
        over = live and not booking.live(self._clock())
        names = await self.all_seat_ids(booking.event_id)
        taxes = await self._receipts.tax_lines(booking) if tax else ()
        return BookingView(
            booking.id,
            booking.event_id,
            "expired" if over else booking.state.value,
            [names[seat] for seat in booking.seats if seat < len(names)],
            MoneyView(booking.amount_minor, booking.currency),
            booking.fence,
            time_text(booking.created_at_us),
            time_text(booking.hold_expires_at_us) if live else None,
            time_text(booking.confirmed_at_us) if booking.confirmed_at_us else None,
            checkout_view(outcome) if outcome is not None else None,
            line_views((*decode_lines(booking.price_lines), *taxes), names, booking.currency),
        )

    async def current(self, booking: Booking) -> BookingView:
        """The booking with the state of its payment, if there is one."""
        if booking.state is not BookingState.PAYING:
            return await self.view(booking, tax=True)
        try:
            outcome = await self._checkout.check(booking.id, booking.fence)
        except HoldEnded:
            return await self.view(booking, tax=True)
        return await self.view(outcome.booking, outcome, tax=True)

    async def refund(self, refund: Refund, event_id: str) -> RefundView:
        return RefundView(
            refund.id,
            refund.booking_id,
            refund.state.value,
            await self.seat_ids(event_id, refund.seats),
            MoneyView(refund.amount_minor, refund.currency),
            MoneyView(refund.fee_minor, refund.currency),
            time_text(refund.created_at_us),
            await self.refund_lines(event_id, decode_refund_lines(refund.lines), refund.currency),
        )

    async def refund_lines(self, event_id: str, lines: Sequence[RefundLine], currency: str) -> list[RefundLineView]:
        """The lines of a refund with the ids of their seats."""
        return [
            RefundLineView(
                line.kind.value,
                line.name,
                line.quantity,
                MoneyView(line.amount_minor, currency),
                await self.seat_ids(event_id, line.seats),
                line.key if line.kind is RefundLineKind.ADD_ON else "",
            )
            for line in lines
        ]
