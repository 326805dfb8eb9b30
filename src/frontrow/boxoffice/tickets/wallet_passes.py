"""Wallet passes of tickets, made when somebody asks for one: `.pkpass` files for Apple, links for Google (ADR 0152).

They are signed where PDFs are drawn, with the same bound, order and cache. The organiser's keys are opened for the
moment of signing only.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.organiser.model.brands import TicketLook
from frontrow.boxoffice.tickets.model.ticket_transfers import Transfer
from frontrow.boxoffice.tickets.model.tickets import Sheet, TicketNotFound
from frontrow.boxoffice.tickets.model.wallets import NoWalletPass, Wallet, WalletKeys, usable_wallets
from frontrow.boxoffice.tickets.ports.ledger import SellerNames, TicketLedger
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.boxoffice.tickets.wallet_keys import AppleSigner, GoogleSigner
from frontrow.core.clock import Clock
from frontrow.shared.heavy_work import Urgency
from frontrow.shared.vault import Vault

MAX_BUNDLED: Final = 10  # passes that a phone takes from one file
ONE_PASS: Final = ("application/vnd.apple.pkpass", "pkpass")  # media type, and how the file's name ends
SEVERAL_PASSES: Final = ("application/vnd.apple.pkpasses", "pkpasses")


class AppleFile(msgspec.Struct, frozen=True):
    """A `.pkpass` of one ticket, or a `.pkpasses` of several."""

    body: bytes
    media_type: str
    ending: str


class WalletVault:
    """Seals and opens the keys of wallets. A sealed key cannot be moved to another organiser or wallet."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def seal(self, organiser_id: str, wallet: Wallet, signer: AppleSigner | GoogleSigner) -> str:
        return self._vault.seal(msgspec.json.encode(signer).decode(), _purpose(organiser_id, wallet))

    def open_apple(self, keys: WalletKeys) -> AppleSigner:
        """The signer, or SealBroken."""
        return msgspec.json.decode(self._open(keys), type=AppleSigner)

    def open_google(self, keys: WalletKeys) -> GoogleSigner:
        """The signer, or SealBroken."""
        return msgspec.json.decode(self._open(keys), type=GoogleSigner)

    def _open(self, keys: WalletKeys) -> str:
        return self._vault.open(keys.sealed, _purpose(keys.organiser_id, keys.wallet))


def _purpose(organiser_id: str, wallet: Wallet) -> str:
    return f"wallet:{wallet.value}:{organiser_id}"


class WalletPasses:
    """Makes wallet passes of valid tickets with a fixed code."""

    def __init__(
        self, ledger: TicketLedger, renderer: TicketRenderer, sellers: SellerNames, vault: WalletVault, clock: Clock
    ) -> None:
        self._ledger, self._renderer, self._sellers, self._vault, self._clock = ledger, renderer, sellers, vault, clock

    async def offered(self, organiser_id: str) -> frozenset[Wallet]:
        """The wallets that this organiser can sign tickets for now."""
        return usable_wallets(await self._ledger.wallets.keys_of(organiser_id), self._clock())

    async def apple(self, booking_id: str, ticket_id: str = "", transfer: Transfer | None = None) -> AppleFile:
        """The tickets of a booking that its buyer has (or one of them, or the one of a transfer) for Apple Wallet."""
        from frontrow.boxoffice.tickets.apple_passes import PassIssuer, make_apple_passes  # not at startup

        sheets = await self._sheets(booking_id, ticket_id, transfer)
        if len(sheets) > MAX_BUNDLED:
            raise NoWalletPass("too_many")
        keys, seller, look = await self._keys(sheets[0], Wallet.APPLE)
        issuer = PassIssuer(keys.account, keys.holder, seller, look)
        key = (Wallet.APPLE, keys.changed_at_us, issuer, sheets)
        signer = self._vault.open_apple(keys)
        body = await self._renderer.drawings.draw(
            key, Urgency.SOMEBODY_WAITS, make_apple_passes, sheets, issuer, signer
        )
        return AppleFile(body, *(ONE_PASS if len(sheets) == 1 else SEVERAL_PASSES))

    async def google(self, booking_id: str, ticket_id: str = "", transfer: Transfer | None = None) -> str:
        """The link that saves one ticket to Google Wallet."""
        from frontrow.boxoffice.tickets.google_passes import PassAccount, make_google_link

        sheet = (await self._sheets(booking_id, ticket_id, transfer))[0]
        keys, seller, look = await self._keys(sheet, Wallet.GOOGLE)
        account, signer = PassAccount(keys.account, keys.holder, seller, look.fill), self._vault.open_google(keys)
        key = (Wallet.GOOGLE, keys.changed_at_us, account, sheet)
        link = await self._renderer.drawings.draw(
            key, Urgency.SOMEBODY_WAITS, make_google_link, sheet, account, signer, self._clock()
        )
        return link.decode()

    async def _sheets(self, booking_id: str, ticket_id: str, transfer: Transfer | None) -> tuple[Sheet, ...]:
        found = await self._renderer.sheets(booking_id, transfer)
        sheets = tuple(one for one in found if not ticket_id or one.ticket_id == ticket_id)
        if not sheets:
            raise TicketNotFound("this booking has no such ticket", ticket=ticket_id[:60])
        if any(one.rotating for one in sheets):
            raise NoWalletPass("rotating_code")
        return sheets

    async def _keys(self, sheet: Sheet, wallet: Wallet) -> tuple[WalletKeys, str, TicketLook]:
        """The organiser's keys for this wallet, the seller's name, and their brand's look."""
        event = await self._ledger.catalogue.event(sheet.event_id)
        found: Sequence[WalletKeys] = await self._ledger.wallets.keys_of(event.organiser_id)
        keys = next((one for one in found if one.wallet is wallet), None)
        if keys is None:
            raise NoWalletPass("not_configured")
        if not keys.usable(self._clock()):
            raise NoWalletPass("expired")
        return keys, (await self._sellers.seller_of(event.organiser_id)).name, await self._renderer.look_of(event)
