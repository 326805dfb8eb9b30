"""Which books tickets use, and who names the seller on a wallet pass."""

from typing import Protocol

from frontrow.boxoffice.checkout.model.receipts import Seller
from frontrow.boxoffice.events.ports import Catalogue, PictureBook
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.organiser.ports.brands import BrandBook
from frontrow.boxoffice.payments.ports import PaymentBook
from frontrow.boxoffice.tickets.ports.tickets import TicketBook
from frontrow.boxoffice.tickets.ports.transfers import TransferBook
from frontrow.boxoffice.tickets.ports.wallets import WalletBook


class TicketLedger(Ledger, Protocol):
    """The ledger as tickets, transfers and wallet passes use it."""

    @property
    def brands(self) -> BrandBook: ...

    @property
    def catalogue(self) -> Catalogue: ...

    @property
    def payments(self) -> PaymentBook: ...

    @property
    def pictures(self) -> PictureBook: ...

    @property
    def tickets(self) -> TicketBook: ...

    @property
    def transfers(self) -> TransferBook: ...

    @property
    def wallets(self) -> WalletBook: ...


class SellerNames(Protocol):
    """The seller's name, as on receipts."""

    async def seller_of(self, organiser_id: str) -> Seller: ...
