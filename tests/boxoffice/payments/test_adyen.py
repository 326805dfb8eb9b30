"""Adyen against a stand-in written from its documentation: the contract of the port, webhooks, errors, whole sales."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.payments.adyen import AdyenProvider
from frontrow.boxoffice.adapters.payments.adyen_webhooks import sign_text
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.checkout.reconciliation import Reconciler
from frontrow.boxoffice.facts.model import LatePaymentReturned
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.payments import ENDED, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    NewIntent,
    ProviderError,
    ProviderNotCalled,
)
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Unauthorised
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, open_till
from tests.boxoffice.payments.adyen_server import (
    CLIENT_KEY,
    MERCHANT,
    AdyenServer,
    adyen_server,
    notice_body,
    provider_of,
)
from tests.boxoffice.payments.crashes import Crash, Fuse, FusedLedger, FusedProvider
from tests.boxoffice.shop import shop_event
from tests.contracts.payment_provider import CHECKS, METHOD_CHECKS, Check, ProviderCase

CARDS = {name: f"fan/{name}" for name in ("visa", "declined", "3ds", "refund_fails", "refund_pends")}


@pytest.fixture
async def adyen() -> AsyncIterator[AdyenServer]:
    async with adyen_server() as server:
        yield server


async def deliver(adyen: AdyenServer, provider: AdyenProvider, clock: Clock) -> None:
    """Hand the notices over that were not handed over yet."""
    while adyen.notices:
        notice = provider.notice(adyen.notices.pop(0), {}, clock())
        assert notice is not None
        await provider.remember(notice)


@pytest.mark.parametrize("client_key", ["", CLIENT_KEY], ids=["page", "form"])
@pytest.mark.parametrize("check", [*CHECKS, *METHOD_CHECKS], ids=lambda check: check.__name__)
async def test_the_contract(check: Check, client_key: str, adyen: AdyenServer, tmp_path: Path) -> None:
    async with open_till(tmp_path) as till:
        provider = provider_of(adyen, till.ledger, till.clock, client_key)

        async def answer(intent: Intent, success: bool) -> None:
            adyen.answer_redirect(intent.action_url, success=success)
            await deliver(adyen, provider, till.clock)

        async def settle() -> None:
            await deliver(adyen, provider, till.clock)

        await check(ProviderCase(provider, CARDS, answer, answer, settle=settle))
        await provider.aclose()


async def test_what_a_fan_brings_back_from_a_page_that_was_left_pays_no_dearer_one(
    adyen: AdyenServer, tmp_path: Path
) -> None:
    """The fan opens a bank's page, adds to the basket, opens another page, pays on the first one and returns."""
    async with open_till(tmp_path) as till:
        provider = provider_of(adyen, till.ledger, till.clock)
        cheap, dear = [
            await provider.create(NewIntent("bkg_1", n, price, "EUR", "evt_1", 7, (1,), f"k{n}", method="ideal"))
            for n, price in ((1, 5_000), (2, 90_000))
        ]
        brought = {"redirectResult": adyen.answer_redirect(cheap.action_url)}
        assert await provider.returned(dear.ref, brought)
        assert (await provider.read(dear.ref)).state is IntentState.ACTION
        found = await provider.read(cheap.ref)
        assert (found.state, found.captured_minor) == (IntentState.CAPTURED, 5_000)
        await provider.aclose()


FORM = NewIntent(
    "bkg_1", 1, 5_000, "EUR", "evt_1", 7, (1,), "k1", methods=("card", "ideal"), return_url="https://shop.example/c"
)


async def test_a_payment_for_the_form_is_a_session_of_the_form(adyen: AdyenServer, tmp_path: Path) -> None:
    """What is sent, what the page is given, and that the same call opens no second one."""
    async with open_till(tmp_path) as till:
        provider = provider_of(adyen, till.ledger, till.clock, CLIENT_KEY)
        intents = [await provider.create(FORM) for _ in range(2)]
        (name,) = adyen.sessions
        assert [one.client_secret for one in intents] == [f"{name}:data-of:{name}"] * 2
        assert [(one.state, one.action_url) for one in intents] == [(IntentState.CREATED, "")] * 2
        asked = adyen.sessions[name]["asked"]
        expected = {
            "amount": {"value": 5_000, "currency": "EUR"},
            "returnUrl": "https://shop.example/c",
            "additionalData": {"manualCapture": "true"},
            "allowedPaymentMethods": ["scheme", "ideal"],
            "authenticationData": {"threeDSRequestData": {"nativeThreeDS": "disabled"}},
        }
        assert {key: asked.get(key) for key in expected} == expected
        assert "mode" not in asked
        await provider.aclose()


