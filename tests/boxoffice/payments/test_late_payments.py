"""Money that came too late, or that the bank did not let go: the fan is told once, and no card stays reserved (F4)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.facts.model import BookingCancelled, LatePaymentReturned
from frontrow.boxoffice.holds.model.bookings import HoldEnded
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import ProviderRefused
from tests.boxoffice.checkout.till import Till, assert_money, open_till, reserved_objects

CARD = "pm_card_visa"


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        yield one


async def overtake(till: Till, booking_id: str) -> None:
    """Another driver writes the next version of the payment."""
    payment = await till.driver_payment(booking_id)
    await till.ledger.payments.save_payment(replace(payment, version=payment.version + 1), now_us=till.clock())


async def test_who_paid_too_late_is_told_although_another_driver_wrote_first(till: Till) -> None:
    """The driver reads the provider's object again: only that says that the card was accepted."""
    hold = await till.hold()
    await till.checkout.begin(hold.booking_id, hold.fence)
    authorise = till.provider.authorise
    overtaken = iter([True])

    async def slow(*asked: Any) -> Any:
        answer = await authorise(*asked)
        if next(overtaken, False):
            till.clock.advance(600)
            await overtake(till, hold.booking_id)
        return answer

    till.provider.authorise = slow  # type: ignore[method-assign]
    with pytest.raises(HoldEnded):
        await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    await till.settle()
    assert [type(fact) for fact in await till.facts()].count(LatePaymentReturned) == 1
    assert reserved_objects(till) == []
    await assert_money(till, at_rest=True)


async def test_late_money_that_goes_back_is_told_although_another_driver_wrote_first(till: Till) -> None:
    """The fact is written with the refund. Written with the payment, it was lost: nothing was left to refund then."""
    hold = await till.hold()
    outcome = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_3ds")
    assert outcome.payment is not None
    till.provider.finish_action(outcome.payment.ref)
    till.provider._capture(outcome.payment.ref)
    till.clock.advance(700)
    ask = till.ledger.payments.ask_refund
    overtaken = iter([True])

    async def ask_and_lose(*asked: Any, **more: Any) -> Any:
        answer = await ask(*asked, **more)
        if next(overtaken, False):
            await overtake(till, hold.booking_id)
        return answer

    till.ledger.payments.ask_refund = ask_and_lose  # type: ignore[method-assign]
    await till.settle()
    (told,) = [fact for fact in await till.facts() if isinstance(fact, LatePaymentReturned)]
    assert told.amount_minor == 5_000
    assert sum(refund["amount"] for refund in till.provider.refunds.values()) == 5_000
    await assert_money(till, at_rest=True)


async def test_captures_that_are_refused_leave_no_money_reserved_on_the_card(till: Till) -> None:
    """The bank refuses the capture and keeps the reservation. Every attempt drops its own before the next one."""
    hold = await till.hold()
    most = 0

    def refuse(ref: str) -> object:
        nonlocal most
        most = max(most, len(reserved_objects(till)))
        raise ProviderRefused(f"{ref} cannot be captured", "capture_refused")

    till.provider._capture = refuse  # type: ignore[method-assign,assignment]
    await till.pay(hold.booking_id, hold.fence, CARD)
    await till.settle()
    payments = await till.ledger.payments.payments_of(hold.booking_id)
    assert [payment.state for payment in payments] == [PaymentState.LAPSED] * 3
    assert (most, reserved_objects(till)) == (1, [])
    assert [type(fact) for fact in await till.facts()].count(BookingCancelled) == 1
