"""Organisers with accounts of their own: each cent, fee and refund lies on the right one, also after it was changed."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.boxoffice.payments.disputes import Disputes
from frontrow.boxoffice.payments.model.disputes import BookingDisputed
from frontrow.boxoffice.payments.model.payment_accounts import AccountState, PaymentAccount, SellerCannotBePaid
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent, ProviderNotCalled
from frontrow.boxoffice.payments.open_providers import OpenProviders
from frontrow.boxoffice.payments.payment_accounts import PaymentAccounts
from frontrow.boxoffice.payments.ports import MoneyAtAccount, PaymentProvider
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.cli.ledger import app as ledger_app
from frontrow.cli.organiser import app as organiser_app
from frontrow.core.errors import InvalidInput, Refused
from frontrow.shared.webhook_signature import sign
from tests.boxoffice.checkout.till import ISSUER, Till, open_till
from tests.boxoffice.payments.adyen_server import (
    HMAC_KEY,
    KEY,
    MERCHANT,
    AdyenServer,
    adyen_server,
    notice_body,
    provider_of,
)
from tests.boxoffice.payments.stripe_connect_server import StripeConnect, stripe_connect
from tests.boxoffice.shop import shop_event

HALL, CLUB, OTHER = "evt_hall", "evt_club", "evt_other"
OF = {HALL: "org_hall", CLUB: "org_club", OTHER: "org_other"}
CARD = "fan/visa"


class Shop:
    """A server with Adyen on which three organisers sell: two have merchant accounts of their own."""

    def __init__(self, till: Till, adyen: AdyenServer) -> None:
        self.till, self.adyen, self.told, self.holds = till, adyen, 0, 0
        self.provider = provider_of(adyen, till.ledger, till.clock)
        self.providers = OpenProviders(self.provider)
        self.accounts = PaymentAccounts(till.ledger, self.providers, till.clock)
        listeners = [Disputes(till.ledger, till.clock)]
        self.checkout = Checkout(
            till.ledger, self.providers, till.clock, issuer=ISSUER, payees=self.accounts, listeners=listeners
        )
        self.refunds = Refunds(till.ledger, self.providers, till.clock)
        self.reconciler = Reconciler(
            till.ledger, self.providers, till.clock, self.checkout.driver, payees=self.accounts
        )

    async def hold(self, event_id: str, *seats: int) -> PlacedHold:
        self.holds += 1
        now_us = self.till.clock()
        new = NewHold(
            f"bkg_{self.holds:026d}", event_id, f"fan_{self.holds}", seats, now_us, now_us + 600_000_000,
            1999 * len(seats), "EUR", (1999,) * len(seats),
        )  # fmt: skip
        return await self.till.ledger.place_hold(new)

    async def sell(self, event_id: str, *seats: int) -> PlacedHold:
        hold = await self.hold(event_id, *seats)
        await self.checkout.pay(hold.booking_id, hold.fence, CARD)
        await self.settle()
        return hold

    async def settle(self, for_s: int = 60) -> None:
        for _ in range(0, for_s, 10):
            await self.checkout.work()
            await self.refunds.work()
            new, self.told = self.adyen.notices[self.told :], len(self.adyen.notices)
            for body in new:
                await self.checkout.handle_webhook(body, {}, "adyen")
            self.till.clock.advance(10)

    def at(self, merchant: str) -> tuple[int, int]:
        """What Adyen has taken and refunded on a merchant account."""
        mine = [one for one in self.adyen.payments.values() if one.merchant == merchant]
        return sum(one.captured for one in mine), sum(one.refunded for one in mine)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with adyen_server() as adyen, open_till(tmp_path) as till:
        adyen.merchants |= {"HallECOM", "ClubECOM", "NewHallECOM"}
        for event_id, organiser_id in OF.items():
            await till.ledger.catalogue.put_event(shop_event(id=event_id, organiser_id=organiser_id), till.clock())
        one = Shop(till, adyen)
        await one.accounts.put(Editor("operator", "org_hall"), "adyen", "HallECOM", 250)
        await one.accounts.put(Editor("operator", "org_club"), "adyen", "ClubECOM", 0)
        yield one
        await one.provider.aclose()


async def test_two_organisers_sell_at_once_and_each_cent_lies_on_the_right_account(shop: Shop, tmp_path: Path) -> None:
    """And `frontrow ledger reconcile` says so."""
    places = [(event, number) for number in range(6) for event in OF]
    holds = [await shop.hold(event, 2 * number, 2 * number + 1) for event, number in places]
    await asyncio.gather(*(shop.checkout.pay(one.booking_id, one.fence, CARD) for one in holds))
    await shop.settle()
    for hold in holds[:3]:  # one booking of each: a seat, then the rest
        await shop.refunds.refund(hold.booking_id, hold.fence, [0])
        await shop.settle()
    for hold in holds[:2]:
        await shop.refunds.refund(hold.booking_id, hold.fence)
    await shop.settle()
    sold, one = 6 * 2 * 1999, 1999
    assert shop.at("HallECOM") == (sold, 2 * one)
    assert shop.at("ClubECOM") == (sold, 2 * one)
    assert shop.at(MERCHANT) == (sold, one)
    fee = 6 * (2 * one * 250 // 10_000)
    assert await shop.accounts.money("org_hall") == [
        MoneyAtAccount("adyen", "HallECOM", "EUR", sold, 2 * one, fee_minor=fee)
    ]
    assert await shop.accounts.money("org_club") == [MoneyAtAccount("adyen", "ClubECOM", "EUR", sold, 2 * one)]
    assert await shop.accounts.money("org_other") == [MoneyAtAccount("adyen", "", "EUR", sold, one)]
    report = await shop.reconciler.run()
    assert (report.problems, report.difference_minor, report.wrong_accounts) == ([], {}, [])
    env = {
        "FRONTROW_ADYEN_API": shop.adyen.url,
        "FRONTROW_ADYEN_KEY": KEY,
        "FRONTROW_ADYEN_MERCHANT_ACCOUNT": MERCHANT,
        "FRONTROW_ADYEN_HMAC_KEY": HMAC_KEY,
        "FRONTROW_PAYMENTS_URL": "",
    }
    ledger = ["--ledger", f"sqlite:///{tmp_path / 'till.db'}", "--json"]
    run = await asyncio.to_thread(CliRunner().invoke, ledger_app, ["reconcile", *ledger, "--days", "20000"], env=env)
    assert run.exit_code == 0, run.output
    told = json.loads(run.output)
    assert {name: sums["provider_minor"] for name, sums in told["accounts"].items()} == {
        "adyen": {"EUR": sold - one},
        "adyen HallECOM": {"EUR": sold - 2 * one},
        "adyen ClubECOM": {"EUR": sold - 2 * one},
    }
    run = await asyncio.to_thread(CliRunner().invoke, organiser_app, ["account", "org_hall", *ledger], env=env)
    assert run.exit_code == 0, run.output
    (line,) = json.loads(run.output)["money"]
    assert line["kept_minor"] == sold - 2 * one - fee


async def test_money_on_the_wrong_account_is_found(shop: Shop) -> None:
    hold = await shop.sell(HALL, 1)
    await shop.accounts.put(Editor("operator", "org_hall"), "adyen", "NewHallECOM", 0)
    notes = shop.till.ledger.provider_notes
    payment = await shop.till.driver_payment(hold.booking_id)
    original = notes.newest

    async def elsewhere(provider: str, account: str, since_us: int, after: str, limit: int) -> list[str]:
        if account == "HallECOM":
            return []
        return [payment.ref] if account == "NewHallECOM" else await original(provider, account, since_us, after, limit)

    notes.newest = elsewhere  # type: ignore[method-assign]
    report = await shop.reconciler.run()
    assert any("lies on adyen NewHallECOM, the ledger says HallECOM" in one for one in report.problems)


async def test_a_refund_goes_where_the_charge_was_after_the_account_was_changed(shop: Shop) -> None:
    before = await shop.sell(HALL, 1)
    await shop.accounts.put(Editor("operator", "org_hall"), "adyen", "NewHallECOM", 0)
    after = await shop.sell(HALL, 2)
    for hold in (before, after):
        await shop.refunds.refund(hold.booking_id, hold.fence)
    await shop.settle()
    assert (shop.at("HallECOM"), shop.at("NewHallECOM")) == ((1999, 1999), (1999, 1999))
    report = await shop.reconciler.run()
    assert (report.problems, report.wrong_accounts) == ([], [])


async def test_a_refund_of_a_revoked_account_waits_and_is_paid_when_it_is_back(shop: Shop) -> None:
    hold = await shop.sell(HALL, 1)
    shop.adyen.revoked.add("HallECOM")
    await shop.refunds.refund(hold.booking_id, hold.fence)
    await shop.settle(for_s=300)
    (refund,) = await shop.till.ledger.payments.refunds_of(hold.booking_id)
    assert refund.state is RefundState.ASKED
    assert (await shop.accounts.money("org_hall"))[0].waiting == 1
    assert shop.at("HallECOM") == (1999, 0)
    assert (await shop.sell(CLUB, 1)) is not None  # nobody else is held up
    shop.adyen.revoked.clear()
    await shop.settle(for_s=300)
    (refund,) = await shop.till.ledger.payments.refunds_of(hold.booking_id)
    assert (refund.state, shop.at("HallECOM")) == (RefundState.DONE, (1999, 1999))


@pytest.mark.parametrize("state", [AccountState.RESTRICTED, AccountState.CLOSED])
async def test_an_account_that_takes_nothing_refuses_in_a_sentence_and_charges_nobody(
    shop: Shop, state: AccountState
) -> None:
    hold, now_us = await shop.hold(HALL, 1), shop.till.clock()
    closed = PaymentAccount("org_hall", "adyen", "HallECOM", state, "the owner left", 250, now_us, now_us)
    await shop.accounts._put(closed, Editor("provider", "org_hall"))
    with pytest.raises(SellerCannotBePaid, match="cannot take payments at the moment; nothing was charged"):
        await shop.checkout.pay(hold.booking_id, hold.fence, CARD)
    assert (await shop.till.booking(hold.booking_id)).state is BookingState.HELD
    assert not shop.adyen.payments
    await shop.accounts.end(Editor("operator", "org_hall"))  # the server's own takes them again
    await shop.checkout.pay(hold.booking_id, hold.fence, CARD)
    await shop.settle()
    assert shop.at(MERCHANT) == (1999, 0)


async def test_what_cannot_be_an_account_is_refused(shop: Shop) -> None:
    with pytest.raises(Refused, match="belongs to org_hall"):
        await shop.accounts.put(Editor("operator", "org_club"), "adyen", "HallECOM", 0)
    with pytest.raises(InvalidInput, match="new payments go through 'adyen' here"):
        await shop.accounts.put(Editor("operator", "org_club"), "stripe", "acct_1", 0)
    with pytest.raises(InvalidInput, match="basis points"):
        await shop.accounts.put(Editor("operator", "org_club"), "adyen", "ClubECOM", 9_999)
    with pytest.raises(InvalidInput, match="without spaces"):
        await shop.accounts.put(Editor("operator", "org_club"), "adyen", "Club ECOM", 0)


# Stripe Connect.


@pytest.fixture
def localstripe() -> Iterator[str]:
    command = [sys.executable, str(Path(__file__).parent / "localstripe_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


@pytest.fixture
async def connect(localstripe: str) -> AsyncIterator[StripeConnect]:
    async with stripe_connect(localstripe) as one:
        yield one


async def card_of(connect: StripeConnect) -> str:
    form = {"type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2033"}
    async with httpx.AsyncClient(base_url=connect.behind, auth=("sk_test_x", "")) as bank:
        return str((await bank.post("/v1/payment_methods", data=form | {"card[cvc]": "123"})).json()["id"])


class NotCalledOnce:
    """A provider that cannot be called once, when a payment is to be created."""

    def __init__(self, inner: PaymentProvider) -> None:
        self._inner, self._was_called = inner, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def for_account(self, account: str) -> "NotCalledOnce":
        self._inner = self._inner.for_account(account)  # type: ignore[attr-defined]
        return self

    async def create(self, new: NewIntent) -> Intent:
        if not self._was_called:
            self._was_called = True
            raise ProviderNotCalled("the provider does not answer")
        return await self._inner.create(new)


async def test_the_fee_is_taken_also_by_the_worker_that_begins_the_payment_later(
    connect: StripeConnect, tmp_path: Path
) -> None:
    """The worker knows of the fee only what the ledger has kept."""
    connect.accounts["acct_hall"] = {"id": "acct_hall", "charges_enabled": True}
    async with open_till(tmp_path) as till:
        till.clock.now_us = time.time_ns() // 1000
        await till.ledger.catalogue.put_event(shop_event(id=HALL, organiser_id="org_hall"), till.clock())
        stripe = StripeProvider("sk_test_x", "whsec_a", api_base=connect.url)
        providers = OpenProviders(NotCalledOnce(stripe))  # type: ignore[arg-type]
        accounts = PaymentAccounts(till.ledger, providers, till.clock)
        await accounts.put(Editor("operator", "org_hall"), "stripe", "acct_hall", 300)
        checkout = Checkout(till.ledger, providers, till.clock, issuer=ISSUER, payees=accounts)
        now_us = till.clock()
        hold = await till.ledger.place_hold(
            NewHold("bkg_fee", HALL, "fan_1", (1,), now_us, now_us + 600_000_000, 5000, "EUR", (5000,))
        )
        asked = await checkout.pay(hold.booking_id, hold.fence, await card_of(connect))
        assert asked.state is CheckoutState.RETRYING
        till.clock.advance(6)
        await checkout.work()
        assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
        assert list(connect.fees.values()) == [150]
        await stripe.aclose()


async def test_an_organiser_opens_an_account_at_stripe_and_is_paid_there(
    connect: StripeConnect, tmp_path: Path
) -> None:
    """Onboarding, the fee, refunds after the access was taken away and given back, and what reconcile says."""
    async with open_till(tmp_path) as till:
        till.clock.now_us = time.time_ns() // 1000
        for event_id, organiser_id in OF.items():
            await till.ledger.catalogue.put_event(shop_event(id=event_id, organiser_id=organiser_id), till.clock())
        stripe = StripeProvider("sk_test_x", "whsec_a", connect_secret="whsec_b", api_base=connect.url)
        providers = OpenProviders(GuardedProvider(stripe, till.clock))
        accounts = PaymentAccounts(till.ledger, providers, till.clock)
        checkout = Checkout(till.ledger, providers, till.clock, issuer=ISSUER, payees=accounts, listeners=[accounts])
        refunds = Refunds(till.ledger, providers, till.clock)
        reconciler = Reconciler(till.ledger, providers, till.clock, checkout.driver, payees=accounts)
        owner, holds = Editor("stf_1", "org_hall"), 0

        async def sell(event_id: str) -> PlacedHold:
            nonlocal holds
            holds += 1
            now_us = till.clock()
            hold = await till.ledger.place_hold(
                NewHold(f"bkg_{holds:026d}", event_id, f"fan_{holds}", (holds,), now_us, now_us + 600_000_000, 5000,
                        "EUR", (5000,))
            )  # fmt: skip
            await checkout.pay(hold.booking_id, hold.fence, await card_of(connect))
            await checkout.work()
            return hold

        def on(account: str) -> list[str]:
            return [ref for ref, whose in connect.owner.items() if whose == account]

        url = await accounts.onboard(owner, "stripe", "https://shop.example/organiser/payments")
        assert url == "https://connect.example/acct_1"
        assert await accounts.onboard(owner, "stripe", "https://shop.example/organiser/payments") == url
        found = await accounts.look(owner)
        assert found is not None
        assert (found.state, found.reason) == (AccountState.ONBOARDING, "requirements.past_due")
        await sell(HALL)  # until everything is filled in, the platform's own account takes the money
        assert (len(on("")), len(on("acct_1"))) == (1, 0)

        connect.accounts["acct_1"] |= {"charges_enabled": True, "requirements": {}}
        about = {"id": "acct_1", "object": "account"}
        body = json.dumps({"id": "evt_1", "account": "acct_1", "type": "account.updated", "data": {"object": about}})
        header = {"stripe-signature": sign(body.encode(), "whsec_b", till.clock())}
        assert await checkout.handle_webhook(body.encode(), header, "stripe")
        found = await accounts.current("org_hall")
        assert found is not None
        assert found.state is AccountState.ACTIVE
        await accounts.put(Editor("operator", "org_hall"), "stripe", "acct_1", 300)
        sold, other = await sell(HALL), await sell(CLUB)
        assert (len(on("")), len(on("acct_1"))) == (2, 1)
        assert [connect.fees[ref] for ref in on("acct_1")] == [150]
        (line,) = [one for one in await accounts.money("org_hall") if one.account]
        assert (line.captured_minor, line.fee_minor, line.kept_minor) == (5000, 150, 4850)
        assert [one.amount_minor for one in await accounts.payouts(found)] == [4321]

        connect.closed.add("acct_1")
        await refunds.refund(sold.booking_id, sold.fence)
        await refunds.refund(other.booking_id, other.fence)
        await refunds.work()
        found = await accounts.look(owner)
        assert found is not None
        assert found.state is AccountState.CLOSED
        assert "does not have access to account" in found.reason
        states = [(await till.ledger.payments.refunds_of(one.booking_id))[0].state for one in (sold, other)]
        assert states == [RefundState.ASKED, RefundState.DONE]  # the one waits, the other is not held up
        report = await reconciler.run()
        assert [one.split(":")[0] for one in report.problems][:1] == ["stripe acct_1"]
        connect.closed.clear()
        till.clock.advance(200)
        await refunds.work()
        (refund,) = await till.ledger.payments.refunds_of(sold.booking_id)
        assert refund.state is RefundState.DONE
        report = await reconciler.run()
        assert (report.problems, report.difference_minor, report.wrong_accounts) == ([], {}, [])
        assert report.accounts["stripe"].provider_minor == {"EUR": 5000}
        await stripe.aclose()


async def dispute(shop: Shop, hold: PlacedHold, code: str, merchant: str) -> None:
    """What Adyen tells of a chargeback of this booking's payment, on this merchant account."""
    payment = await shop.till.driver_payment(hold.booking_id)
    (psp,) = [one.psp for one in shop.adyen.payments.values() if one.reference == payment.ref]
    amount = {"value": payment.amount_minor, "currency": "EUR"}
    body = notice_body(code, "CB1", merchant, payment.ref, amount, original=psp, reason="fraud")
    await shop.checkout.handle_webhook(body, {}, "adyen")