async def test_a_fan_whose_browser_cannot_show_the_form_pays_on_adyens_page(adyen: AdyenServer, tmp_path: Path) -> None:
    """The form was opened, and then its page is asked for: also twice, and after a lost answer."""
    async with open_till(tmp_path) as till:
        provider = provider_of(adyen, till.ledger, till.clock, CLIENT_KEY)
        form = await provider.create(FORM)
        adyen.fail_next = ["lost"]
        with pytest.raises(ProviderError):
            await provider.authorise(form.ref, "hosted", "k2", "https://shop.example/c")
        led = [await provider.authorise(form.ref, "hosted", "k2", "https://shop.example/c") for _ in range(2)]
        first, page = adyen.sessions
        assert [(one.state, one.action_url.rpartition("/")[2]) for one in led] == [(IntentState.ACTION, page)] * 2
        result = adyen.pay_session(page)
        assert await provider.returned(form.ref, {"sessionId": page, "sessionResult": result})
        assert (await provider.read(form.ref)).state is IntentState.AUTHORISED
        adyen.pay_session(first)  # the other tab still shows the form: the money of one of them goes back
        await deliver(adyen, provider, till.clock)
        assert [one.state for one in await provider.page(0)] == [IntentState.AUTHORISED] * 2
        await provider.aclose()


async def test_a_form_in_an_old_tab_pays_no_dearer_payment(adyen: AdyenServer, tmp_path: Path) -> None:
    """An add-on was chosen in between: what the old form brings counts for the payment that it was opened for."""
    async with open_till(tmp_path) as till:
        provider = provider_of(adyen, till.ledger, till.clock, CLIENT_KEY)
        cheap = await provider.create(FORM)
        await provider.void(cheap.ref, "void")
        dear = await provider.create(NewIntent("bkg_1", 2, 90_000, "EUR", "evt_1", 7, (1,), "k3", methods=("card",)))
        old, _ = adyen.sessions
        brought = {"sessionId": old, "sessionResult": adyen.pay_session(old)}
        assert await provider.returned(dear.ref, brought)
        assert (await provider.read(dear.ref)).state is IntentState.CREATED
        assert (await provider.read(cheap.ref)).state is IntentState.AUTHORISED, "told, so that it can be given back"
        assert not await provider.returned(dear.ref, {"sessionId": "CS-of-nobody", "sessionResult": "x"})
        await provider.aclose()


# Whole sales.


class Sale:
    """A till whose provider is Adyen, and the fans and notices around it."""

    def __init__(self, till: Till, adyen: AdyenServer, client_key: str = "") -> None:
        self.till, self.adyen, self.told = till, adyen, 0
        self.provider = provider_of(adyen, till.ledger, till.clock, client_key)
        self.open(self.provider, till.ledger)

    def open(self, provider: Any, ledger: Any) -> None:
        """A process of its own: it knows nothing but the ledger and the provider."""
        self.checkout = Checkout(ledger, provider, self.till.clock, issuer=ISSUER)
        self.refunds = Refunds(ledger, provider, self.till.clock)
        self.reconciler = Reconciler(ledger, provider, self.till.clock, self.checkout.driver)

    async def hear(self, order: str = "in order") -> None:
        """Hand over the notices that Adyen sent since the last time."""
        new, self.told = self.adyen.notices[self.told :], len(self.adyen.notices)
        if order == "off":
            return
        if order == "reordered":
            new = new[::-1]
        for body in new * (2 if order == "doubled" else 1):
            await self.checkout.handle_webhook(body, {})

    async def settle(self, order: str = "in order", for_s: int = 60) -> None:
        for _ in range(0, for_s, 10):
            await self.till.sweeper.sweep()
            await self.checkout.work()
            await self.refunds.work()
            for one in list(self.adyen.redirects):  # the fan pays at the bank whatever happens to us
                self.adyen.answer_redirect(one)
            if order != "late" or _ >= 30:
                await self.hear("in order" if order == "late" else order)
            self.till.clock.advance(10)

    async def assert_money(self, booking_id: str) -> BookingState:
        """A ticket and one charge, or neither and nothing reserved."""
        booking = await self.till.booking(booking_id)
        taken = [one for one in self.adyen.payments.values() if one.reference.startswith(booking_id)]
        kept = sum(one.captured - one.refunded for one in taken)
        tickets = [one for one in await self.till.ledger.tickets.tickets_of(booking_id) if one.state == "valid"]
        sold = booking.state is BookingState.CONFIRMED
        assert (kept, len(tickets)) == ((booking.amount_minor, len(booking.seats)) if sold else (0, 0)), booking.state
        assert not [one for one in taken if one.is_reserved], "money stays reserved"
        return booking.state


