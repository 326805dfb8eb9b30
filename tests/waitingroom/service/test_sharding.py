"""W11: a queue spread by key over several Redis servers."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import ConfigError, FrontrowError
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.results import ClaimedPass, Joined
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.service.sharding import ShardedRoom, shard_of, slices
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.support.servers import Valkey


@given(st.integers(0, 10**6), st.lists(st.integers(0, 1000), min_size=1, max_size=64))
def test_w11_slices_add_up_to_the_whole(capacity: int, wanted: list[int]) -> None:
    parts = slices(capacity, wanted)
    assert sum(parts) == capacity
    assert min(parts) >= 0


def test_w11_keys_spread_evenly_and_few_move_when_a_shard_is_added() -> None:
    before = [shard_of(f"fan-{n}", 4) for n in range(8000)]
    after = [shard_of(f"fan-{n}", 5) for n in range(8000)]
    assert all(1800 < count < 2200 for count in Counter(before).values())
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    assert 1300 < moved < 1900
    assert all(b == 4 for a, b in zip(before, after, strict=True) if a != b)


async def join(line: ShardedRoom, person: str) -> Joined:
    shard = line.shard_for(person, "")
    return await line.rooms[shard].joins.join(line.names[shard], person)


async def test_w11_a_line_over_two_servers_keeps_capacity_and_outlives_one_of_them(room_keys: RoomKeys) -> None:
    with Valkey() as one, Valkey() as two:
        rooms = [
            WaitingRoom(RedisRoomStore(s.url, timeout_s=20), open_sqlite_audit(":memory:"), room_keys)
            for s in (one, two)
        ]
        line = ShardedRoom("concert", rooms)
        await line.create(RoomConfig(capacity=11, window_size=100))
        joined = await asyncio.gather(*(join(line, f"fan-{n}") for n in range(300)))
        again = await join(line, "fan-7")
        assert (again.status.event, again.fresh) == (joined[7].status.event, True)
        for shard, view in enumerate(line.views()):
            mine = [j.position for j in joined if j.status.event == line.names[shard]]
            assert mine == list(range(1, len(mine) + 1)), "in order within a shard"
            await rooms[shard].loops.tick(view.event)
        answers = await asyncio.gather(
            *(rooms[line.names.index(j.status.event)].visits.claim(j.place_jwt) for j in joined), return_exceptions=True
        )
        assert sum(isinstance(answer, ClaimedPass) for answer in answers) == 11
        for room, name in zip(rooms, line.names, strict=True):
            await room.loops.tick(name)
        assert sum(await line.rebalance()) <= 11
        assert sum(view.state.config.capacity for view in line.views()) <= 11
        two.kill()
        outcomes = await asyncio.gather(*(join(line, f"new-{n}") for n in range(40)), return_exceptions=True)
        assert any(isinstance(outcome, FrontrowError) for outcome in outcomes)
        assert any(not isinstance(outcome, BaseException) for outcome in outcomes), "the other shard goes on"
        for room in rooms:
            await room.aclose()


async def test_w11_unused_capacity_moves_to_where_people_wait(redis_url: str, room_keys: RoomKeys) -> None:
    room = WaitingRoom(RedisRoomStore(redis_url, timeout_s=20), open_sqlite_audit(":memory:"), room_keys)
    line = ShardedRoom("concert", [room, room])
    await line.create(RoomConfig(capacity=100, window_size=100))
    people = [f"fan-{n}" for n in range(600) if shard_of(f"fan-{n}", 2) == 0][:200]
    await asyncio.gather(*(join(line, person) for person in people))
    for name in line.names:
        await room.loops.tick(name)
    assert await line.rebalance() == (100, 0)
    assert [view.state.config.capacity for view in line.views()] == [100, 0]
    await room.aclose()


def test_w11_too_many_or_no_shards_are_a_clear_error() -> None:
    with pytest.raises(ConfigError):
        ShardedRoom("concert", [])
