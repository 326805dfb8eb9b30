"""Money that cannot be reserved: in time it sells, too late it goes back, and slow money holds seats by the rules."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import CheckoutState, PaymentOnItsWay
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.facts.model import BookingConfirmed, LatePaymentReturned, PaymentDeclined
from frontrow.boxoffice.holds.model.bookings import BookingState, HoldEnded
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.boxoffice.payments.model.payment_methods import ALL_METHODS, BANK_TRANSFER, CARD, IDEAL
from frontrow.boxoffice.payments.model.payment_rules import (
    DAY_US,
    PaymentRules,
    check_payment_rules,
    offers_slow,
    pay_until_us,
)
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, IntentState
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.core.errors import InvalidInput
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import EVENT, Till, assert_money, open_till
from tests.boxoffice.payments.crashes import at_bank, pay_although_void
from tests.boxoffice.shop import shop_event

SLOW = PaymentRules(pay_days=5, days_before_show=14)
FAMILIES = ["pm_card_visa", "google_pay", "ideal", "sepa_debit", "klarna", "bank_transfer"]


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        yield one


async def sale(till: Till, rules: PaymentRules = SLOW, *, days: int = 60) -> Event:
    event = shop_event(id=EVENT, payments=rules, starts_at_us=till.clock() + days * DAY_US)
    await till.ledger.catalogue.put_event(event, till.clock())
    return event


async def agreed(till: Till, method: str) -> PlacedHold:
    """A fan who agreed to pay slowly."""
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, method)
    at_bank(till.provider, agree=True)
    assert (await till.checkout.check(hold.booking_id, hold.fence)).state is CheckoutState.AWAITED
    return hold


async def told(till: Till, fact: type) -> int:
    return [type(one) for one in await till.facts()].count(fact)


async def test_who_pays_at_the_bank_in_time_has_the_seats_when_the_notice_comes(till: Till) -> None:
    hold = await till.hold(1, 2)
    asked = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    assert asked.state is CheckoutState.ACTION
    assert asked.action_url.startswith("https://")
    at_bank(till.provider, agree=True)
    assert await till.checkout.handle_webhook(*till.provider.notices[-1])
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    payment = await till.driver_payment(hold.booking_id)
    assert (payment.state, payment.paid_with, payment.retry_at_us) == (PaymentState.CAPTURED, "ideal", 0)
    assert till.provider.calls["capture"] == 0
    await assert_money(till, at_rest=True)


async def test_a_lost_notice_costs_fifteen_seconds(till: Till) -> None:
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, "eps")
    at_bank(till.provider, agree=True)
    till.clock.advance(15)
    await till.turn()
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED


@pytest.mark.parametrize("finds", ["notice", "read", "the fan"])
async def test_money_after_the_holds_end_is_back_within_a_minute_and_told_once(till: Till, finds: str) -> None:
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    till.clock.advance(600)
    at_bank(till.provider, agree=True)
    if finds == "notice":
        await till.checkout.handle_webhook(*till.provider.notices[-1])
    if finds == "the fan":
        with pytest.raises(HoldEnded):
            await till.checkout.check(hold.booking_id, hold.fence)
    await till.settle(for_s=60, step_s=5)
    (refund,) = await till.ledger.payments.refunds_of(hold.booking_id)
    assert (refund.state, refund.amount_minor, refund.reason) == (RefundState.DONE, 5000, "late")
    assert await told(till, LatePaymentReturned) == 1
    await assert_money(till, at_rest=True)


async def test_seats_that_somebody_else_has_meanwhile_are_never_sold_twice(till: Till) -> None:
    late = await till.hold(7)
    await till.checkout.pay(late.booking_id, late.fence, "ideal")
    till.clock.advance(600)
    other = await till.hold(7)
    assert (await till.pay(other.booking_id, other.fence, "pm_card_visa")).state is CheckoutState.CONFIRMED
    at_bank(till.provider, agree=True)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.settle(for_s=60)
    assert (await till.booking(late.booking_id)).state is BookingState.EXPIRED
    assert (await till.booking(other.booking_id)).state is BookingState.CONFIRMED
    await assert_money(till, at_rest=True)


async def test_money_for_a_payment_the_fan_left_goes_back_although_another_one_bought_the_seats(till: Till) -> None:
    """The bank's page could not be closed: two payments of one booking have money, and one of them returns."""
    hold = await till.hold()
    first = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    assert first.payment is not None
    await till.checkout.step_back(hold.booking_id, hold.fence)
    assert (await till.pay(hold.booking_id, hold.fence, "pm_card_visa")).state is CheckoutState.CONFIRMED
    pay_although_void(till.provider, first.payment.ref)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.reconciler.run()
    await till.settle()
    (back,) = till.provider.refunds.values()
    assert (back["payment_intent"], back["amount"]) == (first.payment.ref, 5000)
    assert await told(till, LatePaymentReturned) == 1
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    report = await till.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("method", ["ideal", "bank_transfer"])
async def test_money_for_a_cancelled_event_goes_back_whenever_it_comes(till: Till, method: str) -> None:
    await sale(till)
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, method)
    cancelled = shop_event(id=EVENT, payments=SLOW, status=EventStatus.CANCELLED)
    await till.ledger.catalogue.put_event(cancelled, till.clock())
    at_bank(till.provider, agree=True, pays=True)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.settle(for_s=60)
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    (refund,) = await till.ledger.payments.refunds_of(hold.booking_id)
    assert (refund.state, refund.amount_minor) == (RefundState.DONE, 5000)
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("method", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
async def test_notices_lost_doubled_late_and_reordered_change_nothing(till: Till, method: str, seed: int) -> None:
    dice = random.Random(f"{method} {seed}")
    await sale(till)
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, method)
    at_bank(till.provider, agree=True)
    at_bank(till.provider, pays=True)
    notices = [one for one in till.provider.notices if seed]  # with the first seed all of them are lost
    notices += dice.sample(notices, len(notices))
    dice.shuffle(notices)
    for notice in notices:
        if dice.random() < 0.8:
            await till.checkout.handle_webhook(*notice)
    await till.settle(for_s=30)
    for notice in till.provider.notices:  # and once more, late
        await till.checkout.handle_webhook(*notice)
    await till.settle(for_s=30)
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    assert await told(till, BookingConfirmed) == 1
    payment = await till.driver_payment(hold.booking_id)
    assert payment.state is PaymentState.CAPTURED
    assert sum(one["amount_received"] for one in till.provider.objects.values()) == 5000
    await assert_money(till, at_rest=True)


