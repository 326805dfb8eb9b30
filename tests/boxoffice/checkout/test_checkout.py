"""The checkout saga end to end with the simulated provider (B6, B7, B8, B9, F2, F4)."""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.simulated import ACCEPTED, CARDS, LAPSES, NEEDS_ACTION, Fault
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.facts.model import (
    BookingCancelled,
    BookingConfirmed,
    LatePaymentReturned,
    PaymentDeclined,
)
from frontrow.boxoffice.holds.model.bookings import BookingState, HoldEnded, StaleFence
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent
from frontrow.core.errors import InvalidInput
from frontrow.web.site.fans.demo_cards import NUMBERS
from tests.boxoffice.checkout.till import ISSUER, Till, assert_money, open_till
from tests.support.eventually import eventually

CARD = "pm_card_visa"


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        yield one


async def test_a_hold_is_paid_confirmed_and_captured(till: Till) -> None:
    """B6: authorise, confirm, capture; keys are booking:operation:attempt. The fan does not wait for the capture:
    it is due at once for whichever worker is first."""
    hold = await till.hold(1, 2)
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    assert outcome.state is CheckoutState.CONFIRMED
    assert outcome.payment is not None
    assert (outcome.payment.state, outcome.payment.retry_at_us) == (PaymentState.CAPTURING, till.clock())
    assert dict(till.provider.calls) == {"create": 1}
    assert await till.checkout.work() == 1
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED
    assert await till.checkout.work() == 0
    assert dict(till.provider.calls) == {"create": 1, "capture": 1}
    keys = [f"{hold.booking_id}:{operation}:1" for operation in ("capture", "pay")]
    assert sorted(till.provider.state.answers) == keys
    [found] = till.provider.objects.values()
    assert (found["amount_received"], found["metadata"]["fence"]) == (10_000, str(hold.fence))
    assert found["metadata"]["seats"] == "1,2"
    assert [type(f) for f in await till.facts()].count(BookingConfirmed) == 1
    await assert_money(till, at_rest=True)


async def test_a_capture_that_takes_long_holds_up_no_other_and_few_run_at_once(till: Till) -> None:
    """Fans who pay need calls to the provider, too."""
    checkout = Checkout(till.ledger, till.guarded, till.clock, issuer=ISSUER, at_once=2)
    holds = [await till.hold() for _ in range(6)]
    for hold in holds:
        await checkout.pay(hold.booking_id, hold.fence, CARD)
    answered, running = asyncio.Event(), [0]
    stuck, capture = (await till.driver_payment(holds[0].booking_id)).ref, till.provider.capture

    async def slow(ref: str, key: str) -> Intent:
        running.append(running[-1] + 1)
        if ref == stuck:
            await answered.wait()
        try:
            return await capture(ref, key)
        finally:
            running.append(running[-1] - 1)

    till.provider.capture = slow  # type: ignore[method-assign]
    worker = asyncio.create_task(checkout.run())
    await eventually(lambda: till.provider.calls["capture"] == 5)  # all but the stuck one
    answered.set()
    await checkout.work()
    worker.cancel()
    await asyncio.wait([worker])
    assert max(running) == 2
    assert [o["amount_received"] for o in till.provider.objects.values()] == [5000] * 6
    await assert_money(till, at_rest=True)


async def test_the_payment_page_comes_first_and_reserves_nothing(till: Till) -> None:
    hold = await till.hold()
    page = await till.checkout.begin(hold.booking_id, hold.fence)
    assert page.state is CheckoutState.OPEN
    assert page.client_secret.startswith("pi_")
    assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    assert (await till.pay(hold.booking_id, hold.fence, CARD)).state is CheckoutState.CONFIRMED
    await assert_money(till, at_rest=True)


async def test_sixty_clicks_on_pay_charge_once(till: Till) -> None:
    """B7, N4: whatever is clicked, one object, one authorisation, one capture."""
    hold = await till.hold()
    done = await asyncio.gather(
        *(till.checkout.pay(hold.booking_id, hold.fence, CARD) for _ in range(60)), return_exceptions=True
    )
    assert not [one for one in done if isinstance(one, BaseException)]
    await till.settle()
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    assert sum(o["amount_received"] for o in till.provider.objects.values()) == 5000
    await assert_money(till, at_rest=True)


