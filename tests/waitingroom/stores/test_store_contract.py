"""The contract over every store, the roster's own (W8), and canaries the contract must catch."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.room_state import LaneState, SlidePlan
from frontrow.waitingroom.ports import (
    JoinCommand,
    JoinReply,
    Recovered,
    RoomStore,
    SlideResult,
    VisitCommand,
    VisitOp,
    VisitReply,
)
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore
from frontrow.waitingroom.stores.sharded import ShardedRoomStore
from tests.contracts.room_store import EVENT, Make, StoreContract, joined, new_room, slide, state_of
from tests.support.servers import Cluster

KINDS = ["memory", "redis", "roster-memory", "roster-redis", "cluster", "sharded"]
Build = Callable[[ManualClock], RoomStore]


def maker(build: Build, made: list[RoomStore]) -> Make:
    async def make(
        phase: Phase = Phase.OPEN, start: LaneState | None = None, **settings: Any
    ) -> tuple[RoomStore, ManualClock]:
        clock = ManualClock()
        store = build(clock)
        made.append(store)
        state = new_room(phase, **settings)
        if start is not None:
            state = replace(state, lanes=(start,))
        await store.create(EVENT, Recovered(state))
        return store, clock

    return make


def builder(kind: str, request: pytest.FixtureRequest) -> Build:
    if kind == "cluster":
        cluster: Cluster = request.getfixturevalue("redis_cluster")
        for node in cluster.nodes:
            node.command("FLUSHALL")
        return lambda clock: RedisRoomStore(cluster.url, timeout_s=20, clock=clock)
    if kind == "sharded":
        return lambda clock: ShardedRoomStore([MemoryRoomStore(clock) for _ in range(3)])
    if kind.endswith("redis"):
        url = request.getfixturevalue("redis_url")
        one_place = kind.startswith("roster")
        return lambda clock: RedisRoomStore(url, timeout_s=20, clock=clock, one_place_per_person=one_place)
    return lambda clock: MemoryRoomStore(clock, one_place_per_person=kind.startswith("roster"))


@pytest.fixture(params=KINDS)
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[RoomStore] = []
    yield maker(builder(request.param, request), made)
    for store in made:
        await store.aclose()


class TestStores(StoreContract):
    pass


@pytest.fixture(params=["roster-memory", "roster-redis"])
async def roster(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[RoomStore] = []
    yield maker(builder(request.param, request), made)
    for store in made:
        await store.aclose()


class TestRoster:
    async def test_w8_a_person_has_one_place_however_often_they_join(self, roster: Make) -> None:
        store, _ = await roster()
        answers = await asyncio.gather(*(store.join(EVENT, [JoinCommand(0, person="ann")]) for _ in range(60)))
        assert {a.position for (a,) in answers if isinstance(a, JoinReply)} == {1}
        assert sum(a.fresh for (a,) in answers if isinstance(a, JoinReply)) == 1
        assert (await state_of(store)).lanes[0].issued == 1

    async def test_w8_rank_counts_who_is_still_there_and_only_improves(self, roster: Make) -> None:
        store, _ = await roster()
        await store.join(EVENT, [JoinCommand(0, person=f"p{n}") for n in range(30)])
        assert await store.rank(EVENT, 0, "p29") == 29
        assert await store.leave(EVENT, 0, "p3")
        assert not await store.leave(EVENT, 0, "p3")
        assert await store.rank(EVENT, 0, "p29") == 28
        assert await store.rank(EVENT, 0, "p3") is None
        await slide(store)
        assert await store.rank(EVENT, 0, "p29") == 19
        assert await store.rank(EVENT, 0, "p5") == 0
        assert await store.rank(EVENT, 0, "nobody") is None

    async def test_w8_who_left_or_expired_joins_at_the_end(self, roster: Make) -> None:
        store, clock = await roster(active_windows=1)
        await store.join(EVENT, [JoinCommand(0, person=f"p{n}") for n in range(30)])
        await store.leave(EVENT, 0, "p20")
        (again,) = await store.join(EVENT, [JoinCommand(0, person="p20")])
        assert isinstance(again, JoinReply)
        assert again.position == 31
        for _ in range(2):
            await slide(store)
            clock.advance(1)
        assert (await state_of(store)).lanes[0].lo == 10
        (expired, active) = await store.join(EVENT, [JoinCommand(0, person="p4"), JoinCommand(0, person="p15")])
        assert isinstance(expired, JoinReply)
        assert isinstance(active, JoinReply)
        assert (expired.position, active.position) == (32, 16)


# -- canaries: each is broken in one way, and the contract must notice ------------------------------------------------


class RacyJoin(MemoryRoomStore):
    async def join(self, event: str, asks: Sequence[JoinCommand], seen: Sequence[int] = ()) -> Any:
        room = self._room(event)
        before = list(room.issued)
        await asyncio.sleep(0)
        room.issued = before
        return await super().join(event, asks)


class TwoPasses(MemoryRoomStore):
    async def visit(self, event: str, asks: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        room = self._room(event)
        known = [self._read_entry(room, ask.place) for ask in asks]
        await asyncio.sleep(0)
        for ask, (expires_s, tag) in zip(asks, known, strict=True):
            if ask.op is VisitOp.CLAIM:
                self._write_entry(room, ask.place, expires_s, tag)
        return await super().visit(event, asks)


class TwoHandOvers(MemoryRoomStore):
    async def visit(self, event: str, asks: Sequence[VisitCommand]) -> Sequence[VisitReply]:
        room = self._room(event)
        known = dict(room.handed)
        await asyncio.sleep(0)
        room.handed = known
        return await super().visit(event, asks)


class NoCapacity(MemoryRoomStore):
    def _claim(self, room: Any, ask: VisitCommand, expires_s: int, tag: int, now_s: int) -> VisitReply:
        kept = room.state
        room.state = replace(kept, config=kept.config.changed(capacity=10**9))
        answer = super()._claim(room, ask, expires_s, tag, now_s)
        room.state = kept
        return answer


class UnfencedSlide(MemoryRoomStore):
    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        await self.take_lead(event, owner, 10**12)
        room = self._room(event)
        room.state = replace(room.state, leader=owner, leader_until_us=2**60)
        return await super().slide(event, owner, plan)


class EarlySlide(MemoryRoomStore):
    async def slide(self, event: str, owner: str, plan: SlidePlan) -> SlideResult:
        room = self._room(event)
        room.state = replace(room.state, slid_at_us=0)
        return await super().slide(event, owner, plan)


class ReturnsTwice(MemoryRoomStore):
    def _visit(self, room: Any, ask: VisitCommand) -> VisitReply:
        kept = self._read_entry(room, ask.place)
        answer = super()._visit(room, ask)
        if ask.op is VisitOp.GIVE_BACK:
            self._write_entry(room, ask.place, *kept)
        return answer


class EndsForNobody(MemoryRoomStore):
    def _end_or_spare(self, room: Any, place: Any, now_s: int, *, away: bool) -> None:
        self._finish(room, place, *self._read_entry(room, place), now_s, timed_out=True, idle=True)


class ForgetsClaims(MemoryRoomStore):
    async def create(self, event: str, room: Recovered) -> bool:
        return await super().create(event, replace(room, claims=()))


CANARIES = [
    (RacyJoin, "test_w1_positions_are_sequential_unique_and_gap_free_among_many_callers"),
    (TwoPasses, "test_w7_a_hundred_parallel_claims_are_one_pass"),
    (TwoHandOvers, "test_a_hand_over_is_exchanged_once_by_fifty_who_try_at_once"),
    (NoCapacity, "test_w6_active_never_exceeds_capacity_and_a_returned_pass_frees_it_at_once"),
    (ReturnsTwice, "test_w6_active_never_exceeds_capacity_and_a_returned_pass_frees_it_at_once"),
    (UnfencedSlide, "test_w4_only_the_leader_slides_and_a_leadership_ends"),
    (EarlySlide, "test_w4_a_stale_early_or_impossible_plan_moves_nothing"),
    (EndsForNobody, "test_an_idle_visit_goes_on_until_its_pass_ends_while_nobody_waits"),
    (EndsForNobody, "test_after_a_time_without_anybody_reaching_the_store_visits_can_be_heard_first"),
    (ForgetsClaims, "test_w13_a_room_is_restored_whole_and_only_if_it_is_gone"),
]


@pytest.mark.parametrize(("broken", "test"), CANARIES)
async def test_canary_the_contract_catches_a_broken_store(broken: type[MemoryRoomStore], test: str) -> None:
    check: Callable[..., Awaitable[None]] = getattr(StoreContract(), test)
    assert inspect.iscoroutinefunction(check)
    await check(maker(MemoryRoomStore, []))
    with pytest.raises(AssertionError):
        await check(maker(broken, []))


async def test_one_call_for_each_batch_of_joins(redis_url: str) -> None:
    store = RedisRoomStore(redis_url, timeout_s=20)
    await store.create(EVENT, Recovered(new_room()))
    before = store.calls
    await joined(store, 1000)
    assert store.calls - before <= 2, "the script, and once its text"
    await store.aclose()


async def test_rooms_that_are_read_at_the_same_moment_are_read_with_one_call(redis_url: str) -> None:
    """N7: hundreds of idle rooms, and hundreds that are opened when a server starts."""
    store = RedisRoomStore(redis_url, timeout_s=20)
    rooms = [f"{EVENT}{number}" for number in range(20)]
    for room in rooms[1:]:
        await store.create(room, Recovered(new_room()))
    await store.snapshot(rooms[1])  # the server knows the script from now on
    before = store.calls
    first, *others = await asyncio.gather(*map(store.snapshot, rooms))
    assert store.calls - before == 1
    assert first is None, "nobody made this one"
    assert all(state is not None and state.now_us for state in others)
    await store._redis.script_flush()
    assert sum(state is not None for state in await asyncio.gather(*map(store.snapshot, rooms))) == 19
    await store.aclose()
