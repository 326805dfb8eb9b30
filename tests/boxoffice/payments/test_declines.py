"""Declined cards where an event allows three (issue 26, B9), crossed with everything else that happens to a payment."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.simulated import Fault
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.events.model.events import USUAL_CARD_TRIES
from frontrow.boxoffice.facts.model import PaymentDeclined
from frontrow.boxoffice.holds.model.bookings import BookingState, HoldEnded, Move
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.core.errors import Unavailable
from tests.boxoffice.checkout.till import EVENT, HOLD_S, Till, assert_money, open_till
from tests.boxoffice.shop import shop_event

CARD, NO = "pm_card_visa", "pm_card_declined"


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        await one.ledger.catalogue.put_event(shop_event(id=EVENT), one.clock())
        yield one


def test_an_event_allows_three_cards_unless_it_says_otherwise() -> None:
    assert shop_event(id=EVENT).card_tries == USUAL_CARD_TRIES == 3


async def test_the_third_decline_frees_the_seats_at_once_and_not_before(till: Till) -> None:
    hold = await till.hold(7)
    key = (hold.booking_id, hold.fence)
    for left in (2, 1):
        outcome = await till.checkout.pay(*key, NO)
        assert (outcome.state, outcome.tries_left) == (CheckoutState.OPEN, left)
        assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    assert (await till.checkout.pay(*key, NO)).state is CheckoutState.DECLINED
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    assert (await till.hold(7)).booking_id != hold.booking_id, "before the hold would have ended"
    await till.settle()
    assert [type(fact) for fact in await till.facts()].count(PaymentDeclined) == 1
    await assert_money(till, at_rest=True)


async def test_the_hold_ends_between_two_cards(till: Till) -> None:
    """Tries are always within the hold: the second card comes too late, and nothing is reserved."""
    hold = await till.hold(7)
    await till.checkout.pay(hold.booking_id, hold.fence, NO)
    till.clock.advance(HOLD_S)
    with pytest.raises(HoldEnded):
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    await till.settle()
    assert {one["status"] for one in till.provider.objects.values()} == {"canceled"}
    assert (await till.hold(7)).booking_id
    await assert_money(till, at_rest=True)


async def test_the_bank_says_no_after_the_hold_has_ended(till: Till) -> None:
    hold = await till.hold(7)
    begun = await till.checkout.begin(hold.booking_id, hold.fence)
    assert begun.payment is not None
    till.provider.confirm_in_browser(begun.payment.ref, NO)
    till.clock.advance(HOLD_S)
    await till.settle()
    assert (await till.booking(hold.booking_id)).state is not BookingState.CONFIRMED
    assert {one["status"] for one in till.provider.objects.values()} == {"canceled"}
    await assert_money(till, at_rest=True)


async def decline_in_browser(till: Till, hold: PlacedHold, ref: str) -> None:
    till.provider.confirm_in_browser(ref, NO)
    body, signature = till.provider.notices[-1]
    done = await asyncio.gather(
        *(till.checkout.check(hold.booking_id, hold.fence) for _ in range(30)),
        *(till.checkout.handle_webhook(body, signature) for _ in range(30)),
        return_exceptions=True,
    )
    assert not [one for one in done if isinstance(one, BaseException)]


async def test_webhook_and_page_at_once_count_a_decline_once(till: Till) -> None:
    hold = await till.hold(7)
    begun = await till.checkout.begin(hold.booking_id, hold.fence)
    assert begun.payment is not None
    for left in (2, 1):
        await decline_in_browser(till, hold, begun.payment.ref)
        outcome = await till.checkout.check(hold.booking_id, hold.fence)
        assert (outcome.state, outcome.tries_left) == (CheckoutState.OPEN, left)
    await decline_in_browser(till, hold, begun.payment.ref)
    assert (await till.checkout.check(hold.booking_id, hold.fence)).state is CheckoutState.DECLINED
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_two_tabs_with_declined_cards_at_the_same_moment_use_no_more_than_their_tries(till: Till) -> None:
    hold = await till.hold(7)
    done = await asyncio.gather(
        *(till.checkout.pay(hold.booking_id, hold.fence, NO) for _ in range(50)), return_exceptions=True
    )
    assert not [one for one in done if isinstance(one, BaseException) and not isinstance(one, HoldEnded)]
    await till.settle(for_s=30)
    payment = await till.driver_payment(hold.booking_id)
    assert 1 <= payment.declines <= USUAL_CARD_TRIES
    await assert_money(till)


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_provider_that_is_away_between_declines_costs_no_try(tmp_path: Path, fault: Fault) -> None:
    faults: list[Fault] = []

    def script(asked: str, key: str, number: int) -> Fault | None:
        return faults.pop() if faults and asked == "authorise" else None

    async with open_till(tmp_path, script=script) as till:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        hold = await till.hold(7)
        await till.checkout.pay(hold.booking_id, hold.fence, NO)
        faults.append(fault)
        await till.checkout.pay(hold.booking_id, hold.fence, NO)
        await till.settle(for_s=60)
        outcome = await till.checkout.check(hold.booking_id, hold.fence)
        assert (outcome.state, outcome.tries_left) == (CheckoutState.OPEN, 1)
        assert (await till.checkout.pay(hold.booking_id, hold.fence, CARD)).state is CheckoutState.CONFIRMED
        await till.settle()
        await assert_money(till, at_rest=True)


@pytest.mark.parametrize("heard_by", ["webhook", "worker", "reconciler"])
async def test_a_declined_card_of_before_does_not_cancel_what_a_later_card_paid(
    till: Till, monkeypatch: pytest.MonkeyPatch, heard_by: str
) -> None:
    """N4: found by the simulation, seed 292. The ledger was away when the first payment was to be declined, the fan
    went back and paid with another card. Then the provider told of the first: the booking was cancelled, the money
    kept."""
    await till.ledger.catalogue.put_event(shop_event(id=EVENT, card_tries=1), till.clock())
    hold = await till.hold(7)
    key, save = (hold.booking_id, hold.fence), till.checkout.records.save

    async def away(*given: object, **named: object) -> object:
        if Move.DECLINE in given:
            raise Unavailable("the ledger is away", retry_after_s=1.0)
        return await save(*given, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(till.checkout.records, "save", away)
        with pytest.raises(Unavailable):
            await till.checkout.pay(*key, NO)
    told = list(till.provider.notices)
    await till.checkout.step_back(*key)
    assert (await till.checkout.pay(*key, CARD)).state is CheckoutState.CONFIRMED
    await till.checkout.work()
    if heard_by == "webhook":
        for body, signature in told:
            await till.checkout.handle_webhook(body, signature)
    elif heard_by == "worker":
        await till.settle()
    else:
        till.clock.advance(60)
        await till.reconciler.run()
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    await till.settle()
    assert [one["status"] for one in till.provider.objects.values()] == ["canceled", "succeeded"]
    await assert_money(till, at_rest=True)