@pytest.fixture
async def sale(adyen: AdyenServer, tmp_path: Path) -> AsyncIterator[Sale]:
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        one = Sale(till, adyen)
        yield one
        await one.provider.aclose()


@pytest.fixture
async def form_sale(adyen: AdyenServer, tmp_path: Path) -> AsyncIterator[Sale]:
    """A till whose fans pay in Adyen's form."""
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        sale = Sale(till, adyen, CLIENT_KEY)
        yield sale
        await sale.provider.aclose()


async def pay(sale: Sale, booking_id: str, fence: int, method: str) -> None:
    """What the fan does, up to the page of the shop after the bank's."""
    outcome = await sale.checkout.pay(booking_id, fence, method)
    if outcome.state is CheckoutState.ACTION:
        result = sale.adyen.answer_redirect(outcome.action_url)
        await sale.checkout.check(booking_id, fence, {"redirectResult": result})
    await sale.checkout.work()


ORDERS = ("in order", "off", "late", "doubled", "reordered")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("method", ["fan/visa", "ideal"])
async def test_a_sale_is_paid_once_however_notices_come(sale: Sale, method: str, order: str) -> None:
    hold = await sale.till.hold(1, 2)
    await pay(sale, hold.booking_id, hold.fence, method)
    await sale.settle(order)
    assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED
    payment = await sale.till.driver_payment(hold.booking_id)
    known = method == "ideal" or order != "off"  # without notices nobody can know of a capture
    assert payment.state is (PaymentState.CAPTURED if known else PaymentState.CAPTURING)
    assert payment.paid_with == ("ideal" if method == "ideal" else "card")
    if known:
        report = await sale.reconciler.run()
        assert (report.problems, report.difference_minor) == ([], {})


@pytest.mark.parametrize("order", ORDERS[2:])
async def test_refunds_are_paid_when_the_notice_says_so(sale: Sale, order: str) -> None:
    hold = await sale.till.hold(1, 2)
    await pay(sale, hold.booking_id, hold.fence, "fan/visa")
    await sale.settle()
    await sale.refunds.refund(hold.booking_id, hold.fence, [1])
    await sale.refunds.work()
    (refund,) = await sale.till.ledger.payments.refunds_of(hold.booking_id)
    assert refund.state is RefundState.PENDING
    await sale.settle(order)
    (refund,) = await sale.till.ledger.payments.refunds_of(hold.booking_id)
    assert refund.state is RefundState.DONE
    await sale.assert_money(hold.booking_id)
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


@pytest.mark.parametrize("code", ["REFUND_FAILED", "REFUNDED_REVERSED"])
@pytest.mark.parametrize("comes", ["after", "before"])
async def test_a_refund_that_the_bank_sends_back_is_owed_again(sale: Sale, code: str, comes: str) -> None:
    """Whichever of the two notices comes first."""
    hold = await sale.till.hold(1, 2)
    await pay(sale, hold.booking_id, hold.fence, "fan/visa")
    await sale.settle()
    await sale.refunds.refund(hold.booking_id, hold.fence, [1])
    await sale.refunds.work()
    (payment,) = sale.adyen.payments.values()
    done = json.loads(sale.adyen.notices[-1])["notificationItems"][0]["NotificationRequestItem"]
    assert done["eventCode"] == "REFUND"
    failed = notice_body(
        code,
        done["pspReference"],
        MERCHANT,
        done["merchantReference"],
        done["amount"],
        original=payment.psp,
        reason="account closed",
    )
    sale.adyen.notices.insert(len(sale.adyen.notices) if comes == "after" else sale.told, failed)
    await sale.settle()
    (refund,) = await sale.till.ledger.payments.refunds_of(hold.booking_id)
    assert (refund.state, refund.failure) == (RefundState.FAILED, "account closed")


