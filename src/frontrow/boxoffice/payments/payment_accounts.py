"""Which account takes the money of an organiser's next payment, and how these accounts stand.

Payments that were begun stay at their account, also after it was changed or closed (ADR 0210). What is known of the
accounts is read from the ledger at most every two seconds, so a change reaches every server within that time.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.payments.model.payment_accounts import AccountState, PaymentAccount, SellerCannotBePaid
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import Notice, NoticeKind, ProviderError, ProviderNotCalled
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.ports import (
    AccountLook,
    AccountsLedger,
    MoneyAtAccount,
    OpensAccounts,
    Payee,
    ProviderPayout,
)
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput, Refused

READ_EVERY_US: Final = 2 * US_PER_S
SHOWN_PAYOUTS: Final = 10
BY_PROVIDER: Final = "provider"
PAYS: Final = frozenset({AccountState.ACTIVE})


class PaymentAccounts:
    """The accounts of organisers. See Payees and NoticeListener."""

    def __init__(self, ledger: AccountsLedger, providers: OpenProviders, clock: Clock) -> None:
        self._ledger, self._providers, self._clock = ledger, providers, clock
        self._current: Mapping[str, PaymentAccount] = {}
        self._read_at_us: int | None = None
        self._reading = asyncio.Lock()

    async def payee(self, booking: Booking) -> Payee:
        """The organiser's own account, or the server's.

        `SellerCannotBePaid` while theirs takes nothing, or is not at the provider that takes new payments.
        """
        current = await self._read()
        if not current:
            return Payee()
        organiser_id = (await self._ledger.catalogue.event(booking.event_id)).organiser_id
        account = current.get(organiser_id)
        if account is None or account.state is AccountState.ONBOARDING:
            return Payee()
        if account.state not in PAYS or account.provider != self._providers.default.name:
            raise SellerCannotBePaid(organiser_id)
        return Payee(account.provider, account.account, account.fee_basis_points)

    async def accounts(self) -> Sequence[Payee]:
        """Every account that may have taken money, also those that were ended."""
        return [Payee(one.provider, one.account) for one in await self._ledger.payment_accounts.all_accounts()]

    async def heard(self, provider: str, notice: Notice, payment: Payment | None) -> None:
        """An account was verified, restricted or closed: look how it stands."""
        if notice.kind is not NoticeKind.ACCOUNT_CHANGED:
            return
        for one in await self._ledger.payment_accounts.all_accounts():
            if (one.provider, one.account) == (provider, notice.account):
                await self._look(one, Editor(BY_PROVIDER, one.organiser_id))

    async def current(self, organiser_id: str) -> PaymentAccount | None:
        """The account that takes the organiser's new payments."""
        found = await self._ledger.payment_accounts.all_accounts()
        return next((one for one in found if one.organiser_id == organiser_id and not one.ended_at_us), None)

    async def money(self, organiser_id: str) -> list[MoneyAtAccount]:
        return await self._ledger.payment_accounts.money(organiser_id)

    async def payouts(self, account: PaymentAccount) -> list[ProviderPayout]:
        """The last payouts of an account; none where its provider does not tell."""
        provider = self._providers.find(account.provider)
        if provider is None or not isinstance(provider, OpensAccounts):
            return []
        try:
            return await provider.payouts(account.account, SHOWN_PAYOUTS)
        except ProviderError:
            return []

    async def put(self, editor: Editor, provider: str, account: str, fee_basis_points: int) -> PaymentAccount:
        """The operator gives an organiser an account that is there already, such as a merchant account."""
        self._check_default(provider)
        try:
            self._providers.named(provider, account)
        except ProviderNotCalled as error:
            raise InvalidInput(error.message, param="provider") from None
        now_us = self._clock()
        for one in await self._ledger.payment_accounts.all_accounts():
            if (one.provider, one.account) == (provider, account) and one.organiser_id != editor.organiser_id:
                raise Refused(f"the account {account} belongs to {one.organiser_id}", account=account)
        given = PaymentAccount(
            editor.organiser_id,
            provider,
            account,
            fee_basis_points=fee_basis_points,
            made_at_us=now_us,
            changed_at_us=now_us,
        )
        await self._put(given, editor)
        return given

    def _check_default(self, provider: str) -> None:
        """The checkout page is the one of the provider that takes new payments, so an account must be there."""
        default = self._providers.default.name
        if provider != default:
            raise InvalidInput(
                f"new payments go through {default!r} here, so an account must be there", param="provider"
            )

    async def end(self, editor: Editor) -> PaymentAccount | None:
        """The server's own account takes the organiser's new payments again."""
        account = await self.current(editor.organiser_id)
        if account is not None:
            now_us = self._clock()
            await self._put(replace(account, ended_at_us=now_us, changed_at_us=now_us), editor)
        return account

    async def onboard(self, editor: Editor, provider: str, return_url: str) -> str:
        """Where the organiser opens an account, or fills in what is missing at the one it has."""
        self._check_default(provider)
        found = self._providers.find(provider)
        if found is None or not isinstance(found, OpensAccounts):
            raise InvalidInput(f"accounts cannot be opened at {provider!r}", param="provider")
        account = await self.current(editor.organiser_id)
        if account is None or account.provider != provider or account.state is AccountState.CLOSED:
            now_us = self._clock()
            name = await found.open_account(editor.organiser_id, f"account:{editor.organiser_id}:{now_us}")
            fee = account.fee_basis_points if account else 0
            account = PaymentAccount(
                editor.organiser_id, provider, name, AccountState.ONBOARDING, "", fee, now_us, now_us
            )
            await self._put(account, editor)
        return await found.onboarding_url(account.account, return_url)

    async def look(self, editor: Editor) -> PaymentAccount | None:
        """The organiser's account as its provider sees it now, or as it was known if that does not answer."""
        account = await self.current(editor.organiser_id)
        return await self._look(account, editor) if account is not None else None

    async def _look(self, account: PaymentAccount, editor: Editor) -> PaymentAccount:
        provider = self._providers.find(account.provider)
        if provider is None or not isinstance(provider, OpensAccounts):
            return account
        try:
            seen = await provider.look(account.account)
        except ProviderError:
            return account
        state = _state_of(account.state, seen)
        if (state, seen.reason) == (account.state, account.reason):
            return account
        changed = replace(account, state=state, reason=seen.reason[:200], changed_at_us=self._clock())
        await self._put(changed, editor)
        return changed

    async def _put(self, account: PaymentAccount, editor: Editor) -> None:
        account.check()
        detail = {
            "provider": account.provider,
            "account": account.account,
            "state": account.state.value,
            "fee_basis_points": account.fee_basis_points,
            "ended": bool(account.ended_at_us),
        }
        change = Change(editor, "change_payment_account", "", account.changed_at_us, detail)
        await self._ledger.payment_accounts.put(account, change)
        self._read_at_us = None

    async def _read(self) -> Mapping[str, PaymentAccount]:
        """The accounts that take new payments. Nobody goes on without them: their money would go elsewhere."""
        async with self._reading:
            now_us = self._clock()
            if self._read_at_us is None or now_us - self._read_at_us >= READ_EVERY_US:
                found = await self._ledger.payment_accounts.all_accounts()
                self._current = {one.organiser_id: one for one in found if not one.ended_at_us}
                self._read_at_us = now_us
            return self._current


def _state_of(was: AccountState, seen: AccountLook) -> AccountState:
    if seen.closed:
        return AccountState.CLOSED
    if seen.ready:
        return AccountState.ACTIVE
    return was if was is AccountState.ONBOARDING else AccountState.RESTRICTED
