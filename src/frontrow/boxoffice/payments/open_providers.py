"""The payment providers that this process has open, by name.

A payment stays with the provider and the account that it was begun with: `of` gives the provider for its calls, also
after the default was changed. The first provider is the default, which takes new payments.
"""

from collections.abc import Sequence

from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.payments.model.payments import Payment
from frontrow.boxoffice.payments.model.provider_intents import ProviderNotCalled
from frontrow.boxoffice.payments.ports import HasAccounts, Payee, PaymentProvider
from frontrow.core.errors import ConfigError


class OpenProviders:
    """Providers by name."""

    def __init__(self, default: PaymentProvider, *others: PaymentProvider) -> None:
        self.default = default
        self._by_name: dict[str, PaymentProvider] = {}
        for one in (default, *others):
            if one.name in self._by_name:
                raise ConfigError(f"two payment providers are named {one.name!r}", param="payments")
            self._by_name[one.name] = one
        self._default_name = default.name

    def all(self) -> tuple[PaymentProvider, ...]:
        """All of them, the default first."""
        return tuple(self._by_name.values())

    def find(self, name: str) -> PaymentProvider | None:
        """The provider with this name, if it is open here."""
        return self._by_name.get(name)

    def named(self, name: str, account: str = "") -> PaymentProvider:
        """The provider with this name, whose calls are made for this account. `ProviderNotCalled` if there is none: the
        call may be made later, or by another server."""
        found = self._by_name.get(name)
        if found is None:
            raise ProviderNotCalled(f"the payment provider {name!r} is not open here; add it to payments.also")
        if not account:
            return found
        if not isinstance(found, HasAccounts):
            raise ProviderNotCalled(f"the payment provider {name!r} has no other accounts, so none named {account!r}")
        return found.for_account(account)

    def of(self, payment: Payment) -> PaymentProvider:
        """The provider for every call about this payment."""
        return self.named(payment.provider, payment.account)

    def named_payee(self, payee: Payee) -> Payee:
        """The payee with the name of its provider, as a payment keeps it."""
        return Payee(payee.provider or self._default_name, payee.account, payee.fee_basis_points)

    async def aclose(self) -> None:
        for one in self._by_name.values():
            await one.aclose()


class ServersOwn:
    """See Payees: the server's own account at the default provider takes everything."""

    async def payee(self, booking: Booking) -> Payee:
        return Payee()

    async def accounts(self) -> Sequence[Payee]:
        return ()


def open_together(providers: PaymentProvider | OpenProviders) -> OpenProviders:
    """The providers, where a caller may have one or several."""
    return providers if isinstance(providers, OpenProviders) else OpenProviders(providers)