async def test_money_that_the_bank_takes_back_after_a_capture_is_told_to_a_person(sale: Sale) -> None:
    """Days after the sale. The ticket may be used by now, so nobody is thrown out by a machine."""
    hold = await sale.till.hold(1)
    await pay(sale, hold.booking_id, hold.fence, "fan/visa")
    await sale.settle()
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})
    (payment,) = sale.adyen.payments.values()
    sale.adyen.fail_capture(payment.psp)
    await sale.settle()
    assert (await sale.till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    report = await sale.reconciler.run()
    assert report.difference_minor == {"EUR": -5000}


@pytest.mark.parametrize("fault", ["lost", "500"])
@pytest.mark.parametrize("method", ["fan/visa", "ideal"])
async def test_a_call_that_was_lost_is_made_once(sale: Sale, method: str, fault: str) -> None:
    """Every call in turn: its answer is lost, or Adyen fails before it acts."""
    for number in range(4):
        hold = await sale.till.hold(10 + number)
        sale.adyen.fail_next = [""] * number + [fault]
        with contextlib.suppress(ProviderError):
            await pay(sale, hold.booking_id, hold.fence, method)
        await sale.settle(for_s=180)
        sale.adyen.fail_next = []
        assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED
        mine = [one for one in sale.adyen.payments.values() if one.reference.startswith(hold.booking_id)]
        assert len(mine) == 1


@pytest.mark.parametrize("order", ["in order", "reordered", "late"])
@pytest.mark.parametrize("method", ["fan/visa", "ideal"])
async def test_every_crash_point_ends_with_a_ticket_and_one_charge_or_neither(
    adyen: AdyenServer, tmp_path: Path, method: str, order: str
) -> None:
    """F5, for Adyen: the process dies before and after each call and each commit of a sale and its refund."""
    async with open_till(tmp_path) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        sale, points = Sale(till, adyen), 1
        number = -1
        while number < points:
            for when in ("before", "after"):
                hold = await till.hold()
                fuse = Fuse(number, when)
                sale.open(FusedProvider(sale.provider, fuse), FusedLedger(till.ledger, fuse))
                with contextlib.suppress(Crash, ProviderError):
                    await pay(sale, hold.booking_id, hold.fence, method)
                    await sale.hear()
                    await sale.refunds.refund(hold.booking_id, hold.fence)
                    await sale.refunds.work()
                points = max(points, len(fuse.trace))
                sale.open(sale.provider, till.ledger)
                await sale.settle(order, for_s=700 if number == 0 else 90)
                await sale.assert_money(hold.booking_id)
                payments = await till.ledger.payments.payments_of(hold.booking_id)
                assert all(one.state in ENDED | {PaymentState.CAPTURED} for one in payments)
            number += 1
        assert points > 8
        report = await sale.reconciler.run()
        assert (report.problems, report.difference_minor) == ([], {})
        await sale.provider.aclose()


async def test_money_that_comes_after_the_end_goes_back(sale: Sale) -> None:
    """The hold ends while the fan is at Adyen's page, or at the bank's; the fan pays all the same."""
    at_page, at_bank = await sale.till.hold(1), await sale.till.hold(2)
    await sale.checkout.pay(at_page.booking_id, at_page.fence, "hosted")
    await sale.checkout.pay(at_bank.booking_id, at_bank.fence, "ideal")
    sale.till.clock.advance(601)
    await sale.settle()
    for hold in (at_page, at_bank):
        assert (await sale.till.booking(hold.booking_id)).state is BookingState.EXPIRED
    (session,) = sale.adyen.sessions
    sale.adyen.pay_session(session)
    for one in list(sale.adyen.redirects):
        sale.adyen.answer_redirect(one)
    await sale.hear()
    await sale.settle()
    for hold in (at_page, at_bank):
        assert await sale.assert_money(hold.booking_id) is BookingState.EXPIRED
    assert [type(one) for one in await sale.till.facts()].count(LatePaymentReturned) == 1
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


async def test_a_fan_who_pays_on_adyens_page_and_comes_back_needs_no_notice(sale: Sale) -> None:
    hold = await sale.till.hold(1)
    outcome = await sale.checkout.pay(hold.booking_id, hold.fence, "hosted")
    (session,) = sale.adyen.sessions
    assert (outcome.state, outcome.action_url.endswith(f"/pay/{session}")) == (CheckoutState.ACTION, True)
    result = sale.adyen.pay_session(session, "ideal")
    back = await sale.checkout.check(hold.booking_id, hold.fence, {"sessionId": session, "sessionResult": result})
    assert back.state is CheckoutState.CONFIRMED
    await sale.assert_money(hold.booking_id)


async def open_form(sale: Sale, booking_id: str, fence: int) -> str:
    """The checkout page opens Adyen's form. Returns its session."""
    outcome = await sale.checkout.begin(booking_id, fence)
    assert outcome.state is CheckoutState.OPEN
    return outcome.client_secret.partition(":")[0]


async def test_a_fan_who_pays_in_the_form_and_comes_back_needs_no_notice(form_sale: Sale) -> None:
    sale, hold = form_sale, await form_sale.till.hold(1)
    session = await open_form(sale, hold.booking_id, hold.fence)
    assert await open_form(sale, hold.booking_id, hold.fence) == session, "one session per attempt, in every tab"
    brought = {"sessionId": session, "sessionResult": "result-made-up"}
    assert (await sale.checkout.check(hold.booking_id, hold.fence, brought)).state is CheckoutState.OPEN
    said = sale.adyen.pay_in_form(session, "visa")
    brought = {"sessionId": session, "sessionResult": said["sessionResult"]}
    assert (await sale.checkout.check(hold.booking_id, hold.fence, brought)).state is CheckoutState.CONFIRMED
    await sale.settle()
    assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED


@pytest.mark.parametrize("order", ["in order", "doubled", "late"])
@pytest.mark.parametrize("method", ["visa", "ideal"])
async def test_a_form_that_is_paid_after_the_holds_end_sells_nothing(form_sale: Sale, method: str, order: str) -> None:
    sale, hold = form_sale, await form_sale.till.hold(1)
    session = await open_form(sale, hold.booking_id, hold.fence)
    sale.till.clock.advance(601)
    await sale.settle()
    assert (await sale.till.booking(hold.booking_id)).state is BookingState.EXPIRED
    sale.adyen.pay_in_form(session, method)
    await sale.settle(order, for_s=120)
    assert await sale.assert_money(hold.booking_id) is BookingState.EXPIRED
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


@pytest.mark.parametrize("told", ["by a notice", "by the page"])
@pytest.mark.parametrize("method", ["visa", "ideal"])
async def test_an_old_form_and_the_new_one_are_one_ticket_and_one_charge(
    form_sale: Sale, method: str, told: str
) -> None:
    """Two tabs: in one the fan changed the basket, in the other the form of the earlier payment is paid, too."""
    sale, hold = form_sale, await form_sale.till.hold(1)
    old = await open_form(sale, hold.booking_id, hold.fence)
    await sale.checkout.step_back(hold.booking_id, hold.fence)
    new = await open_form(sale, hold.booking_id, hold.fence)
    said = sale.adyen.pay_in_form(old, method)
    if told == "by the page" and method == "visa":
        brought = {"sessionId": old, "sessionResult": said["sessionResult"]}
        assert (await sale.checkout.check(hold.booking_id, hold.fence, brought)).state is CheckoutState.OPEN
    said = sale.adyen.pay_in_form(new, "visa")
    brought = {"sessionId": new, "sessionResult": said["sessionResult"]}
    assert (await sale.checkout.check(hold.booking_id, hold.fence, brought)).state is CheckoutState.CONFIRMED
    await sale.settle(for_s=120)
    assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED
    (kept,) = [one for one in sale.adyen.payments.values() if one.captured > one.refunded]
    assert kept.reference == (await sale.till.driver_payment(hold.booking_id)).ref
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


async def test_a_card_that_is_declined_in_the_form_counts_once_and_another_pays(form_sale: Sale) -> None:
    """The notice comes twice; the session stays the same."""
    sale, hold = form_sale, await form_sale.till.hold(1)
    session = await open_form(sale, hold.booking_id, hold.fence)
    assert sale.adyen.pay_in_form(session, "declined")["resultCode"] == "Refused"
    await sale.hear("doubled")
    outcome = await sale.checkout.check(hold.booking_id, hold.fence)
    assert (outcome.state, outcome.problem, outcome.tries_left) == (CheckoutState.OPEN, "card_declined", 2)
    assert outcome.client_secret.startswith(f"{session}:")
    said = sale.adyen.pay_in_form(session, "visa")
    brought = {"sessionId": session, "sessionResult": said["sessionResult"]}
    assert (await sale.checkout.check(hold.booking_id, hold.fence, brought)).state is CheckoutState.CONFIRMED


async def test_a_fan_who_pays_twice_gets_the_second_payment_back(sale: Sale) -> None:
    hold = await sale.till.hold(1)
    await sale.checkout.pay(hold.booking_id, hold.fence, "hosted")
    (session,) = sale.adyen.sessions
    for _ in range(2):  # two tabs
        sale.adyen.pay_session(session, "ideal")
    await sale.settle()
    sale.till.clock.advance(120)
    await sale.reconciler.run()
    await sale.hear()
    assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})