async def test_fifty_notices_at_once_sell_the_seats_once(till: Till) -> None:
    hold = await till.hold()
    await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    at_bank(till.provider, agree=True)
    notice = till.provider.notices[-1]
    servers = [till.restarted() for _ in range(5)]
    done = await asyncio.gather(*(server.checkout.handle_webhook(*notice) for server in servers for _ in range(10)))
    assert sum(done) == 1
    assert await told(till, BookingConfirmed) == 1
    await assert_money(till, at_rest=True)


# Slow money.


async def test_slow_money_holds_the_seats_for_as_long_as_the_organiser_allows(till: Till) -> None:
    event = await sale(till)
    for method in ("sepa_debit", "bank_transfer"):
        hold = await agreed(till, method)
        booking = await till.booking(hold.booking_id)
        assert booking.hold_expires_at_us == till.clock() + 5 * DAY_US
        assert booking.is_ordered
    till.clock.advance(5 * 86_400 - 1)
    await till.turn()
    assert (await till.booking(hold.booking_id)).live(till.clock())
    till.clock.advance(1)
    await till.turn()
    assert (await till.booking(hold.booking_id)).state is BookingState.EXPIRED
    assert event.starts_at_us > till.clock()


async def test_a_hold_is_not_made_longer_by_a_method_that_the_organiser_has_taken_back(till: Till) -> None:
    await sale(till, PaymentRules())
    hold = await agreed(till, "sepa_debit")
    assert (await till.booking(hold.booking_id)).hold_expires_at_us == hold.expires_at_us


