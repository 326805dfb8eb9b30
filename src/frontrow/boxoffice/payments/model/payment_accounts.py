"""The account at a provider to which an organiser's sales go. Pure."""

from enum import StrEnum

import msgspec

from frontrow.core.errors import InvalidInput, Refused

MAX_FEE_BASIS_POINTS = 5_000
MAX_ACCOUNT_CHARS = 80


class AccountState(StrEnum):
    """How an account stands at its provider."""

    ONBOARDING = "onboarding"  # its owner has not filled in everything yet; the platform's own account goes on
    ACTIVE = "active"
    RESTRICTED = "restricted"  # it was active, and its provider wants something: no new payments until then
    CLOSED = "closed"  # it was closed, or taken away from us


class PaymentAccount(msgspec.Struct, frozen=True):
    """One account of one organiser. `ended_at_us`: another one takes new payments since then; 0: it does."""

    organiser_id: str
    provider: str
    account: str
    state: AccountState = AccountState.ACTIVE
    reason: str = ""
    fee_basis_points: int = 0
    made_at_us: int = 0
    changed_at_us: int = 0
    ended_at_us: int = 0

    def check(self) -> None:
        """Refuse what cannot be an account."""
        if not 0 <= self.fee_basis_points <= MAX_FEE_BASIS_POINTS:
            raise InvalidInput(f"a fee is between 0 and {MAX_FEE_BASIS_POINTS} basis points", param="fee")
        if not 1 <= len(self.account) <= MAX_ACCOUNT_CHARS or not self.account.isascii() or " " in self.account:
            raise InvalidInput("an account is the provider's name for it, without spaces", param="account")


def platform_fee_minor(amount_minor: int, fee_basis_points: int) -> int:
    """What the platform keeps of a payment; a part of a cent is the organiser's."""
    return amount_minor * fee_basis_points // 10_000


class SellerCannotBePaid(Refused):
    """The organiser's account takes no payments at the moment."""

    code = "seller_cannot_be_paid"

    def __init__(self, organiser_id: str) -> None:
        super().__init__(
            "this organiser cannot take payments at the moment; nothing was charged, and the seats stay held until the "
            "hold ends",
            organiser=organiser_id,
        )