async def test_a_capture_that_fails_for_good_cancels_the_sale(sale: Sale) -> None:
    hold = await sale.till.hold(1)
    await pay(sale, hold.booking_id, hold.fence, "fan/lapses")
    await sale.settle(for_s=400)
    assert await sale.assert_money(hold.booking_id) is BookingState.CANCELLED


async def test_forged_notices_are_refused(sale: Sale) -> None:
    amount = {"value": 5000, "currency": "EUR"}
    good = notice_body("AUTHORISATION", "PSP1", MERCHANT, "ref", amount)
    changed = good.replace(b'"value": 5000', b'"value": 1')
    other = notice_body("AUTHORISATION", "PSP1", MERCHANT, "ref", amount, key="00" * 32)
    unsigned = good.replace(b"hmacSignature", b"signature")
    for body in (changed, other, unsigned, good.replace(b'"true"', b'"false"')):
        with pytest.raises(Unauthorised):
            sale.provider.notice(body, {}, sale.till.clock())
    for body in (b"", b"[]", b'{"notificationItems": []}', b"\xff"):
        with pytest.raises(InvalidInput):
            sale.provider.notice(body, {}, sale.till.clock())
    assert sale.provider.notice(good, {}, sale.till.clock()) is not None


async def test_no_digit_of_a_card_is_kept(sale: Sale) -> None:
    """Adyen gives the last digits and the expiry date as the reason of a success."""
    hold = await sale.till.hold(1)
    await pay(sale, hold.booking_id, hold.fence, "fan/visa")
    ref = (await sale.till.driver_payment(hold.booking_id)).ref
    amount = {"value": 5000, "currency": "EUR"}
    sale.adyen.notices.append(notice_body("AUTHORISATION", "PSP9", MERCHANT, ref, amount, reason="033899:1111:03/2030"))
    await sale.hear()
    notes = (await sale.till.ledger.provider_notes.notes_of("adyen", [ref]))[ref]
    assert any("PSP9" in one.name for one in notes)
    assert not any("1111" in one.body for one in notes)


