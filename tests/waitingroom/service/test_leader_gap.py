"""W4 in virtual time: however a leader dies, the gap without slides is at most TTL + interval (and one look)."""

import random

import pytest

from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, RoomState
from frontrow.waitingroom.ports import JoinCommand, Recovered
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.waitingroom.simulation import EVENT, NoAudit

TTL_US, INTERVAL_US, LOOK_US = 5_000_000, 2_000_000, 250_000


@pytest.mark.parametrize("catch_up_us", [1_000_000, 60_000_000], ids=["one window", "all windows"])
@pytest.mark.parametrize("seed", range(6))
async def test_w4_a_dead_leader_costs_at_most_ttl_and_interval(seed: int, catch_up_us: int) -> None:
    """Three candidates look every 250 ms; the leader is killed again and again at random moments."""
    chance = random.Random(seed)
    clock = ManualClock()
    store = MemoryRoomStore(clock)
    wide = RoomConfig(window_size=10, interval_us=INTERVAL_US, capacity=10**9, rate_per_s=10**6, burst=10**6)
    config = wide.changed(catch_up_us=catch_up_us)
    await store.create(EVENT, Recovered(RoomState(1, Phase.OPEN, config, (LaneState(),), bucket_milli=10**9)))
    await store.join(EVENT, [JoinCommand(0)] * 100_000)
    candidates = [Leader(store, NoAudit(), leadership_ttl_us=TTL_US) for _ in range(3)]  # type: ignore[arg-type]
    start_us = last_us = clock()
    longest_us = hi = kills = most = 0
    while clock() < start_us + 300_000_000:
        for candidate in candidates:
            state = await store.snapshot(EVENT)
            assert state is not None
            await candidate.take_turn(EVENT, state)
        state = await store.snapshot(EVENT)
        assert state is not None
        if state.lanes[0].hi > hi:
            longest_us = max(longest_us, clock() - last_us)
            most = max(most, state.lanes[0].hi - hi)
            last_us, hi = clock(), state.lanes[0].hi
        if chance.random() < 0.02:  # the leader dies without a word; somebody new takes its seat
            kills += 1
            candidates = [each for each in candidates if each.owner != state.leader]
            candidates.append(Leader(store, NoAudit(), leadership_ttl_us=TTL_US))  # type: ignore[arg-type]
        clock.advance(us=LOOK_US)
    assert kills > 5
    assert longest_us <= TTL_US + INTERVAL_US + LOOK_US
    due = (clock() - start_us) // INTERVAL_US + 1
    assert hi <= due * config.window_size, "never two slides for an interval"
    if catch_up_us > TTL_US:
        assert hi >= (due - (TTL_US + INTERVAL_US) // INTERVAL_US - 1) * config.window_size, "no slide lost"
        assert most > config.window_size
    else:
        assert most == config.window_size, "a gap makes no crowd"


class AwayAudit(NoAudit):
    async def append(self, event: str, rows: object) -> None:
        raise Unavailable("the audit is away")


async def test_w13_nobody_is_admitted_before_the_audit_has_the_slide() -> None:
    """A store that loses its memory then comes back with the window that people have seen."""
    clock = ManualClock()
    store = MemoryRoomStore(clock)
    config = RoomConfig(window_size=10, interval_us=INTERVAL_US, capacity=10**9)
    await store.create(EVENT, Recovered(RoomState(1, Phase.OPEN, config, (LaneState(),), bucket_milli=10**9)))
    await store.join(EVENT, [JoinCommand(0)] * 20)
    clock.advance(us=INTERVAL_US)
    state = await store.snapshot(EVENT)
    assert state is not None
    with pytest.raises(Unavailable):
        await Leader(store, AwayAudit()).take_turn(EVENT, state)  # type: ignore[arg-type]
    after = await store.snapshot(EVENT)
    assert after is not None
    assert after.lanes[0].hi == 0


async def test_after_a_gap_without_a_leader_one_window_is_admitted(redis_url: str) -> None:
    """On Redis: six intervals of nobody leading let in six windows at once. The next slide is due by the same beat."""
    clock = ManualClock()
    store = RedisRoomStore(redis_url, timeout_s=20, clock=clock)
    config = RoomConfig(window_size=10, interval_us=INTERVAL_US, capacity=10**9)
    await store.create(EVENT, Recovered(RoomState(1, Phase.OPEN, config, (LaneState(),), bucket_milli=10**9)))
    await store.join(EVENT, [JoinCommand(0)] * 200)
    leader = Leader(store, NoAudit(), leadership_ttl_us=TTL_US)  # type: ignore[arg-type]
    admitted = []
    for wait_us in (INTERVAL_US, 6 * INTERVAL_US + 1, INTERVAL_US - 2, 1, INTERVAL_US):
        clock.advance(us=wait_us)
        state = await store.snapshot(EVENT)
        assert state is not None
        admitted.append((await leader.take_turn(EVENT, state)).admitted)
    assert admitted == [10, 10, 0, 10, 10]
    await store.aclose()
