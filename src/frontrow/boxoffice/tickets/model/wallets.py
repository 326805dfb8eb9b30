"""Wallet passes, as values: which wallets an organiser can sign tickets for. Pure.

A wallet pass is a ticket inside the wallet of a phone. It is signed with keys that the organiser has from Apple or
Google. Members of the team see whose keys they are; the keys themselves are sealed and never shown again.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import Refused


class Wallet(StrEnum):
    APPLE = "apple"
    GOOGLE = "google"


class WalletKeys(msgspec.Struct, frozen=True):
    """An organiser's keys for one wallet, as the ledger has them."""

    organiser_id: str
    wallet: Wallet
    account: str  # Apple: the pass type identifier; Google: the issuer id
    holder: str  # Apple: the team identifier; Google: the e-mail of the service account
    expires_at_us: int  # of the certificate; 0: never
    sealed: str
    changed_at_us: int

    def usable(self, now_us: int) -> bool:
        return not self.expires_at_us or now_us < self.expires_at_us


def usable_wallets(keys: Sequence[WalletKeys], now_us: int) -> frozenset[Wallet]:
    """The wallets whose keys can sign now."""
    return frozenset(one.wallet for one in keys if one.usable(now_us))


class NoWalletPass(Refused):
    """There is no wallet pass for this ticket. `reason`: not_configured, expired, rotating_code, too_many."""

    code = "no_wallet_pass"

    def __init__(self, reason: str) -> None:
        super().__init__(_WHY_NO_PASS[reason], reason=reason)
        self.reason = reason


_WHY_NO_PASS: Final = {
    "not_configured": "the organiser of this event has no keys for this wallet",
    "expired": "the organiser's certificate for this wallet has expired",
    "rotating_code": "the code of this ticket changes all the time, which a wallet pass cannot show",
    "too_many": "a file has at most 10 wallet passes; get them one by one",
}
