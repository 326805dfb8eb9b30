"""Issues the invoice of a booking and the credit notes of its refunds, and draws them as PDF.

A document gets its number when somebody asks for it first: the buyer or the organiser. It is drawn from its own copy of
what was sold, so it looks the same for ever, whatever changes later.
"""

from collections.abc import AsyncIterator
from typing import Final

from frontrow.boxoffice.checkout.model.invoices import (
    Invoice,
    InvoiceNotFound,
    NothingToInvoice,
    check_taken,
    checked_billed_to,
    credit_document,
    credit_lines,
    invoice_document,
)
from frontrow.boxoffice.checkout.ports import CheckoutLedger
from frontrow.boxoffice.checkout.receipts import Receipts
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.seats.model.seat_names import seat_name
from frontrow.boxoffice.texts.locale_formats import language_of
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.core.clock import Clock
from frontrow.shared.heavy_work import HeavyWork, Urgency
from frontrow.shared.money import Money

PAGE: Final = 500
MAX_PAGES: Final = 10_000
DRAWN_WITHIN_S: Final = 20.0


class Invoices:
    """Issues and draws invoices."""

    def __init__(
        self,
        ledger: CheckoutLedger,
        receipts: Receipts,
        renderer: TicketRenderer,
        clock: Clock,
        work: HeavyWork | None = None,
    ) -> None:
        self._ledger, self._receipts, self._renderer, self._clock = ledger, receipts, renderer, clock
        self._work = work or HeavyWork()

    async def issue(self, booking: Booking, billed_to: str = "") -> list[Invoice]:
        """The booking's invoice and the credit notes of its refunds; those that are missing get their numbers.

        `billed_to` is a name and address for an invoice that is not issued yet.
        """
        billed = checked_billed_to(billed_to)
        await self._check_taken(booking)
        receipt = await self._receipts.of(booking.id)
        if receipt is None or not receipt.total:
            raise NothingToInvoice("nothing was paid for this booking, so it has no invoice", booking=booking.id)
        organiser_id, book = receipt.seller.organiser_id, self._ledger.invoices
        prefix = (await self._receipts.seller_of(organiser_id)).invoice_prefix
        invoice = await book.issue(
            organiser_id, booking.id, "", invoice_document(receipt, prefix, billed), self._clock()
        )
        event = await self._ledger.catalogue.event(booking.event_id)
        names, labels = await self._renderer.seat_names(event), await self._renderer.seat_labels(event)
        for refund in await self._ledger.payments.refunds_of(booking.id):
            if refund.state is RefundState.DONE and refund.amount_minor:
                lines = credit_lines(refund, lambda seat: labels.text(seat_name(names, seat)))
                amount = Money(refund.amount_minor, refund.currency)
                document = credit_document(invoice, lines, amount, refund.changed_at_us)
                await book.issue(organiser_id, booking.id, refund.id, document, self._clock())
        return await book.invoices_of(booking.id)

    async def _check_taken(self, booking: Booking) -> None:
        payments = self._ledger.payments
        check_taken(booking, await payments.payments_of(booking.id), await payments.refunds_of(booking.id))

    async def of_booking(self, booking_id: str) -> list[Invoice]:
        """What was issued for a booking so far."""
        return await self._ledger.invoices.invoices_of(booking_id)

    async def of_number(self, organiser_id: str, number: int) -> Invoice:
        """The organiser's document with this number, or `InvoiceNotFound`."""
        found = await self._ledger.invoices.invoice(organiser_id, number)
        if found is None:
            raise InvoiceNotFound(f"there is no invoice {number}", number=number)
        return found

    async def page(self, organiser_id: str, before: int, limit: int) -> list[Invoice]:
        """The newest documents of an organiser; with `before`, those with smaller numbers."""
        return await self._ledger.invoices.page(organiser_id, before, limit)

    async def all_of(self, organiser_id: str) -> AsyncIterator[list[Invoice]]:
        """Every document of an organiser in pages, the newest first."""
        before = 0
        for _ in range(MAX_PAGES):
            page = await self._ledger.invoices.page(organiser_id, before, PAGE)
            yield page
            if len(page) < PAGE:
                return
            before = page[-1].number

    async def pdf(self, invoice: Invoice, locale: str) -> bytes:
        return await self._work.run(Urgency.SOMEBODY_WAITS, DRAWN_WITHIN_S, draw_invoice, invoice, language_of(locale))


def draw_invoice(invoice: Invoice, language: str) -> bytes:
    from frontrow.boxoffice.checkout.invoice_pdf import invoice_pdf  # slow to import: not at startup

    return invoice_pdf(invoice, language)