async def test_a_declined_card_frees_the_seats_at_once(till: Till) -> None:
    """B9."""
    hold = await till.hold(7)
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_declined")
    assert outcome.state is CheckoutState.DECLINED
    assert (await till.hold(7)).fence > hold.fence, "somebody else has the seat now"
    [declined] = [f for f in await till.facts() if isinstance(f, PaymentDeclined)]
    assert declined.reason == "card_declined"
    await till.settle()
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize(("card", "state"), [("pm_card_3ds", "confirmed"), ("pm_card_3ds_declined", "declined")])
async def test_the_bank_wants_to_see_the_fan(till: Till, card: str, state: str) -> None:
    """3-D Secure: an action first; the webhook (or coming back, or a look every 15 s) goes on."""
    hold = await till.hold()
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, card)
    assert outcome.state is CheckoutState.ACTION
    assert outcome.action_url
    assert outcome.payment is not None
    till.provider.finish_action(outcome.payment.ref)
    body, signature = till.provider.notices[-1]
    assert await till.checkout.handle_webhook(body, signature)
    assert not await till.checkout.handle_webhook(body, signature), "a duplicate is known"
    assert (await till.checkout.check(hold.booking_id, hold.fence)).state == state
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_all_webhooks_lost_changes_nothing(till: Till) -> None:
    hold = await till.hold()
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_3ds")
    assert outcome.payment is not None
    till.provider.finish_action(outcome.payment.ref)
    await till.settle(for_s=20)
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("swept", [True, False])
async def test_a_payment_that_succeeds_after_the_hold_ended_is_given_back(till: Till, swept: bool) -> None:
    """F4, B9: 410, the authorisation is void, one message; the seat may be somebody else's meanwhile."""
    hold = await till.hold(9)
    create = till.provider.create

    async def slow(new: NewIntent) -> object:
        till.clock.advance(600)
        if swept:
            await till.sweeper.sweep()
            await till.hold(9)
        return await create(new)

    till.provider.create = slow  # type: ignore[method-assign,assignment]
    with pytest.raises(HoldEnded) as late:
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    assert late.value.http_status == 410
    await till.settle()
    facts = await till.facts()
    assert [type(f) for f in facts].count(LatePaymentReturned) == 1
    assert [o["status"] for o in till.provider.objects.values()] == ["canceled"]
    assert (await till.booking(hold.booking_id)).state is BookingState.EXPIRED
    await assert_money(till, at_rest=True)


async def test_money_captured_for_a_booking_that_is_over_is_refunded(till: Till) -> None:
    """F4: somebody captured by hand at the provider; the hold had ended."""
    hold = await till.hold()
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_3ds")
    assert outcome.payment is not None
    till.provider.finish_action(outcome.payment.ref)
    till.provider._capture(outcome.payment.ref)
    till.clock.advance(700)
    await till.settle()
    assert sum(r["amount"] for r in till.provider.refunds.values()) == 5000
    assert [type(f) for f in await till.facts()].count(LatePaymentReturned) == 1
    await assert_money(till, at_rest=True)


async def test_an_abandoned_payment_page_is_voided_when_the_hold_ends(till: Till) -> None:
    """B14."""
    hold = await till.hold()
    await till.checkout.begin(hold.booking_id, hold.fence)
    till.clock.advance(600)
    await till.settle()
    assert [o["status"] for o in till.provider.objects.values()] == ["canceled"]
    await assert_money(till, at_rest=True)


async def test_a_capture_that_fails_for_good_is_authorised_again_then_cancelled(till: Till) -> None:
    """After CONFIRMED only forward: two more attempts, then the seats are free and the person is told."""
    hold = await till.hold(5)
    assert (await till.pay(hold.booking_id, hold.fence, LAPSES)).state is CheckoutState.CONFIRMED
    assert (await till.checkout.check(hold.booking_id, hold.fence)).state is CheckoutState.ENDED
    assert [p.state for p in await till.ledger.payments.payments_of(hold.booking_id)] == [PaymentState.LAPSED] * 3
    [told] = [f for f in await till.facts() if isinstance(f, BookingCancelled)]
    assert told.reason == "capture_failed"
    assert (await till.hold(5)).fence > hold.fence
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_a_second_card_after_a_lapsed_capture_sells_after_all(till: Till) -> None:
    hold = await till.hold()
    fail = iter([True])
    capture = till.provider._capture

    def once(ref: str) -> object:
        if next(fail, False):
            till.provider.objects[ref] |= {"status": "canceled", "amount_capturable": 0}
        return capture(ref)

    till.provider._capture = once  # type: ignore[method-assign,assignment]
    outcome = await till.pay(hold.booking_id, hold.fence, CARD)
    assert outcome.state is CheckoutState.CONFIRMED
    states = [p.state for p in await till.ledger.payments.payments_of(hold.booking_id)]
    assert states == [PaymentState.LAPSED, PaymentState.CAPTURED]
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_an_outage_keeps_the_seats_and_retries_by_itself(till: Till) -> None:
    """B8, F2: retries 5, 15, 45, 135 s after one another; the fan sees "retrying"; the fourth succeeds."""
    hold = await till.hold()
    till.provider.down = True
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    assert outcome.state is CheckoutState.RETRYING
    assert outcome.retry_at_us == till.clock() + 5_000_000
    waits = []
    for _ in range(3):
        payment = await till.driver_payment(hold.booking_id)
        waits.append(payment.retry_at_us - till.clock())
        till.clock.now_us = payment.retry_at_us
        await till.turn()
    till.provider.down = False
    payment = await till.driver_payment(hold.booking_id)
    waits.append(payment.retry_at_us - till.clock())
    till.clock.now_us = payment.retry_at_us
    await till.turn()
    assert waits == [5_000_000, 15_000_000, 45_000_000, 135_000_000]
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    await till.turn()
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("operation", ["create", "authorise", "capture"])
async def test_one_fault_anywhere_charges_exactly_once(tmp_path: Path, operation: str, fault: Fault) -> None:
    """B7, N4, F2: lost request, lost reply, stored 500 before and after, 429: sold and charged once."""
    faults = iter([fault])

    def script(asked: str, key: str, number: int) -> Fault | None:
        return next(faults, None) if asked == operation else None

    async with open_till(tmp_path, script=script) as till:
        hold = await till.hold()
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
        await till.settle(for_s=60)
        assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
        await assert_money(till, at_rest=fault is not Fault.ERROR_AFTER or operation != "create")