async def test_money_that_comes_days_later_sells_and_ten_days_too_late_goes_back(till: Till) -> None:
    await sale(till)
    on_time, too_late = await agreed(till, "bank_transfer"), await agreed(till, "bank_transfer")
    refs = {hold: (await till.driver_payment(hold.booking_id)).ref for hold in (on_time, too_late)}
    till.clock.advance(4 * 86_400)
    till.provider.finish_money(refs[on_time])
    await till.settle(for_s=7 * 3600, step_s=1800)  # no notice: it is looked for at least every six hours
    assert (await till.booking(on_time.booking_id)).state is BookingState.CONFIRMED
    till.clock.advance(11 * 86_400)
    await till.turn()
    till.provider.finish_money(refs[too_late])
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.settle(for_s=60)
    assert (await till.booking(too_late.booking_id)).state is BookingState.EXPIRED
    assert await told(till, LatePaymentReturned) == 1
    await assert_money(till, at_rest=True)


async def test_a_transfer_that_never_comes_is_cancelled_at_the_provider_in_the_end(till: Till) -> None:
    await sale(till)
    hold = await agreed(till, "bank_transfer")
    till.clock.advance(36 * 86_400)
    await till.settle(for_s=120, step_s=10)
    payment = await till.driver_payment(hold.booking_id)
    assert (payment.state, payment.retry_at_us) == (PaymentState.VOIDED, 0)
    await assert_money(till, at_rest=True)


async def test_a_direct_debit_that_fails_frees_the_seats_and_is_told(till: Till) -> None:
    await sale(till)
    hold = await agreed(till, "sepa_debit")
    till.clock.advance(3 * 86_400)
    at_bank(till.provider, pays=True, fails=True)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.settle()
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    assert await told(till, PaymentDeclined) == 1
    assert (await till.hold(*(await till.booking(hold.booking_id)).seats)).fence > hold.fence
    await assert_money(till)


async def test_a_direct_debit_on_its_way_cannot_be_paid_another_way_but_given_up(till: Till) -> None:
    await sale(till)
    hold = await agreed(till, "sepa_debit")
    with pytest.raises(PaymentOnItsWay, match="the bank is already moving the money"):
        await till.checkout.step_back(hold.booking_id, hold.fence)
    assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    assert (await till.checkout.release(hold.booking_id, hold.fence)).state is BookingState.CANCELLED
    reads = till.provider.calls["read"]
    await till.settle(for_s=6 * 3600, step_s=60)
    assert till.provider.calls["read"] - reads < 60, "looked at less and less often"
    at_bank(till.provider, pays=True)
    await till.checkout.handle_webhook(*till.provider.notices[-1])
    await till.settle()
    (refund,) = await till.ledger.payments.refunds_of(hold.booking_id)
    assert refund.state is RefundState.DONE
    await assert_money(till, at_rest=True)


async def test_a_transfer_that_was_shown_can_still_be_paid_by_card(till: Till) -> None:
    await sale(till)
    hold = await agreed(till, "bank_transfer")
    till.clock.advance(3 * 86_400)
    back = await till.checkout.step_back(hold.booking_id, hold.fence)
    assert back.hold_expires_at_us == till.clock() + 600_000_000, "a usual hold again: nobody keeps seats for days"
    declined = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_declined")
    assert declined.state is CheckoutState.OPEN, "another card may be tried"
    assert (await till.pay(hold.booking_id, hold.fence, "pm_card_visa")).state is CheckoutState.CONFIRMED
    await assert_money(till, at_rest=True)


async def test_seats_that_wait_for_slow_money_keep_no_visit(till: Till) -> None:
    await sale(till)
    hold = await till.ledger.place_hold(
        NewHold(
            "bkg_" + "V" * 26,
            EVENT,
            "eve",
            (30,),
            (now_us := till.clock()),
            now_us + 600_000_000,
            5000,
            "EUR",
            (5000,),
            visit_id="visit_1",
        )
    )
    assert [one.visit for one in await till.ledger.visit_holds(EVENT, till.clock(), 10)] == ["visit_1"]
    await till.checkout.pay(hold.booking_id, hold.fence, "bank_transfer")
    assert (await till.booking(hold.booking_id)).is_ordered
    assert await till.ledger.visit_holds(EVENT, till.clock(), 10) == []