async def test_a_dispute_of_an_organisers_own_account_stops_its_refunds_and_nobody_elses(shop: Shop) -> None:
    """Also after the organiser has another account; what is won goes back from where the charge was."""
    hall, club = await shop.sell(HALL, 1), await shop.sell(CLUB, 1)
    await dispute(shop, hall, "CHARGEBACK", "HallECOM")
    await shop.accounts.put(Editor("operator", "org_hall"), "adyen", "NewHallECOM", 0)
    later = await shop.sell(HALL, 2)
    with pytest.raises(BookingDisputed):
        await shop.refunds.refund(hall.booking_id, hall.fence)
    for other in (club, later):
        await shop.refunds.refund(other.booking_id, other.fence)
    await shop.settle()
    assert (shop.at("HallECOM"), shop.at("ClubECOM"), shop.at("NewHallECOM")) == ((1999, 0), (1999, 1999), (1999, 1999))
    ledger = shop.till.ledger.payments
    assert [one.booking_id for one in await ledger.disputes("org_hall", "", 10)] == [hall.booking_id]
    assert await ledger.disputes("org_club", "", 10) == []
    report = await shop.reconciler.run()
    assert (report.problems, report.difference_minor, report.wrong_accounts) == ([], {}, [])
    assert report.disputed_minor == {"EUR": 1999}
    await dispute(shop, hall, "CHARGEBACK_REVERSED", "HallECOM")
    await shop.refunds.refund(hall.booking_id, hall.fence)
    await shop.settle()
    assert (shop.at("HallECOM"), shop.at("NewHallECOM")) == ((1999, 1999), (1999, 1999))


