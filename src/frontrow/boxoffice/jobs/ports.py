"""Which books the background jobs use."""

from typing import Protocol

from frontrow.boxoffice.checkout.ports import InvoiceBook
from frontrow.boxoffice.gate.ports import RedemptionReads
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserBook
from frontrow.boxoffice.payments.ports import PaymentLedger
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.boxoffice.waitlist.ports import WaitlistBook


class JobLedger(PaymentLedger, Protocol):
    """The ledger as background jobs use it."""

    @property
    def invoices(self) -> InvoiceBook: ...

    @property
    def messages(self) -> MessageBook: ...

    @property
    def organiser(self) -> OrganiserBook: ...

    @property
    def people(self) -> PeopleBook: ...

    @property
    def redemptions(self) -> RedemptionReads: ...

    @property
    def waitlist(self) -> WaitlistBook: ...
