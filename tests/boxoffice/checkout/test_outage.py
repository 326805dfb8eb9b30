"""The provider is away: breaker, cap, retry budget, and a thousand checkouts in flight for two minutes (B8, F2, N3)."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.payments.call_cap import CallCap
from frontrow.boxoffice.adapters.payments.guarded_provider import FAILURES, MAX_IN_FLIGHT, GuardedProvider
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import CheckoutState
from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.payments import RETRIES_S
from frontrow.boxoffice.model.provider_intents import NewIntent, ProviderNotCalled, ProviderUnknown
from frontrow.core.clock import ManualClock
from tests.boxoffice.checkout.till import assert_money, open_till
from tests.support.servers import Valkey

CHECKOUTS = 1000


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
    more = 0
    for _ in range(1_200):  # blocks are given back in the background
        more += await enter_often(servers[1], at_once - more)
        if more >= at_once - 2 * max(1, at_once // 50):
            break
        await asyncio.sleep(0.05)
    assert at_once - 2 * max(1, at_once // 50) <= more < at_once, "all but the blocks that the first still holds"
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