# What is offered.


async def test_slow_methods_are_offered_by_the_rules_alone(till: Till) -> None:
    hold = await till.hold()
    booking = await till.booking(hold.booking_id)

    async def slow(rules: PaymentRules, days: int = 60, *, queue: bool = False) -> bool:
        till.checkout.has_queue = lambda event_id: queue
        return BANK_TRANSFER in await till.checkout.offered(booking, await sale(till, rules, days=days))

    assert await slow(SLOW)
    assert not await slow(PaymentRules())
    assert not await slow(SLOW, 14), "until 14 days before the show"
    assert await slow(SLOW, 15)
    assert not await slow(SLOW, queue=True), "never while people wait"
    assert await slow(PaymentRules(pay_days=5, slow_with_queue=True), queue=True)


def test_the_days_before_the_show_are_counted_to_the_microsecond() -> None:
    starts_us = 100 * DAY_US
    ends_us = starts_us - 14 * DAY_US
    assert offers_slow(SLOW, starts_us, ends_us - 1, has_queue=False)
    assert not offers_slow(SLOW, starts_us, ends_us, has_queue=False)
    assert pay_until_us(SLOW, starts_us, ends_us - 1) == ends_us - 1 + 5 * DAY_US
    assert pay_until_us(PaymentRules(), starts_us, 1) == 0
    assert pay_until_us(SLOW, starts_us, starts_us - DAY_US) == starts_us, "a show that was moved earlier"