async def test_the_signature_is_the_one_of_adyens_documents() -> None:
    """The example of Adyen's page about HMAC signatures: its text, its key and its signature."""
    text = "7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true"
    key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
    assert sign_text(text, key) == "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="


async def test_a_refused_key_loses_nothing_and_says_why(sale: Sale) -> None:
    hold = await sale.till.hold(1, 2)
    await pay(sale, hold.booking_id, hold.fence, "fan/visa")
    await sale.settle()
    sale.adyen.revoked.add(MERCHANT)
    await sale.refunds.refund(hold.booking_id, hold.fence)
    await sale.refunds.work()
    payment = await sale.till.driver_payment(hold.booking_id)
    with pytest.raises(ProviderNotCalled, match="Adyen refuses our API key for the merchant account FrontrowECOM"):
        await sale.provider.refund(payment.ref, 1, "rfd_x", "k")
    (refund,) = await sale.till.ledger.payments.refunds_of(hold.booking_id)
    assert (refund.state, refund.tries) == (RefundState.ASKED, 1)
    sale.adyen.revoked.clear()
    await sale.settle(for_s=120)
    assert await sale.assert_money(hold.booking_id) is BookingState.REFUNDED


@pytest.mark.parametrize("order", ["in order", "reordered", "doubled", "late"])
async def test_two_ideal_payments_of_one_booking_are_one_ticket_and_one_charge(sale: Sale, order: str) -> None:
    """The fan left the bank's page, began again, and paid on both pages."""
    hold = await sale.till.hold()
    first = await sale.checkout.pay(hold.booking_id, hold.fence, "ideal")
    await sale.checkout.step_back(hold.booking_id, hold.fence)
    second = await sale.checkout.pay(hold.booking_id, hold.fence, "ideal")
    assert first.action_url != second.action_url
    for url in (first.action_url, second.action_url):
        sale.adyen.answer_redirect(url)
    assert sum(one.captured for one in sale.adyen.payments.values()) == 2 * 5000, "the bank took both"
    await sale.settle(order, for_s=120)
    await sale.reconciler.run()
    await sale.settle(for_s=60)
    assert await sale.assert_money(hold.booking_id) is BookingState.CONFIRMED
    report = await sale.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})
