"""The ports of checkout: invoices, who sold and at which tax rate, the visits of the waiting room."""

from collections.abc import Sequence
from typing import Protocol

from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceDocument
from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.boxoffice.pricing.model.taxes import TaxRates


class InvoiceBook(Protocol):
    """Keeps invoices and credit notes: numbers without gaps, documents that never change (`ledger.invoices`)."""

    async def issue(
        self, organiser_id: str, booking_id: str, refund_id: str, document: InvoiceDocument, now_us: int
    ) -> Invoice:
        """The document with the organiser's next number, in one transaction. A repeated call returns the first one."""
        ...

    async def invoices_of(self, booking_id: str) -> list[Invoice]:
        """The invoice of a booking and its credit notes, by number."""
        ...

    async def invoice(self, organiser_id: str, number: int) -> Invoice | None: ...

    async def page(self, organiser_id: str, before: int, limit: int) -> list[Invoice]:
        """The newest invoices of an organiser first; with `before`, only those with smaller numbers."""
        ...


class SellerReads(Protocol):
    """Read-only access to who sold, and at which tax rate (`ledger.organiser`)."""

    async def seller(self, organiser_id: str) -> Seller | None:
        """An organiser's seller details, if there are any."""
        ...

    async def seller_at(self, organiser_id: str, at_us: int) -> Seller | None:
        """The seller details as of `at_us`, if there were any."""
        ...

    async def tax_rate_at(self, event: Event, at_us: int) -> int | None:
        """The event's own tax rate as of `at_us`. None means the seller's rate."""
        ...

    async def tax_rates(self, event: Event) -> TaxRates:
        """All rates that the event's sales ever had."""
        ...


class SellerBook(SellerReads, Protocol):
    """Who sold, and at which tax rate (`ledger.organiser`). Receipts of earlier sales show what was valid then."""

    async def put_seller(self, seller: Seller, change: Change) -> None:
        """Create or change an organiser's seller details, with the note of who did it."""
        ...


class KeptVisits(Protocol):
    """The visits of the waiting room, named as bookings name them (`Booking.visit_id`)."""

    def is_mine(self, event_id: str) -> bool:
        """Whether this process keeps the visits of this event, and there are any."""
        ...

    async def kept(self, event_id: str) -> Sequence[tuple[str, int, str]]:
        """Each kept visit with its end in seconds and the booking that keeps it."""
        ...

    async def keep(self, visit: str, until_s: int, booking_id: str) -> None:
        """Keep the visit until `until_s` for this booking. 0 means that the booking keeps it no longer."""
        ...

    async def end(self, visit: str) -> None:
        """End the visit."""
        ...


class CheckoutLedger(PaymentLedger, Protocol):
    """The ledger as checkout, receipts and invoices use it."""

    @property
    def invoices(self) -> InvoiceBook: ...

    @property
    def messages(self) -> MessageBook: ...

    @property
    def organiser(self) -> SellerBook: ...

    @property
    def people(self) -> PeopleBook: ...