async def test_a_lost_dispute_lies_on_the_account_that_took_the_money(shop: Shop) -> None:
    hall = await shop.sell(HALL, 1)
    for code in ("CHARGEBACK", "SECOND_CHARGEBACK"):
        await dispute(shop, hall, code, "HallECOM")
    with pytest.raises(BookingDisputed, match="took this money back"):
        await shop.refunds.refund(hall.booking_id, hall.fence)
    await shop.settle()
    report = await shop.reconciler.run()
    assert report.lost_minor == {"EUR": 1999}
    assert shop.at("HallECOM") == (1999, 0)


async def test_one_organisers_account_cannot_dispute_or_pay_what_another_one_sells(shop: Shop) -> None:
    """Whoever has a merchant account chooses the references of its payments, also those of somebody else."""
    sold = await shop.sell(HALL, 1)
    await dispute(shop, sold, "CHARGEBACK", "ClubECOM")
    assert await shop.till.ledger.payments.disputes_of(sold.booking_id) == []
    hold = await shop.hold(HALL, 2)
    await shop.checkout.pay(hold.booking_id, hold.fence, "ideal")
    payment = await shop.till.driver_payment(hold.booking_id)
    amount = {"value": payment.amount_minor, "currency": "EUR"}
    paid = notice_body("AUTHORISATION", "PSPCLUB", "ClubECOM", payment.ref, amount, method="ideal")
    await shop.checkout.handle_webhook(paid, {}, "adyen")
    shop.till.clock.advance(30)
    await shop.checkout.work()
    assert (await shop.till.booking(hold.booking_id)).state is BookingState.PAYING
