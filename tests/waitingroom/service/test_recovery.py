"""W13, F1, F5: Redis wiped, killed or set back mid-sale, or the server restarted: nobody's place is lost or worsens."""

import asyncio
import copy
from pathlib import Path

import pytest
import redis

from frontrow.core.errors import FrontrowError
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.postgres import open_postgres_audit
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.errors import AlreadyClaimed, RoomFull
from frontrow.waitingroom.model.results import ClaimedPass, Joined
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import Audit
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.support.eventually import eventually
from tests.support.servers import Sentinel, Valkey

EVENT = "concert"
CONFIG = RoomConfig(capacity=30, window_size=10, interval_us=50_000)
RANK = {PlaceState.WAITING: 0, PlaceState.ACTIVE: 1, PlaceState.EXPIRED: 2}


def process(url: str, audit: Audit, keys: RoomKeys, *, one_place_per_person: bool = False) -> WaitingRoom:
    store = RedisRoomStore(url, timeout_s=5, one_place_per_person=one_place_per_person)
    return WaitingRoom(store, audit, keys, refresh_us=20_000, leadership_ttl_us=500_000)


async def join_patiently(room: WaitingRoom) -> Joined:
    """As a browser does: try again while the store is away."""

    async def join() -> Joined | None:
        try:
            return await room.joins.join(EVENT)
        except FrontrowError as error:
            assert error.http_status == 503  # noqa: PT017
            return None

    joined = await eventually(join)
    assert joined is not None
    return joined


async def claimed_all(room: WaitingRoom, places: list[Joined]) -> list[ClaimedPass]:
    answers = await asyncio.gather(*(room.visits.claim(j.place_jwt) for j in places), return_exceptions=True)
    return [answer for answer in answers if isinstance(answer, ClaimedPass)]


class Witness:
    """Remembers what each process told people and protests when it gets worse. (Between processes the cached window
    may differ by one refresh; a person polls twenty times slower than that.)"""

    def __init__(self, rooms: list[WaitingRoom]) -> None:
        self.rooms = rooms
        self.told: dict[tuple[int, str], tuple[int, int]] = {}

    def look(self, places: list[Joined]) -> None:
        for index, room in enumerate(self.rooms):
            for place in places:
                status = room.statuses.of(place.place_jwt)
                assert status.position == room.places.verify(place.place_jwt).position
                assert status.ahead is not None
                ahead, rank = self.told.get((index, place.place_jwt), (10**9, 0))
                assert status.ahead <= ahead
                assert RANK[status.state] >= rank
                self.told[index, place.place_jwt] = (status.ahead, RANK[status.state])


