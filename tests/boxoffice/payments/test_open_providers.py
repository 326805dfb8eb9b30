"""Several providers and accounts at once: a payment stays where it was begun; each provider hears its own notices."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.payments.from_url import open_providers
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.holds.model.bookings import Booking, BookingState
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Notice, ProviderNotCalled
from frontrow.boxoffice.payments.open_providers import OpenProviders, ServersOwn
from frontrow.boxoffice.payments.ports import Payee, PaymentProvider
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.errors import ConfigError, NotFound, Unauthorised
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, open_till
from tests.boxoffice.shop import shop_event

CARD = "pm_card_visa"


class OtherBank(SimulatedProvider):
    """Another provider. Each of its accounts has objects of its own."""

    name = "other-bank"

    def __init__(self, clock: ManualClock, secret: str = "whsec_other") -> None:
        super().__init__(clock, secret=secret)
        self.accounts: dict[str, SimulatedProvider] = {}
        self._account_clock = clock

    def for_account(self, account: str) -> PaymentProvider:
        if account not in self.accounts:
            self.accounts[account] = OtherBank(self._account_clock)
        return self.accounts[account]


class ToHall(ServersOwn):
    """The hall has an account of its own."""

    async def payee(self, booking: Booking) -> Payee:
        return Payee("other-bank", "hall")

    async def accounts(self) -> Sequence[Payee]:
        return (Payee("other-bank", "hall"),)


def opened(till: Till, other: OtherBank, **more: Any) -> tuple[OpenProviders, Checkout, Refunds]:
    """A server whose default is the other bank now, and which still has the first provider open."""
    providers = OpenProviders(GuardedProvider(other, till.clock), till.guarded)
    checkout = Checkout(till.ledger, providers, till.clock, issuer=ISSUER, **more)
    return providers, checkout, Refunds(till.ledger, providers, till.clock)


async def test_a_payment_goes_on_at_the_provider_that_began_it_after_the_default_was_changed(tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        sold, opened_hold, new = await till.hold(1), await till.hold(2), await till.hold(3)
        await till.checkout.pay(sold.booking_id, sold.fence, CARD)  # the worker has not taken the money yet
        await till.checkout.begin(opened_hold.booking_id, opened_hold.fence)
        providers, checkout, refunds = opened(till, other := OtherBank(till.clock))
        await checkout.work()
        await refunds.refund(sold.booking_id, sold.fence)
        await refunds.work()
        await checkout.release(opened_hold.booking_id, opened_hold.fence)
        await checkout.pay(new.booking_id, new.fence, CARD)
        await checkout.work()
        assert sorted(one["status"] for one in till.provider.objects.values()) == ["canceled", "succeeded"]
        assert [one["amount"] for one in till.provider.refunds.values()] == [5000]
        assert [one["status"] for one in other.objects.values()] == ["succeeded"]
        names = [(await till.driver_payment(one.booking_id)).provider for one in (sold, opened_hold, new)]
        assert names == ["simulated", "simulated", "other-bank"]
        report = await Reconciler(till.ledger, providers, till.clock, checkout.driver).run()
        assert (report.objects, report.problems, report.difference_minor) == (3, [], {})


async def test_a_payment_whose_provider_is_not_open_waits_for_it(tmp_path: Path) -> None:
    """Nothing is sent to another provider, nothing is lost."""
    async with open_till(tmp_path) as till:
        hold = await till.hold(1)
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
        alone = GuardedProvider(other := OtherBank(till.clock), till.clock)
        await Checkout(till.ledger, alone, till.clock, issuer=ISSUER).work()
        waiting = await till.driver_payment(hold.booking_id)
        assert (waiting.state, waiting.tries, len(other.calls)) == (PaymentState.CAPTURING, 1, 0)
        till.clock.advance(5)
        _, checkout, _ = opened(till, other)
        await checkout.work()
        assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED


async def test_every_call_about_a_payment_goes_to_the_account_that_has_its_money(tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        other = OtherBank(till.clock)
        _, checkout, _ = opened(till, other, payees=ToHall())
        sold, released = await till.hold(1), await till.hold(2)
        await checkout.pay(sold.booking_id, sold.fence, CARD)
        await checkout.begin(released.booking_id, released.fence)
        await checkout.release(released.booking_id, released.fence)
        providers, later, refunds = opened(till, other)  # the hall's account is not used for new payments any more
        await later.work()
        await refunds.refund(sold.booking_id, sold.fence)
        await refunds.work()
        hall = other.accounts["hall"]
        assert sorted(one["status"] for one in hall.objects.values()) == ["canceled", "succeeded"]
        assert [one["amount"] for one in hall.refunds.values()] == [5000]
        assert not other.objects
        assert not till.provider.objects
        payment = await till.driver_payment(sold.booking_id)
        assert (payment.provider, payment.account) == ("other-bank", "hall")
        reconciler = Reconciler(till.ledger, providers, till.clock, later.driver, payees=ToHall())
        report = await reconciler.run()
        assert (report.objects, report.problems, report.difference_minor) == (2, [], {})


async def test_each_provider_hears_its_own_notices_and_no_other(tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        other = OtherBank(till.clock)
        hold = await till.hold(1)
        _, checkout, _ = opened(till, other)
        await checkout.begin(hold.booking_id, hold.fence)
        ref = (await till.driver_payment(hold.booking_id)).ref
        other.confirm_in_browser(ref, CARD)
        body, headers = other.notices[-1]
        with pytest.raises(Unauthorised):  # signed with another provider's secret
            await checkout.handle_webhook(body, headers, "simulated")
        with pytest.raises(Unauthorised):
            await checkout.handle_webhook(body, {}, "other-bank")
        with pytest.raises(NotFound):
            await checkout.handle_webhook(body, headers, "third")
        assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
        assert await checkout.handle_webhook(body, headers, "other-bank")
        assert not await checkout.handle_webhook(body, headers, "other-bank")
        assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED


class Heard:
    """See NoticeListener."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, str, str]] = []

    async def heard(self, provider: str, notice: Notice, payment: Payment | None) -> None:
        self.notices.append((provider, notice.kind, payment.booking_id if payment else ""))


