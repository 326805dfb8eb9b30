"""The organisers' keys for wallets, sealed. A change is written with the note of who made it."""

from frontrow.boxoffice.adapters.ledger.engine.batched_reads import ReadsByKey
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import SqlOrganiserBook
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys


class SqlWalletBook:
    """Keeps at most one set of keys per organiser and wallet."""

    def __init__(self, reads: ReadsByKey, organiser: SqlOrganiserBook) -> None:
        self._reads, self._organiser = reads, organiser

    async def keys_of(self, organiser_id: str) -> list[WalletKeys]:
        rows = await self._reads["wallet_keys_of"].read(organiser_id)
        return [WalletKeys(row[0], Wallet(row[1]), *row[2:7]) for row in rows]

    async def put(self, keys: WalletKeys, change: Change) -> None:
        row = (
            keys.organiser_id,
            keys.wallet.value,
            keys.account,
            keys.holder,
            keys.expires_at_us,
            keys.sealed,
            keys.changed_at_us,
        )
        await self._organiser.changed(change, Query("put_wallet_keys", [row]))

    async def remove(self, organiser_id: str, wallet: Wallet, change: Change) -> bool:
        gone = await self._organiser.changed(change, Query("remove_wallet_keys", [(organiser_id, wallet.value)]))
        return bool(gone)
