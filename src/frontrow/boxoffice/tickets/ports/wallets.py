"""The port of organisers' keys for wallets."""

from typing import Protocol

from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys


class WalletBook(Protocol):
    """The keys, sealed (`ledger.wallets`). Every change is written with the note of who made it."""

    async def keys_of(self, organiser_id: str) -> list[WalletKeys]:
        """The organiser's keys, one per wallet at most."""
        ...

    async def put(self, keys: WalletKeys, change: Change) -> None:
        """Keep the keys of a wallet. They replace those before."""
        ...

    async def remove(self, organiser_id: str, wallet: Wallet, change: Change) -> bool:
        """Delete the keys of a wallet. False if there were none."""
        ...
