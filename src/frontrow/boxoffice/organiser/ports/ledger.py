"""Which books organisers' services use, and which of them may lag."""

from typing import Protocol

from frontrow.boxoffice.events.ports import EventReads, PictureBook
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.organiser.ports.brands import BrandBook
from frontrow.boxoffice.organiser.ports.figures import FiguresBook
from frontrow.boxoffice.organiser.ports.organiser_book import OrganiserBook, OrganiserReads
from frontrow.boxoffice.payments.ports import PaymentBook, PaymentReads
from frontrow.boxoffice.tickets.ports.tickets import TicketReads
from frontrow.boxoffice.tickets.ports.transfers import TransferBook
from frontrow.boxoffice.waitlist.ports import WaitlistBook


class OrganiserLedger(Ledger, Protocol):
    """The ledger as organisers' services use it."""

    @property
    def brands(self) -> BrandBook: ...

    @property
    def catalogue(self) -> EventReads: ...

    @property
    def messages(self) -> MessageBook: ...

    @property
    def organiser(self) -> OrganiserBook: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def pictures(self) -> PictureBook: ...

    @property
    def transfers(self) -> TransferBook: ...

    @property
    def waitlist(self) -> WaitlistBook: ...


class BrowsingLedger(Protocol):
    """The books of lists, figures, reports and exports, which decide nothing. They may lag behind (ADR 0161)."""

    @property
    def catalogue(self) -> EventReads: ...

    @property
    def figures(self) -> FiguresBook: ...

    @property
    def organiser(self) -> OrganiserReads: ...

    @property
    def payments(self) -> PaymentReads: ...

    @property
    def tickets(self) -> TicketReads: ...
