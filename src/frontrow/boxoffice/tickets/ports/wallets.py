"""The organisers' keys for wallets, as the ledger keeps them."""

from typing import Protocol

from frontrow.boxoffice.tickets.model.wallets import WalletKeys


class WalletBook(Protocol):
    """Reads the keys. They are sealed."""

    async def keys_of(self, organiser_id: str) -> list[WalletKeys]:
        """The organiser's keys, one per wallet at most."""