async def test_only_what_the_event_names_and_the_price_allows_is_offered_and_taken(till: Till) -> None:
    named = PaymentRules(methods=("card", "ideal"))
    hold = await till.hold()
    booking, event = await till.booking(hold.booking_id), await sale(till, named)
    assert await till.checkout.offered(booking, event) == (CARD, IDEAL)
    with pytest.raises(InvalidInput, match="Bancontact cannot be used for this booking; choose one of card, ideal"):
        await till.checkout.pay(hold.booking_id, hold.fence, "bancontact", event=event)
    francs = replace(booking, currency="CHF")
    assert [one.id for one in await till.checkout.offered(francs, event)] == ["card"]
    without_cards = await sale(till, PaymentRules(methods=("ideal",)))
    with pytest.raises(InvalidInput, match="Card cannot be used"):
        await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa", event=without_cards)
    assert till.provider.objects == {}


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (PaymentRules(methods=("gold",)), "there is no payment method 'gold'"),
        (PaymentRules(methods=("card", "card")), "name each payment method once"),
        (PaymentRules(pay_days=15), "pay_days must be 0 to 14"),
        (PaymentRules(pay_days=5, days_before_show=4), "days_before_show must be 5 .pay_days. to 365"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused_in_a_sentence(rules: PaymentRules, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        check_payment_rules(rules)


def test_every_method_has_an_id_of_its_own() -> None:
    assert len({one.id for one in ALL_METHODS}) == len(ALL_METHODS)


# Providers that tell the result of a capture or a void later.


class Later(SimulatedProvider):
    """Accepts captures and voids, and carries them out when told to."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.accepted: dict[str, str] = {}

    async def capture(self, ref: str, key: str) -> Intent:
        self.calls["capture"] += 1
        return self._accept(ref, "capture")

    async def void(self, ref: str, key: str) -> Intent:
        self.calls["void"] += 1
        return self._accept(ref, "void")

    def _accept(self, ref: str, what: str) -> Intent:
        self.accepted[ref] = what
        return replace(self._intent(ref), state=IntentState.PROCESSING)

    async def read(self, ref: str) -> Intent:
        found = await super().read(ref)
        return replace(found, state=IntentState.PROCESSING) if ref in self.accepted else found

    def carry_out(self) -> None:
        for ref, what in self.accepted.items():
            self._capture(ref) if what == "capture" else self._void(ref)
        self.accepted.clear()


@pytest.fixture
def later(till: Till) -> tuple[Till, Later]:
    provider = Later(till.clock)
    return Till(till.ledger, till.clock, provider), provider


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_capture_whose_result_comes_later_is_called_once_and_awaited(
    later: tuple[Till, Later], noticed: bool
) -> None:
    till, provider = later
    hold = await till.hold()
    await till.pay(hold.booking_id, hold.fence, "pm_card_visa")
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURING
    assert provider.calls["capture"] == 1
    provider.carry_out()
    if noticed:
        await till.checkout.handle_webhook(*provider.notices[-1])
    else:
        till.clock.advance(60)
        await till.turn()
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED
    assert provider.calls["capture"] == 1
    await assert_money(till, at_rest=True)


async def test_a_capture_that_was_accepted_and_came_to_nothing_is_made_again_under_a_new_key(
    later: tuple[Till, Later],
) -> None:
    till, provider = later
    hold = await till.hold()
    await till.pay(hold.booking_id, hold.fence, "pm_card_visa")
    provider.accepted.clear()  # it failed, and the money is still reserved
    read = provider.read
    provider.accepted.clear()
    till.clock.advance(60)

    async def forget(ref: str) -> Intent:
        provider.accepted.clear()
        return await read(ref)

    provider.read = forget  # type: ignore[method-assign]
    await till.turn()
    assert (await till.driver_payment(hold.booking_id)).call == 2
    provider.accepted[(await till.driver_payment(hold.booking_id)).ref] = "capture"
    provider.carry_out()
    till.clock.advance(60)
    await till.turn()
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED


async def test_a_void_whose_result_comes_later_is_awaited(later: tuple[Till, Later]) -> None:
    till, provider = later
    hold = await till.hold()
    asked = await till.checkout.pay(hold.booking_id, hold.fence, "pm_card_3ds")
    assert asked.state is CheckoutState.ACTION
    await till.checkout.release(hold.booking_id, hold.fence)
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.VOIDING
    assert provider.calls["void"] == 1
    provider.carry_out()
    await till.settle(for_s=60)
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.VOIDED
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("first_pays", ["before the second", "after the second", "after both are told"])
@pytest.mark.parametrize("noticed", [True, False])
async def test_who_pays_twice_at_the_bank_for_one_booking_has_one_ticket_and_one_charge(
    till: Till, first_pays: str, noticed: bool
) -> None:
    """The fan went back, began iDEAL again, and the bank takes both payments."""
    hold = await till.hold()
    first = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    await till.checkout.step_back(hold.booking_id, hold.fence)
    second = await till.checkout.pay(hold.booking_id, hold.fence, "ideal")
    assert first.payment is not None
    assert second.payment is not None
    assert first.payment.ref != second.payment.ref
    heard = len(till.provider.notices)

    async def hear() -> None:
        nonlocal heard
        new, heard = list(till.provider.notices)[heard:], len(till.provider.notices)
        for one in new if noticed else []:
            await till.checkout.handle_webhook(*one)

    if first_pays == "before the second":
        pay_although_void(till.provider, first.payment.ref)
        await hear()
    till.provider.finish_action(second.payment.ref)
    if first_pays == "after both are told":
        await hear()
        await till.settle(for_s=60)
    if first_pays != "before the second":
        pay_although_void(till.provider, first.payment.ref)
    await hear()
    await till.settle(for_s=60)
    await till.reconciler.run()  # finds it where no notice came
    await till.settle(for_s=60)
    assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    (back,) = till.provider.refunds.values()
    assert (back["payment_intent"], back["amount"]) == (first.payment.ref, 5000)
    assert (await till.driver_payment(hold.booking_id)).id == second.payment.id
    assert await told(till, LatePaymentReturned) <= 1
    report = await till.reconciler.run()
    assert (report.problems, report.difference_minor) == ([], {})
    await assert_money(till, at_rest=True)
