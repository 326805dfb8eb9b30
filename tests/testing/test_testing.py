"""`frontrow.testing` as users' tests import it: time, limits, passes and payments without a server."""

import pytest

from frontrow.boxoffice.payments.model.provider_intents import NewIntent, ProviderNotCalled, ProviderUnknown
from frontrow.core.clock import US_PER_S
from frontrow.limits import Limiter, Quota, Rule
from frontrow.limits.stores.protocol import QuotaSlot
from frontrow.testing.clock import ManualClock
from frontrow.testing.limits import MemoryStore, in_memory
from frontrow.testing.payments import Fault, SimulatedProvider
from frontrow.testing.room import MemoryRoomStore, RoomPasses
from frontrow.waitingroom.model.errors import PassExpired, PassForeign
from frontrow.waitingroom.ports import JoinCommand, Recovered
from frontrow.waitingroom.protect import Guard
from tests.contracts.room_store import new_room

ORDER = NewIntent("bkg_1", 1, 5000, "EUR", "evt_1", fence=1, seats=(7,), key="pay-1")
FAULTS = {1: Fault.LOST_REQUEST, 2: Fault.LOST_REPLY}


def test_a_manual_clock_moves_only_when_it_is_told_to() -> None:
    clock = ManualClock(5 * US_PER_S)
    assert clock() == clock() == 5 * US_PER_S
    assert clock.advance(1.5, us=3) == clock() == 6_500_003
    clock.sleep(0.5)
    assert clock() == 7_000_003
    assert clock.advance(-7, us=-3) == 0


def test_a_limiter_in_memory_has_the_same_rules_and_counts_for_itself(clock: ManualClock) -> None:
    original = Limiter([Rule("all", Quota.parse("2/minute"))], store="redis://127.0.0.1:1/0")
    limiter = in_memory(original, clock)
    assert limiter.rules == original.rules
    assert [limiter.check("ada").allowed for _ in range(3)] == [True, True, False]
    assert in_memory(original, clock).check("ada").allowed, "each begins with nothing counted"
    clock.advance(us=limiter.peek("ada").retry_after_us)
    assert limiter.check("ada").allowed


def test_the_memory_store_can_be_given_to_a_limiter(clock: ManualClock) -> None:
    rule = Rule("all", Quota.parse("1/minute"))
    store = MemoryStore([QuotaSlot(rule, "", rule.quota)], clock)
    servers = [Limiter([rule], store=store, clock=clock) for _ in range(2)]
    assert [server.check("ada").allowed for server in servers] == [True, False], "two servers share it"


def test_an_issued_pass_opens_the_shop_of_its_event_until_it_expires(clock: ManualClock) -> None:
    passes = RoomPasses("aurora", clock)
    guard = Guard(passes.keys, "/room/", clock=passes.clock)
    text = passes.issue("ada", ttl_s=60)
    assert guard.admit(text, person="ada").event == "aurora"
    with pytest.raises(PassForeign):
        guard.admit(RoomPasses("borealis", clock).issue("ada"))
    clock.advance(60, us=-1)
    assert guard.admit(text).person == "ada"
    clock.advance(us=1)
    with pytest.raises(PassExpired):
        guard.admit(text)


def test_every_pass_has_a_place_of_its_own(clock: ManualClock) -> None:
    passes = RoomPasses("aurora", clock)
    guard = Guard(passes.keys, "/room/", clock=clock)
    places = [guard.admit(passes.issue(f"fan_{n}")).place for n in range(3)]
    assert len(set(places)) == 3


async def test_the_rooms_store_in_memory_takes_people(clock: ManualClock) -> None:
    store = MemoryRoomStore(clock)
    assert await store.create("aurora", Recovered(new_room()))
    replies = await store.join("aurora", [JoinCommand(0), JoinCommand(0)])
    assert [reply.position for reply in replies] == [1, 2]


async def test_the_simulated_provider_carries_out_once_what_is_asked_twice(clock: ManualClock) -> None:
    provider = SimulatedProvider(clock, script=lambda _operation, _key, number: FAULTS.get(number))
    for _ in FAULTS:
        with pytest.raises((ProviderUnknown, ProviderNotCalled)):
            await provider.create(ORDER)
    intent = await provider.create(ORDER)
    assert (intent.amount_minor, len(provider.objects), provider.calls["create"]) == (5000, 1, 3)
    await provider.aclose()