async def test_disputes_and_accounts_are_told_to_the_listeners_once(tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        hold = await till.hold(1)
        await till.pay(hold.booking_id, hold.fence, CARD)
        listener = Heard()
        checkout = Checkout(till.ledger, till.guarded, till.clock, listeners=[listener])
        ref = (await till.driver_payment(hold.booking_id)).ref
        about = {"id": "dp_1", "object": "dispute", "payment_intent": ref, "status": "needs_response"}
        till.provider._send_webhook("charge.dispute.created", about | {"amount": 5000, "currency": "eur"})
        till.provider._send_webhook("account.updated", {"id": "acct_1", "object": "account"})
        for body, headers in (*till.provider.notices, *till.provider.notices):
            await checkout.handle_webhook(body, headers)
        assert listener.notices == [
            ("simulated", "dispute_opened", hold.booking_id),
            ("simulated", "account_changed", ""),
        ]


async def test_two_providers_have_two_names_and_an_account_needs_a_provider_that_has_some(tmp_path: Path) -> None:
    clock = ManualClock()
    with pytest.raises(ConfigError, match="two payment providers are named 'other-bank'"):
        OpenProviders(OtherBank(clock), OtherBank(clock))
    providers = open_providers(f"simulated:{tmp_path / 'a'}", [], clock)
    assert providers is not None
    await providers.aclose()
    with pytest.raises(ProviderNotCalled, match="no other accounts"):
        providers.named("simulated", "hall")
    with pytest.raises(ProviderNotCalled, match="not open here"):
        providers.named("stripe")
