"""The keys that sign an organiser's wallet passes, as its members manage them: upload, see whose they are, remove.

The API and the pages use the same methods. Files are read away from the event loop. Every change is recorded with who
made it, and without the keys.
"""

from typing import Final

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.tickets.model.wallets import Wallet, WalletKeys
from frontrow.boxoffice.tickets.ports.wallets import WalletBook
from frontrow.boxoffice.tickets.wallet_keys import (
    AppleKeysGiven,
    GoogleKeysGiven,
    read_apple_keys,
    read_google_keys,
)
from frontrow.boxoffice.tickets.wallet_passes import WalletVault
from frontrow.core.clock import Clock
from frontrow.shared.heavy_work import HeavyWork, Urgency

READ_WITHIN_S: Final = 10.0


class ManagedWallets:
    """An organiser's keys for wallets."""

    def __init__(self, book: WalletBook, vault: WalletVault, work: HeavyWork, clock: Clock) -> None:
        self._book, self._vault, self._work, self._clock = book, vault, work, clock

    async def keys_of(self, organiser_id: str) -> dict[Wallet, WalletKeys]:
        return {one.wallet: one for one in await self._book.keys_of(organiser_id)}

    async def put_apple(self, editor: Editor, given: AppleKeysGiven) -> WalletKeys:
        """Sign for Apple Wallet with these keys from now on; `InvalidInput` says what is wrong with them."""
        now_us = self._clock()
        read = await self._work.run(Urgency.IMPORT, READ_WITHIN_S, read_apple_keys, given, now_us)
        sealed = self._vault.seal(editor.organiser_id, Wallet.APPLE, read.signer)
        return await self._put(editor, Wallet.APPLE, read.pass_type_id, read.team_id, read.expires_at_us, sealed)

    async def put_google(self, editor: Editor, given: GoogleKeysGiven) -> WalletKeys:
        """Sign for Google Wallet with these keys from now on; `InvalidInput` says what is wrong with them."""
        read = await self._work.run(Urgency.IMPORT, READ_WITHIN_S, read_google_keys, given)
        sealed = self._vault.seal(editor.organiser_id, Wallet.GOOGLE, read.signer)
        return await self._put(editor, Wallet.GOOGLE, read.issuer_id, read.client_email, 0, sealed)

    async def remove(self, editor: Editor, wallet: Wallet) -> bool:
        """Forget the keys of a wallet. Passes that were made with them stay valid. False if there were none."""
        change = Change(editor, "remove_wallet", "", self._clock(), {"wallet": wallet.value})
        return await self._book.remove(editor.organiser_id, wallet, change)

    async def _put(
        self, editor: Editor, wallet: Wallet, account: str, holder: str, expires_at_us: int, sealed: str
    ) -> WalletKeys:
        keys = WalletKeys(editor.organiser_id, wallet, account, holder, expires_at_us, sealed, self._clock())
        detail = {"wallet": wallet.value, "account": account, "holder": holder}
        await self._book.put(keys, Change(editor, "change_wallet", "", keys.changed_at_us, detail))
        return keys
