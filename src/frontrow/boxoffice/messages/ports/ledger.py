"""Which books messages use."""

from typing import Protocol

from frontrow.boxoffice.events.ports import Catalogue, PictureBook
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.organiser.ports.brands import BrandBook
from frontrow.boxoffice.payments.ports import PaymentBook
from frontrow.boxoffice.people.ports import PeopleBook
from frontrow.boxoffice.tickets.ports.tickets import TicketBook
from frontrow.boxoffice.tickets.ports.transfers import TransferBook
from frontrow.boxoffice.tickets.ports.wallets import WalletBook


class MessageLedger(Protocol):
    """The books that messages use."""

    @property
    def brands(self) -> BrandBook: ...

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def messages(self) -> MessageBook: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def people(self) -> PeopleBook: ...

    @property
    def pictures(self) -> PictureBook: ...

    @property
    def tickets(self) -> TicketBook: ...

    @property
    def transfers(self) -> TransferBook: ...

    @property
    def wallets(self) -> WalletBook: ...
