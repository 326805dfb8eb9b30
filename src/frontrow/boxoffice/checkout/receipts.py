"""Builds the receipt of a booking from the ledger: payment, seat prices, refunds, and the seller as of the sale."""

from collections.abc import Sequence
from typing import Final, Protocol

from frontrow.boxoffice.model.bookings import Booking
from frontrow.boxoffice.model.events import Event
from frontrow.boxoffice.model.payments import PaymentState, Refund, RefundState
from frontrow.boxoffice.model.receipts import MoneyMoved, Receipt, ReceiptLine, Seller
from frontrow.boxoffice.ports.ledger import Catalogue, TicketBook
from frontrow.boxoffice.ports.payments import PaymentBook
from frontrow.boxoffice.ports.people import PeopleBook
from frontrow.boxoffice.tickets.door_bundle import seat_name
from frontrow.boxoffice.tickets.ticket_desk import TicketDesk
from frontrow.core.money import Money

PAID: Final = frozenset({PaymentState.AUTHORISED, PaymentState.CAPTURING, PaymentState.CAPTURED})


class SellerBook(Protocol):
    """Who sold, and at which tax rate."""

    async def seller(self, organiser_id: str) -> Seller | None: ...

    async def seller_at(self, organiser_id: str, at_us: int) -> Seller | None: ...

    async def tax_rate_at(self, event: Event, at_us: int) -> int | None: ...


class ReceiptLedger(Protocol):
    """What receipts read."""

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def tickets(self) -> TicketBook: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def people(self) -> PeopleBook: ...

    @property
    def organiser(self) -> SellerBook: ...

    async def booking(self, booking_id: str) -> Booking | None: ...


class Receipts:
    """Builds the receipts of paid bookings."""

    def __init__(self, ledger: ReceiptLedger, desk: TicketDesk) -> None:
        self._ledger, self._desk = ledger, desk

    async def of(self, booking_id: str) -> Receipt | None:
        """The receipt, or None if nothing was paid."""
        booking = await self._ledger.booking(booking_id)
        if booking is None or booking.confirmed_at_us is None:
            return None
        payments = [one for one in await self._ledger.payments.payments_of(booking_id) if one.state in PAID]
        event = await self._ledger.catalogue.event(booking.event_id)
        paid = payments[-1].amount_minor if payments else booking.amount_minor
        venue = await self._ledger.catalogue.venue(event.venue_id)
        sold_at_us = booking.confirmed_at_us
        seller = await self._ledger.organiser.seller_at(event.organiser_id, sold_at_us)
        seller = seller or await self._seller_by_name(event.organiser_id)
        own_rate = await self._ledger.organiser.tax_rate_at(event, sold_at_us)
        rate = seller.tax_basis_points if own_rate is None else own_rate
        return Receipt(
            booking.id,
            event.name,
            event.starts_at_us,
            venue.time_zone if venue else "UTC",
            seller,
            await self._ledger.tickets.name_of_buyer(booking_id),
            await self._lines(booking, event, paid),
            rate,
            MoneyMoved(booking.confirmed_at_us, Money(paid, booking.currency)),
            _refunds(await self._ledger.payments.refunds_of(booking_id)),
        )

    async def seller_of(self, organiser_id: str) -> Seller:
        """The seller's present details, or the organiser's name if none were given."""
        return await self._ledger.organiser.seller(organiser_id) or await self._seller_by_name(organiser_id)

    async def _seller_by_name(self, organiser_id: str) -> Seller:
        organiser = await self._ledger.people.organiser(organiser_id)
        return Seller(organiser_id, organiser.name if organiser is not None else organiser_id)

    async def _lines(self, booking: Booking, event: Event, paid_minor: int) -> tuple[ReceiptLine, ...]:
        """One line per seat if the seats add up to what was paid; otherwise (seats were returned) one line in total."""
        prices = await self._ledger.payments.seat_prices(booking.id)
        if not prices or sum(prices.values()) != paid_minor:
            return (ReceiptLine(event.name, Money(paid_minor, booking.currency)),)
        names = await self._desk.seat_names(event)
        return tuple(
            ReceiptLine(seat_name(names, seat), Money(price, booking.currency))
            for seat, price in sorted(prices.items())
        )


def _refunds(refunds: Sequence[Refund]) -> tuple[MoneyMoved, ...]:
    return tuple(
        MoneyMoved(one.changed_at_us, Money(one.amount_minor, one.currency))
        for one in refunds
        if one.state is RefundState.DONE
    )
