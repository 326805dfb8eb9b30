"""Builds the price summary and the receipt of a booking: its lines as sold, tax, payment, refunds, the seller then."""

from collections.abc import Sequence
from dataclasses import replace as replace_in_line
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.checkout.model.invoices import credit_lines
from frontrow.boxoffice.checkout.model.receipts import MoneyMoved, PriceSummary, Receipt, ReceiptLine, Seller
from frontrow.boxoffice.checkout.ports import CheckoutLedger
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.payments.model.payments import ENDED, PaymentState
from frontrow.boxoffice.pricing.model.prices import DIFFERENT, LineKind, PriceLine, decode_lines, tax_line
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.seats.model.seat_names import SeatLabels, seat_name
from frontrow.boxoffice.tickets.ticket_renderer import SoldBooking, TicketRenderer
from frontrow.shared.money import Money

PAID: Final = frozenset({PaymentState.AUTHORISED, PaymentState.CAPTURING, PaymentState.CAPTURED})


class Receipts:
    """Builds the receipts of paid bookings."""

    def __init__(self, ledger: CheckoutLedger, renderer: TicketRenderer) -> None:
        self._ledger, self._renderer = ledger, renderer

    async def of(self, booking_id: str, sold: SoldBooking | None = None) -> Receipt | None:
        """The receipt, or None if nothing was paid. `sold` is the booking, if the caller has looked it up."""
        sold = sold or await self._renderer.look_up(booking_id)
        if sold is None or sold.booking.confirmed_at_us is None:
            return None
        booking, event, venue = sold.booking, sold.event, sold.venue
        sold_at_us = sold.booking.confirmed_at_us
        all_payments = await self._ledger.payments.payments_of(booking_id)
        payments = [one for one in all_payments if one.state in PAID]
        if all_payments and not payments:  # voided or lapsed: nothing was taken
            return None
        paid = payments[-1].amount_minor if payments else booking.amount_minor
        refunds = await self._ledger.payments.refunds_of(booking_id)
        lines = await self._lines(booking, event, paid)
        ended = {one.id for one in all_payments if one.state in ENDED}
        earlier = [one for one in refunds if payments and one.payment_id in ended and one.worth_minor]
        if earlier and booking.price_lines:  # returned before this payment: it was not paid for
            lines += await self._returned_lines(event, earlier)
        seller, rate = await self._seller_then(event, sold_at_us)
        return Receipt(
            booking.id,
            event.name,
            event.starts_at_us,
            venue.time_zone if venue else "UTC",
            seller,
            sold.buyer,
            lines,
            rate,
            MoneyMoved(sold_at_us, Money(paid, booking.currency)),
            _refunds(refunds),
        )

    async def summary(self, booking: Booking, event: Event) -> PriceSummary:
        """What the booking costs, or did when it was bought."""
        rate = await self._tax_rate(booking, event)
        lines = await self._lines(booking, event, booking.amount_minor)
        total = Money.total([line.amount for line in lines if not line.included], booking.currency)
        return PriceSummary(lines, total, rate)

    async def tax_lines(self, booking: Booking) -> tuple[PriceLine, ...]:
        """The line of the tax inside the price, if there is any."""
        rate = await self._tax_rate(booking, await self._ledger.catalogue.event(booking.event_id))
        lines = decode_lines(booking.price_lines)
        sold_minor = sum(line.amount_minor for line in lines if not line.included) if lines else booking.amount_minor
        return (tax_line(sold_minor, booking.currency, rate),) if rate else ()

    async def _tax_rate(self, booking: Booking, event: Event) -> int:
        """The rate as of the sale, or the present one while nothing is sold."""
        if booking.confirmed_at_us is not None:
            return (await self._seller_then(event, booking.confirmed_at_us))[1]
        if event.tax_basis_points is not None:
            return event.tax_basis_points
        return (await self.seller_of(event.organiser_id)).tax_basis_points

    async def seller_of(self, organiser_id: str) -> Seller:
        """The seller's present details, or the organiser's name if none were given."""
        return await self._ledger.organiser.seller(organiser_id) or await self._seller_by_name(organiser_id)

    async def _seller_then(self, event: Event, sold_at_us: int) -> tuple[Seller, int]:
        """The seller and the tax rate as of a sale."""
        seller = await self._ledger.organiser.seller_at(event.organiser_id, sold_at_us)
        seller = seller or await self._seller_by_name(event.organiser_id)
        own_rate = await self._ledger.organiser.tax_rate_at(event, sold_at_us)
        return seller, seller.tax_basis_points if own_rate is None else own_rate

    async def _seller_by_name(self, organiser_id: str) -> Seller:
        organiser = await self._ledger.people.organiser(organiser_id)
        return Seller(organiser_id, organiser.name if organiser is not None else organiser_id)

    async def _lines(self, booking: Booking, event: Event, paid_minor: int) -> tuple[ReceiptLine, ...]:
        """The lines as sold. A booking from before lines were stored has a line per seat, if they still add up."""
        names, labels = await self._renderer.seat_names(event), await self._renderer.seat_labels(event)
        lines = decode_lines(booking.price_lines)
        if not lines:
            prices = await self._ledger.payments.seat_prices(booking.id)
            if not prices or sum(prices.values()) != paid_minor:
                return (ReceiptLine(LineKind.SEAT, event.name, Money(paid_minor, booking.currency)),)
            lines = tuple(
                PriceLine(LineKind.SEAT, "", 1, price, price, (seat,)) for seat, price in sorted(prices.items())
            )
        return tuple(_named_line(line, names, labels, booking.currency) for line in lines)

    async def _returned_lines(self, event: Event, refunds: Sequence[Refund]) -> tuple[ReceiptLine, ...]:
        """What refunds took out of a booking before it was paid, as negative amounts."""
        names, labels = await self._renderer.seat_names(event), await self._renderer.seat_labels(event)
        found: list[ReceiptLine] = []
        for refund in refunds:
            whole = replace(refund, amount_minor=refund.worth_minor, fee_minor=0)
            lines = credit_lines(whole, lambda seat: labels.text(seat_name(names, seat)))
            named = [line for line in lines if line.name or line.seats]
            rest = Money.total([line.amount for line in lines if not (line.name or line.seats)], refund.currency)
            found += [replace_in_line(named[0], amount=named[0].amount + rest), *named[1:]]
        return tuple(found)


def _named_line(line: PriceLine, names: Sequence[str], labels: SeatLabels, currency: str) -> ReceiptLine:
    return ReceiptLine(
        line.kind,
        line.name,
        Money(line.amount_minor, currency),
        line.quantity,
        None if line.unit_minor == DIFFERENT else Money(line.unit_minor, currency),
        tuple(labels.text(seat_name(names, seat)) for seat in line.seats),
        line.included,
        tuple(seat_name(names, seat) for seat in line.seats),
    )


def _refunds(refunds: Sequence[Refund]) -> tuple[MoneyMoved, ...]:
    return tuple(
        MoneyMoved(one.changed_at_us, Money(one.amount_minor, one.currency))
        for one in refunds
        if one.state is RefundState.DONE
    )
