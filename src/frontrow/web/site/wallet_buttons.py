"""The buttons that add a ticket to the wallet of a phone: our own drawing, with the words people look for."""

from typing import Final, NamedTuple

from frontrow.boxoffice.tickets.model.wallets import Wallet
from frontrow.web.platform.platform import Platform
from frontrow.web.site.languages import N_

WALLET_WORDS: Final = {
    Wallet.APPLE: N_("Add to Apple Wallet"),
    Wallet.GOOGLE: N_("Save to Google Wallet"),
}
WALLET_PAGES: Final = {one: f"{one.value}-wallet" for one in WALLET_WORDS}  # how their addresses end


class WalletButton(NamedTuple):
    """One button: how its address ends, and its words."""

    ending: str
    words: str


async def wallet_buttons(platform: Platform, organiser_id: str) -> list[WalletButton]:
    """The buttons for tickets of this organiser; none if it has no keys that can sign now."""
    offered = await platform.box_office.wallets.offered(organiser_id)
    return [WalletButton(WALLET_PAGES[one], WALLET_WORDS[one]) for one in WALLET_WORDS if one in offered]
