"""The port of invoices: numbers without gaps, documents that never change."""

from typing import Protocol

from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceDocument


class InvoiceBook(Protocol):
    """Keeps invoices and credit notes."""

    async def issue(
        self, organiser_id: str, booking_id: str, refund_id: str, document: InvoiceDocument, now_us: int
    ) -> Invoice:
        """The document with the organiser's next number, in one transaction. A repeated call returns the first one."""

    async def invoices_of(self, booking_id: str) -> list[Invoice]:
        """The invoice of a booking and its credit notes, by number."""

    async def invoice(self, organiser_id: str, number: int) -> Invoice | None: ...

    async def page(self, organiser_id: str, before: int, limit: int) -> list[Invoice]:
        """The newest invoices of an organiser first; with `before`, only those with smaller numbers."""
