"""The provider is away: breaker, cap, retry budget, and a thousand checkouts in flight for two minutes (B8, F2, N3)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.guarded_provider import FAILURES, MAX_IN_FLIGHT, GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import LAPSES, Fault, SimulatedProvider
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.facts.model import HoldExpired, LatePaymentReturned, PaymentDeclined, PriorityGranted
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.payments.model.payments import PROVIDER_UNAVAILABLE, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import Intent, NewIntent, ProviderNotCalled, ProviderUnknown
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice
from frontrow.boxoffice.pricing.model.sale_options import Discount
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import EVENT, HOLD_S, Till, assert_money, open_till
from tests.boxoffice.shop import shop_event, shop_plan
from tests.support.eventually import eventually
from tests.support.servers import Valkey

CHECKOUTS = 1000
CARD = "pm_card_visa"
PROBE_S = 8  # the breaker lets a probe through after 1 s; a turn is 1 s, and the payment that probed comes first


async def test_two_minutes_without_a_provider_lose_nobody(tmp_path: Path) -> None:
    """B8, F2: 1,000 checkouts in flight: nobody loses the seat, all end sold, the calls stay within the budget."""
    async with open_till(tmp_path) as till:
        holds = [await till.hold(seat) for seat in range(CHECKOUTS)]
        till.provider.down = True
        outcomes = await asyncio.gather(*(till.checkout.pay(h.booking_id, h.fence, "pm_card_visa") for h in holds))
        assert {outcome.state for outcome in outcomes} == {CheckoutState.RETRYING}
        for second in range(0, 240, 2):
            till.clock.advance(2)
            if second == 120:
                till.provider.down = False
            await till.turn()
            if second < 120 and second % 20 == 0:
                active = [seat async for seat in till.ledger.active_seats("evt_till", till.clock())]
                assert len(active) == CHECKOUTS, "everybody keeps the seats"
        states = Counter([(await till.booking(hold.booking_id)).state for hold in holds])
        assert states == {BookingState.CONFIRMED: CHECKOUTS}
        calls = sum(till.provider.calls.values())
        assert calls <= CHECKOUTS * (3 + len(RETRIES_S)), till.provider.calls
        assert till.guarded.spared > CHECKOUTS, "while it is away the breaker spares it"
        await till.turn()
        await assert_money(till, at_rest=True)


async def test_five_failures_open_the_breaker_and_one_probe_closes_it(clock: ManualClock) -> None:
    """B8."""
    provider = SimulatedProvider(clock)
    guarded = GuardedProvider(provider, clock, jitter=lambda: 0.0)
    provider.down = True
    for _ in range(5):
        with pytest.raises(ProviderUnknown):
            await guarded.read("pi_x")
    done = await asyncio.gather(*(guarded.read("pi_x") for _ in range(60)), return_exceptions=True)
    assert all(isinstance(one, ProviderNotCalled) for one in done)
    assert provider.calls["read"] == 5
    clock.advance(5)
    done = await asyncio.gather(*(guarded.read("pi_x") for _ in range(60)), return_exceptions=True)
    assert Counter(type(one) for one in done) == {ProviderUnknown: 1, ProviderNotCalled: 59}
    provider.down = False
    clock.advance(5)
    assert (await guarded.create(NewIntent("b", 1, 100, "EUR", "e", 1, (1,), "k"))).amount_minor == 100
    assert not guarded.breaker.is_open


async def test_at_most_so_many_calls_are_in_flight(clock: ManualClock) -> None:
    """N3: the cap; what is over it is spared at once, not queued without end."""
    assert (MAX_IN_FLIGHT, FAILURES) == (5_000, 5), "the bounds a server has unless told otherwise"
    go = asyncio.Event()

    async def wait(seconds: float) -> None:
        await go.wait()

    provider = SimulatedProvider(clock, latency=lambda *_: 3.0, sleep=wait)
    guarded = GuardedProvider(provider, clock, cap=CallCap(50))
    new = [NewIntent(f"b{n}", 1, 100, "EUR", "e", 1, (1,), f"k{n}") for n in range(60)]
    calls = [asyncio.create_task(guarded.create(one)) for one in new]
    await asyncio.sleep(0)
    go.set()
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(one, ProviderNotCalled) for one in done) == 10
    assert (guarded.cap.most_in_flight, guarded.cap.in_flight) == (50, 0)


async def enter_often(cap: CallCap, times: int) -> int:
    """How many of so many calls at once may be made."""
    return sum(await asyncio.gather(*(cap.enter() for _ in range(times))))


@pytest.mark.parametrize("at_once", [7, 500])
async def test_the_cap_is_shared_by_all_servers(redis_url: str, at_once: int) -> None:
    """500 are blocks of ten. Alone each server would allow as many."""
    servers = [CallCap(at_once, redis_url) for _ in range(3)]
    entered = [await enter_often(server, at_once) for server in servers[:2]]
    assert entered == [at_once, 0]
    for _ in range(at_once - 1):
        servers[0].leave()
    more, kept = 0, 2 * max(1, at_once // 50)

    async def enter_more() -> int:
        nonlocal more
        more += await enter_often(servers[1], at_once - more)
        return more

    await eventually(enter_more, until=lambda entered: entered >= at_once - kept)  # given back in the background
    assert more < at_once, "all but the blocks that the first still holds"
    for server in servers[:2]:
        await server.aclose()
    assert await enter_often(servers[2], at_once) == at_once
    await servers[2].aclose()


async def test_without_redis_each_server_keeps_to_the_cap_by_itself(own_valkey: Valkey) -> None:
    own_valkey.kill()
    cap = CallCap(7, own_valkey.url)
    assert await enter_often(cap, 20) == 7
    await cap.aclose()


async def test_a_call_that_hangs_is_an_unknown_outcome(clock: ManualClock) -> None:
    """F2: the deadline ends it; five of them open the breaker."""

    async def for_ever(seconds: float) -> None:
        await asyncio.Event().wait()

    guarded = GuardedProvider(
        SimulatedProvider(clock, latency=lambda *_: 1.0, sleep=for_ever), clock, deadline_s=0.005, failures=5
    )
    done = await asyncio.gather(*(guarded.read("pi_x") for _ in range(60)), return_exceptions=True)
    assert all(isinstance(one, ProviderUnknown) and not one.answered for one in done)
    assert guarded.breaker.is_open


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with open_till(tmp_path) as one:
        yield one


async def pay_in_an_outage(till: Till, card: str = CARD, seat: int = 3) -> PlacedHold:
    hold = await till.hold(seat)
    till.provider.down = True
    assert (await till.checkout.pay(hold.booking_id, hold.fence, card)).state is CheckoutState.RETRYING
    return hold


async def told(till: Till) -> list[str]:
    """What the fan is told about the payment."""
    kinds = (PriorityGranted, PaymentDeclined, LatePaymentReturned, HoldExpired)
    return [type(fact).__name__ for fact in await till.facts() if isinstance(fact, kinds)]


@pytest.mark.parametrize("opened_first", [False, True], ids=["card with the creation", "page open before"])
@pytest.mark.parametrize("back_s", [4, 90, 201, 215, 335, 470, HOLD_S - PROBE_S - 1])
async def test_a_provider_that_comes_back_within_the_hold_costs_nobody_the_seat(
    till: Till, back_s: int, opened_first: bool
) -> None:
    """B8: it was given up after 200 s, and voided although the provider was back. Once the breaker is open, the payment
    is tried as soon as the provider is back; before that it keeps to the schedule. The hold is not extended."""
    hold = await till.hold(3)
    if opened_first:
        await till.checkout.begin(hold.booking_id, hold.fence)
    till.provider.down = True
    await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    await till.settle(back_s, 1)
    assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    assert [seat async for seat in till.ledger.active_seats(EVENT, till.clock())]
    till.provider.down = False
    await till.settle(PROBE_S if till.guarded.breaker.is_open else 135, 1)
    booking = await till.booking(hold.booking_id)
    assert booking.state is BookingState.CONFIRMED
    assert booking.hold_expires_at_us == booking.created_at_us + HOLD_S * 1_000_000
    await till.settle()
    assert await told(till) == []
    await assert_money(till, at_rest=True)


async def test_only_the_end_of_the_hold_ends_the_payment_with_a_priority_pass_and_one_fact(till: Till) -> None:
    """B8: the seats are kept until the last second. "Declined" and "you have priority" were told together; nobody had
    declined anything."""
    hold = await pay_in_an_outage(till)
    await till.settle(HOLD_S - 1, 1)
    assert (await till.booking(hold.booking_id)).state is BookingState.PAYING
    assert await told(till) == []
    calls = sum(till.provider.calls.values())
    assert calls <= 5 + HOLD_S, "retries and probes are spaced"
    till.clock.advance(1)
    await till.turn()
    assert (await till.booking(hold.booking_id)).state is BookingState.EXPIRED
    assert sorted(await told(till)) == ["HoldExpired", "PriorityGranted"]
    assert (await till.driver_payment(hold.booking_id)).reason == "provider_unavailable"
    assert (await till.hold(3)).fence > hold.fence
    till.provider.down = False
    await till.settle(140)
    assert await told(till) == []
    await assert_money(till, at_rest=True)


async def test_a_card_of_an_open_page_is_given_up_at_the_end_of_the_hold_although_nothing_can_be_read(
    till: Till,
) -> None:
    """The provider has an object that may have reserved money. The void waits for the provider, the pass does not."""
    hold = await till.hold(3)
    await till.checkout.begin(hold.booking_id, hold.fence)
    till.provider.down = True
    await till.checkout.pay(hold.booking_id, hold.fence, CARD)
    await till.settle(HOLD_S, 1)
    assert sorted(await told(till)) == ["HoldExpired", "PriorityGranted"]
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.VOIDING
    till.provider.down = False
    await till.settle(140)
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.VOIDED
    await assert_money(till, at_rest=True)


@pytest.mark.parametrize("answer", ["in time", "too late"])
async def test_a_provider_that_comes_back_at_the_very_end(till: Till, answer: str) -> None:
    """The call begins in the last second of the hold. An answer after it is voided, and the outage is the reason."""
    hold = await pay_in_an_outage(till)
    await till.settle(HOLD_S - 6, 1)
    create = till.provider.create
    till.provider.down = False

    async def slow(new: NewIntent) -> Intent:
        intent = await create(new)
        till.clock.advance(60 if answer == "too late" else 0)
        return intent

    till.provider.create = slow  # type: ignore[method-assign]
    await till.settle(5, 1)
    sold = (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
    assert sold is (answer == "in time")
    await till.settle(140)
    assert sorted(await told(till)) == ([] if sold else ["HoldExpired", "PriorityGranted"])
    await assert_money(till, at_rest=True)


async def test_a_worker_that_is_killed_in_the_outage_is_continued_by_the_next(till: Till) -> None:
    """The times of the tries are in the ledger. The next process has a breaker that knows nothing."""
    hold = await pay_in_an_outage(till)
    await till.settle(300, 1)
    new = till.restarted()
    await new.settle(60, 1)
    assert (await new.booking(hold.booking_id)).state is BookingState.PAYING
    till.provider.down = False
    await new.settle(136, 1)
    assert (await new.booking(hold.booking_id)).state is BookingState.CONFIRMED
    await new.settle()
    await assert_money(new, at_rest=True)


async def test_two_workers_try_all_payments_once_when_the_provider_is_back(till: Till) -> None:
    """Each has its own breaker, and both close at about the same time: no payment is driven by both."""
    other = till.restarted()
    holds = [await till.hold() for _ in range(60)]
    till.provider.down = True
    await asyncio.gather(*(till.checkout.pay(one.booking_id, one.fence, CARD) for one in holds))
    for _ in range(300):
        till.clock.advance(1)
        await asyncio.gather(till.turn(), other.turn())
    assert till.guarded.breaker.is_open
    assert other.guarded.breaker.is_open
    till.provider.down = False
    till.provider.calls.clear()
    for _ in range(PROBE_S):
        till.clock.advance(1)
        await asyncio.gather(till.turn(), other.turn())
    states = Counter([(await till.booking(one.booking_id)).state for one in holds])
    assert states == {BookingState.CONFIRMED: 60}
    assert till.provider.calls["create"] <= 60 + 2, "one for each, and at most one probe of each worker twice"
    await till.settle()
    await assert_money(till, at_rest=True)


async def test_a_card_that_is_declined_after_the_outage_is_declined(till: Till) -> None:
    hold = await pay_in_an_outage(till, "pm_card_declined")
    await till.settle(250, 1)
    till.provider.down = False
    await till.settle(PROBE_S, 1)
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    await till.settle(HOLD_S)
    assert await told(till) == ["PaymentDeclined"]
    await assert_money(till, at_rest=True)


async def test_a_fan_who_gives_the_seats_back_in_the_outage_is_told_nothing_and_pays_nothing(till: Till) -> None:
    hold = await pay_in_an_outage(till)
    await till.settle(250, 1)
    await till.checkout.release(hold.booking_id, hold.fence)
    assert (await till.hold(3)).fence > hold.fence, "the seats are free at once"
    await till.settle(HOLD_S)
    till.provider.down = False
    await till.settle(140)
    assert [one for one in await told(till) if one != "HoldExpired"] == []
    await assert_money(till, at_rest=True)


async def test_an_event_that_is_cancelled_in_the_outage_ends_the_payment_for_that_reason(till: Till) -> None:
    await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
    hold = await pay_in_an_outage(till)
    await till.settle(250, 1)
    async for _ in till.refunds.cancel_event(EVENT):
        pass
    till.provider.down = False
    await till.settle(HOLD_S)
    assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
    [declined] = [fact for fact in await till.facts() if isinstance(fact, PaymentDeclined | PriorityGranted)]
    assert isinstance(declined, PaymentDeclined)
    assert declined.reason == "event_cancelled"
    await assert_money(till, at_rest=True)


async def test_a_booking_that_became_free_in_the_outage_stays_sold(till: Till) -> None:
    """The payment of the price before was voided after the sale, and the sale was cancelled with it."""
    event = shop_event(id=EVENT, discounts=(Discount("FREE", 10_000),))
    await till.ledger.catalogue.put_event(event, till.clock())
    hold = await till.hold(1)
    await till.checkout.begin(hold.booking_id, hold.fence)
    till.provider.down = True
    free = await till.checkout.choose(
        await till.booking(hold.booking_id), BookingChoice(code="FREE"), event, shop_plan()
    )
    assert (await till.checkout.pay(free.id, free.fence, CARD)).state is CheckoutState.CONFIRMED
    till.provider.down = False
    await till.settle(200)
    assert (await till.driver_payment(free.id)).state is PaymentState.VOIDED
    assert (await till.booking(free.id)).state is BookingState.CONFIRMED
    assert (await till.reconciler.run()).problems == []
    await assert_money(till, at_rest=True)


async def test_nobody_gets_priority_for_tickets_that_were_bought_and_refunded(till: Till) -> None:
    """The bank drops the reservation, the provider is away for the second one, and the fan returns the tickets."""
    await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
    hold = await till.hold(1)
    await till.checkout.pay(hold.booking_id, hold.fence, LAPSES)
    till.provider.script = lambda asked, key, number: Fault.LOST_REQUEST if asked == "create" else None
    await till.settle(10)
    assert (await till.driver_payment(hold.booking_id)).tries > 0
    await till.refunds.refund(hold.booking_id, hold.fence)
    till.provider.script = lambda asked, key, number: None
    await till.settle(200)
    assert [fact for fact in await till.facts() if isinstance(fact, PriorityGranted)] == []
    assert (await till.driver_payment(hold.booking_id)).reason != PROVIDER_UNAVAILABLE
    await assert_money(till, at_rest=True)


async def test_captures_wait_for_the_provider_no_longer_than_the_breaker_does(till: Till) -> None:
    hold = await till.hold()
    assert (await till.checkout.pay(hold.booking_id, hold.fence, CARD)).state is CheckoutState.CONFIRMED
    till.provider.down = True
    await till.settle(HOLD_S, 1)
    till.provider.down = False
    await till.settle(PROBE_S, 1)
    assert (await till.driver_payment(hold.booking_id)).state is PaymentState.CAPTURED
    await assert_money(till, at_rest=True)