@pytest.mark.parametrize("loss", ["flushed", "killed", "set_back"])
@pytest.mark.parametrize("trail", ["sqlite", "postgres"])
async def test_w13_f1_redis_lost_mid_sale(
    loss: str, trail: str, own_valkey: Valkey, room_keys: RoomKeys, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def audit() -> Audit:
        if trail == "postgres":
            return open_postgres_audit(request.getfixturevalue("postgres_url"))
        return open_sqlite_audit(tmp_path / "room.sqlite")

    count = 2 if trail == "postgres" else 1  # an SQLite file belongs to one process
    rooms = [process(own_valkey.url, audit(), room_keys) for _ in range(count)]
    for room in rooms:
        await room.control.create(EVENT, CONFIG)
    admin = redis.Redis.from_url(own_valkey.url)
    older = admin.dump("{room:concert}")
    places = list(await asyncio.gather(*(rooms[n % count].joins.join(EVENT) for n in range(200))))
    for room in rooms:
        await room.loops.start()
    await eventually(lambda: all(room.control.view(EVENT).state.lanes[0].hi >= 30 for room in rooms))
    active = [p for p in places if rooms[0].statuses.of(p.place_jwt).state is PlaceState.ACTIVE]
    passes = await claimed_all(rooms[-1], active[:30])
    assert len(passes) == 30
    witness = Witness(rooms)
    witness.look(places)

    arriving = [asyncio.create_task(join_patiently(rooms[n % count])) for n in range(100)]
    if loss == "flushed":
        admin.flushall()
    elif loss == "set_back":
        admin.flushall()
        admin.restore("{room:concert}", 0, older)  # type: ignore[arg-type]  # as a replica that had lagged
    else:
        own_valkey.kill()
        own_valkey.start()
    places += await asyncio.gather(*arriving)

    await eventually(lambda: all(room.control.view(EVENT).state.epoch == 2 for room in rooms))
    witness.look(places)
    again = await asyncio.gather(*(rooms[0].visits.claim(p.place_jwt) for p in active[:30]), return_exceptions=True)
    assert all(isinstance(answer, AlreadyClaimed) for answer in again), "no place is exchanged twice across the loss"
    await eventually(lambda: rooms[0].control.view(EVENT).state.active == 30)
    for one in passes:
        assert await rooms[0].visits.give_back(one.pass_jwt), "passes of before the loss are known"
    hi = rooms[0].control.view(EVENT).state.lanes[0].hi
    await eventually(lambda: rooms[0].control.view(EVENT).state.lanes[0].hi > hi)
    witness.look(places)
    keys = {(room.places.verify(p.place_jwt).epoch, p.position) for p in places for room in rooms[:1]}
    assert len(keys) == len(places), "every place is one of its kind"
    for room in rooms:
        await room.aclose()
    admin.close()


REFRESH_US = 250_000  # `WaitingRoom`'s own: a turn of its loop
MOST_TURNS = 10_000_000 // REFRESH_US


async def turns_until_admitted(room: WaitingRoom, clock: ManualClock) -> int:
    """How many turns of the loop it takes until somebody is admitted, the store's clock going on as in real life."""
    hi = room.control.view(EVENT).state.lanes[0].hi
    for turn in range(1, 10 * MOST_TURNS):
        clock.advance(us=REFRESH_US)
        await room.loops.tick(EVENT)
        if room.control.view(EVENT).state.lanes[0].hi > hi:
            return turn
    raise AssertionError("nobody was ever admitted again")


@pytest.mark.parametrize("loss", ["wiped", "set_back", "restarted", "embedded"])
async def test_w13_f1_f5_admissions_resume_within_ten_seconds(
    loss: str, own_valkey: Valkey, room_keys: RoomKeys, tmp_path: Path
) -> None:
    """With the defaults (a turn every 250 ms, a leadership of 5 s, a slide each second), counted in turns: the store
    comes back empty or behind; or the leader dies without resigning and another process starts."""
    clock = ManualClock()
    audit_file = tmp_path / "room.sqlite"

    def start() -> WaitingRoom:
        store = (
            MemoryRoomStore(clock) if loss == "embedded" else RedisRoomStore(own_valkey.url, timeout_s=20, clock=clock)
        )
        return WaitingRoom(store, open_sqlite_audit(audit_file), room_keys, clock=clock, durable_joins=True)

    first = start()
    await first.control.create(EVENT, RoomConfig(capacity=1_000, window_size=10))
    with redis.Redis.from_url(own_valkey.url) as admin:
        older = admin.dump("{room:concert}")
        places = list(await asyncio.gather(*(first.joins.join(EVENT) for _ in range(200))))
        assert await turns_until_admitted(first, clock) <= MOST_TURNS
        if loss in ("wiped", "set_back"):
            admin.flushall()
        if loss == "set_back":
            admin.restore("{room:concert}", 0, older)  # type: ignore[arg-type]
    room = first
    if loss in ("restarted", "embedded"):  # the first is never closed, so it is still the leader
        room = start()
        await room.control.create(EVENT, CONFIG)
    turns = await turns_until_admitted(room, clock)
    assert turns <= MOST_TURNS, f"{turns} turns of {REFRESH_US} us"
    assert room.control.view(EVENT).state.epoch == (1 if loss == "restarted" else 2)
    assert all(room.statuses.of(place.place_jwt).position == place.position for place in places)
    for one in {first, room}:
        await one.aclose()


async def test_f1_a_sentinel_fails_over_and_nobodys_place_is_lost(own_valkey: Valkey, room_keys: RoomKeys) -> None:
    """W13: the primary dies mid-sale, the replica takes over; what it missed is rebuilt from what was seen."""
    with Valkey() as replica:
        replica.command("REPLICAOF", "127.0.0.1", own_valkey.port)
        await eventually(lambda: b"master_link_status:up" in replica.command("INFO", "replication"))
        with Sentinel(own_valkey) as sentinel:  # started now, it sees the replica at once and not with its next look
            await eventually(lambda: b"num-slaves\r\n$1\r\n1" in sentinel.command("SENTINEL", "MASTER", "frontrow"))
            room = process(sentinel.url, open_sqlite_audit(":memory:"), room_keys)
            await room.control.create(EVENT, CONFIG.changed(capacity=1_000))
            places = list(await asyncio.gather(*(room.joins.join(EVENT) for _ in range(100))))
            await room.loops.start()
            await eventually(lambda: room.control.view(EVENT).state.lanes[0].hi > 0)
            witness = Witness([room])
            witness.look(places)
            own_valkey.kill()
            await eventually(replica.is_primary)
            places += await asyncio.gather(*(join_patiently(room) for _ in range(20)))
            await eventually(lambda: all(room.statuses.of(p.place_jwt).state is PlaceState.ACTIVE for p in places))
            witness.look(places)
            keys = {(room.places.verify(p.place_jwt).epoch, p.position) for p in places}
            assert len(keys) == len(places), "every place is one of its kind"
            assert len(await claimed_all(room, places)) == len(places)
            await room.aclose()


async def test_f7_a_new_leader_whose_store_lost_slides_does_not_move_the_window_a_second_time(
    room_keys: RoomKeys,
) -> None:
    """Found by the simulation, seed 341: a failover lost slides and claims that only one server saw, and it died."""
    clock, audit = ManualClock(), open_sqlite_audit(":memory:")
    store = MemoryRoomStore(clock)
    first, second = (WaitingRoom(store, audit, room_keys, clock=clock, durable_joins=True) for _ in range(2))
    await first.control.create(EVENT, RoomConfig(capacity=1_000, window_size=10))
    places = list(await asyncio.gather(*(first.joins.join(EVENT) for _ in range(60))))
    await second.control.create(EVENT, RoomConfig(capacity=1_000))
    replica = copy.deepcopy(store._rooms)
    for _ in range(3):
        await turns_until_admitted(first, clock)
    witness = Witness([first])
    witness.look(places)
    (claimed,) = await claimed_all(first, places[:1])
    store._rooms = replica
    assert second.statuses.of(places[25].place_jwt).state is PlaceState.WAITING
    for _ in range(MOST_TURNS):
        clock.advance(us=REFRESH_US)
        await second.loops.tick(EVENT)
    witness.rooms = [second]
    witness.look(places)
    view = second.control.view(EVENT)
    assert (view.state.epoch, view.is_leader) == (2, True)
    with pytest.raises(AlreadyClaimed):
        await second.visits.claim(places[0].place_jwt)
    assert await second.visits.give_back(claimed.pass_jwt)
    await second.aclose()


async def test_a_new_leader_rebuilds_nothing_that_is_whole(room_keys: RoomKeys) -> None:
    clock, audit = ManualClock(), open_sqlite_audit(":memory:")
    store = MemoryRoomStore(clock)
    first, second = (WaitingRoom(store, audit, room_keys, clock=clock, durable_joins=True) for _ in range(2))
    for room in (first, second):
        await room.control.create(EVENT, RoomConfig(capacity=1_000, window_size=10))
    await asyncio.gather(*(first.joins.join(EVENT) for _ in range(60)))
    await turns_until_admitted(first, clock)
    for _ in range(MOST_TURNS):  # the first is cut off
        clock.advance(us=REFRESH_US)
        await second.loops.tick(EVENT)
    view = second.control.view(EVENT)
    assert (view.state.epoch, view.is_leader) == (1, True)
    await second.aclose()


@pytest.mark.parametrize("embedded", [True, False])
async def test_w13_f5_the_server_is_restarted(
    embedded: bool, own_valkey: Valkey, room_keys: RoomKeys, tmp_path: Path
) -> None:
    """Embedded: everything comes back from the file. Grown up: the store still has it."""

    def start() -> WaitingRoom:
        store = MemoryRoomStore() if embedded else RedisRoomStore(own_valkey.url, timeout_s=20)
        return WaitingRoom(store, open_sqlite_audit(tmp_path / "room.sqlite"), room_keys, durable_joins=True)

    first = start()
    await first.control.create(EVENT, CONFIG)
    places = list(await asyncio.gather(*(first.joins.join(EVENT) for _ in range(60))))
    await first.loops.tick(EVENT)
    (claimed,) = await claimed_all(first, places[:1])
    witness = Witness([first])
    witness.look(places)
    # Not closed, as after kill -9: the next process finds what was durable.
    second = start()
    await second.control.create(EVENT, RoomConfig(capacity=1))
    assert second.control.view(EVENT).state.config.capacity == CONFIG.capacity, "the room that was there goes on"
    witness.rooms = [second]
    witness.look(places)
    assert second.control.view(EVENT).state.epoch == (2 if embedded else 1)
    fresh = await second.joins.join(EVENT)
    assert fresh.position == 61
    with pytest.raises(AlreadyClaimed):
        await second.visits.claim(places[0].place_jwt)
    assert await second.visits.give_back(claimed.pass_jwt)
    for room in (first, second):
        await room.aclose()


async def test_w13_without_any_trail_genuine_places_alone_rebuild_the_line(
    own_valkey: Valkey, room_keys: RoomKeys
) -> None:
    """Store and audit both lost, every process new: the places people show are proof enough."""
    first = process(own_valkey.url, open_sqlite_audit(":memory:"), room_keys)
    await first.control.create(EVENT, CONFIG.changed(capacity=1000))
    places = list(await asyncio.gather(*(first.joins.join(EVENT) for _ in range(50))))
    await first.aclose()
    own_valkey.command("FLUSHALL")
    second = process(own_valkey.url, open_sqlite_audit(":memory:"), room_keys)
    await second.control.create(EVENT, CONFIG.changed(capacity=1000))
    assert second.statuses.of(places[-1].place_jwt).state is PlaceState.WAITING
    await second.loops.start()
    await eventually(lambda: all(second.statuses.of(p.place_jwt).state is PlaceState.ACTIVE for p in places))
    assert (await second.joins.join(EVENT)).position == 51
    await second.aclose()


async def test_w13_the_draw_and_the_roster_survive_a_wiped_store(
    own_valkey: Valkey, room_keys: RoomKeys, tmp_path: Path
) -> None:
    audit = open_sqlite_audit(tmp_path / "room.sqlite")
    room = process(own_valkey.url, audit, room_keys, one_place_per_person=True)
    await room.control.create(EVENT, CONFIG, Phase.PREQUEUE)
    places = [(await room.joins.join(EVENT, person=f"p{n}")).place_jwt for n in range(40)]
    await room.control.open(EVENT, beacon="drand 5")
    before = [room.statuses.of(place).position for place in places]
    record = room.control.draw_record(EVENT)
    own_valkey.command("FLUSHALL")
    await room.loops.tick(EVENT)
    assert room.control.view(EVENT).state.epoch == 2
    assert [room.statuses.of(place).position for place in places] == before
    assert room.control.draw_record(EVENT) == record
    again = await room.joins.join(EVENT, person="p7")
    assert not again.fresh
    assert room.places.verify(again.place_jwt).position == 8
    await room.aclose()


async def test_while_redis_is_away_status_and_now_serving_answer_and_joins_say_503(
    own_valkey: Valkey, room_keys: RoomKeys
) -> None:
    room = process(own_valkey.url, open_sqlite_audit(":memory:"), room_keys)
    await room.control.create(EVENT, CONFIG)
    place = await room.joins.join(EVENT)
    await room.loops.start()
    await eventually(lambda: room.statuses.of(place.place_jwt).state is PlaceState.ACTIVE)
    document = room.cache.find(EVENT).now_serving()
    own_valkey.kill()
    await eventually(lambda: room.counts["tick_errors"] > 0)
    assert room.statuses.of(place.place_jwt).state is PlaceState.ACTIVE
    assert room.cache.find(EVENT).now_serving().body.startswith(document.body[:20])
    for call in (room.joins.join(EVENT), room.visits.claim(place.place_jwt)):
        with pytest.raises(FrontrowError) as refused:
            await call
        assert refused.value.http_status == 503
        assert not isinstance(refused.value, RoomFull)
    own_valkey.start()
    await eventually(lambda: room.control.view(EVENT).state.epoch == 2)
    assert await room.visits.claim(place.place_jwt)
    await room.aclose()
