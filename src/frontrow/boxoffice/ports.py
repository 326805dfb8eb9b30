"""The read port of the box office: what pages and the API may read of the ledger. Services write what they change."""

from typing import Protocol

from frontrow.boxoffice.events.ports import EventReads
from frontrow.boxoffice.holds.ports.ledger import BookingReads
from frontrow.boxoffice.messages.ports.message_book import MessageReads
from frontrow.boxoffice.organiser.ports.figures import FiguresBook
from frontrow.boxoffice.organiser.ports.ledger import BrowsingLedger
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserReads
from frontrow.boxoffice.payments.ports import PaymentReads
from frontrow.boxoffice.refunds.ports.returns import ReturnReads
from frontrow.boxoffice.tickets.ports.tickets import TicketReads
from frontrow.boxoffice.tickets.ports.transfers import TransferReads
from frontrow.boxoffice.waitlist.ports import WaitlistReads


class ReadLedger(BookingReads, Protocol):
    """The ledger as pages and the API read it. `browsing` may lag behind; everything else is as last committed."""

    @property
    def browsing(self) -> BrowsingLedger: ...

    @property
    def catalogue(self) -> EventReads: ...

    @property
    def figures(self) -> FiguresBook: ...

    @property
    def messages(self) -> MessageReads: ...

    @property
    def organiser(self) -> OrganiserReads: ...

    @property
    def payments(self) -> PaymentReads: ...

    @property
    def returns(self) -> ReturnReads: ...

    @property
    def tickets(self) -> TicketReads: ...

    @property
    def transfers(self) -> TransferReads: ...

    @property
    def waitlist(self) -> WaitlistReads: ...