async def test_what_the_client_says_of_amounts_does_not_exist(till: Till) -> None:
    """Amounts, currency and seats come from the ledger: `pay` has no parameter for them; the fence must be right."""
    hold = await till.hold()
    with pytest.raises(StaleFence):
        await till.checkout.pay(hold.booking_id, hold.fence + 1, CARD)
    for method in ("", "x" * 201, "é"):
        with pytest.raises(InvalidInput):
            await till.checkout.pay(hold.booking_id, hold.fence, method)
    assert not till.provider.objects


async def test_a_hold_without_a_payment_is_paid_without_looking_for_one(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was changed since it was placed: the booking says that no payment was begun."""
    hold = await till.hold()
    await till.ledger.extend_hold(hold.booking_id, hold.fence, till.clock(), hold.expires_at_us + 1)

    async def looked_for(booking_id: str) -> None:
        raise AssertionError(booking_id)

    monkeypatch.setattr(till.checkout.records, "latest_payment", looked_for)
    assert (await till.checkout.begin(hold.booking_id, hold.fence)).state is CheckoutState.OPEN


@pytest.mark.parametrize("by_old_server", [False, True])
async def test_a_hold_that_was_stepped_back_is_paid_by_its_next_attempt(
    till: Till, tmp_path: Path, by_old_server: bool
) -> None:
    """A server before schema 41 does not write when it began a payment. The ledger then refuses a second first one."""
    hold = await till.hold()
    first = await till.checkout.begin(hold.booking_id, hold.fence)
    await till.checkout.step_back(hold.booking_id, hold.fence)
    if by_old_server:
        await asyncio.to_thread(_forget_beginning, tmp_path / "till.db")
    second = await till.checkout.begin(hold.booking_id, hold.fence)
    assert first.payment is not None
    assert second.payment is not None
    assert (first.payment.attempt, second.payment.attempt) == (1, 2)
    assert (second.state, second.booking.state) == (CheckoutState.OPEN, BookingState.PAYING)
    assert second.booking.payment_begun_at_us is not None


def _forget_beginning(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE bookings SET payment_begun_at_us = NULL")


async def test_free_seats_need_no_provider(till: Till) -> None:
    hold = await till.hold(price=0)
    assert (await till.checkout.pay(hold.booking_id, hold.fence, CARD)).state is CheckoutState.CONFIRMED
    assert not till.provider.calls


async def test_the_workers_run_by_themselves(till: Till) -> None:
    """F5: what a dead process left is finished by the loops alone; the reconciler keeps its newest report."""
    hold = await till.hold()
    till.provider.down = True
    await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    till.provider.down = False
    till.clock.advance(30)
    loops = [asyncio.create_task(till.checkout.run()), asyncio.create_task(till.reconciler.keep(0.01))]
    try:
        await eventually(
            lambda: till.booking(hold.booking_id), until=lambda booking: booking.state is BookingState.CONFIRMED
        )
        await eventually(lambda: till.reconciler.last)
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    await till.settle()
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("name", ["banana", "none", "pm_card_vis", "4242424242424242"])
async def test_a_card_that_the_simulated_bank_does_not_know_is_refused_and_the_seats_are_kept(
    till: Till, name: str
) -> None:
    """Issue 24: "banana" paid. With the first call and with a second one, also as another card on an open payment."""
    hold = await till.hold()
    for _ in range(2):
        refused = await till.checkout.pay(hold.booking_id, hold.fence, name)
        assert (refused.state, refused.problem) == (CheckoutState.OPEN, "incorrect_number")
    assert refused.payment is not None
    assert refused.payment.declines == 0, "a mistyped card is no try"
    assert (await till.pay(hold.booking_id, hold.fence, CARD)).state is CheckoutState.CONFIRMED
    await assert_money(till, at_rest=True)


def test_the_documentation_has_every_simulated_card() -> None:
    """The table of docs/payment-providers.md: names, the demo's numbers, and nothing else."""
    page = (Path(__file__).parents[3] / "docs" / "payment-providers.md").read_text("utf-8")
    rows = re.findall(r"^\| `(pm_card_\w+)` \| ([\d ]*?) ?\| (.+) \|$", page, re.MULTILINE)
    names = {name for name, _, _ in rows}
    assert names == ACCEPTED | CARDS.keys() | NEEDS_ACTION
    assert {number.replace(" ", ""): name for name, number, _ in rows if number} == NUMBERS
    for name, _, what in rows:
        if CARDS.get(name):
            assert f"`{CARDS[name]}`" in what
