"""How visits go on and end, over several processes and restarts: given back, idle, left, kept by a hold (section 3)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.passes import Pass
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.errors import PassEnded, PassExpired, PassForeign
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore

EVENT = "concert"
SETTINGS = RoomConfig(capacity=1, window_size=5, pass_ttl_s=900, max_stay_s=3600, idle_s=120, leave_s=10)


@dataclass
class Servers:
    """Any number of processes over one store and one audit file."""

    kind: str
    url: str
    path: Path
    keys: RoomKeys
    clock: ManualClock = field(default_factory=ManualClock)
    memory: MemoryRoomStore | None = None
    opened: list[WaitingRoom] = field(default_factory=list)

    async def start(self) -> WaitingRoom:
        """One more process that serves the room."""
        if self.kind == "redis":
            store: Any = RedisRoomStore(self.url, timeout_s=20, clock=self.clock)
        else:
            self.memory = self.memory or MemoryRoomStore(self.clock)
            store = self.memory
        room = WaitingRoom(store, open_sqlite_audit(self.path), self.keys, clock=self.clock)
        self.opened.append(room)
        await room.control.create(EVENT, SETTINGS)
        return room

    async def let_in(self, room: WaitingRoom) -> str:
        """The pass of somebody new, once the leader has slid the window."""
        joined = await room.joins.join(EVENT)
        for _ in range(2):
            for one in self.opened:
                await one.loops.tick(EVENT)
            self.clock.advance(1)
        return (await room.visits.claim(joined.place_jwt)).pass_jwt

    async def pass_by(self, seconds: int) -> None:
        """So many seconds pass; every process looks at the room meanwhile."""
        for start in range(0, seconds, 5):
            self.clock.advance(min(5, seconds - start))
            for one in self.opened:
                await one.loops.tick(EVENT)

    async def stop_all(self) -> None:
        for room in self.opened:
            await room.aclose()
        self.opened = []
        self.memory = None  # as a process' memory is


@pytest.fixture(params=["memory", "redis"])
async def servers(request: pytest.FixtureRequest, tmp_path: Path, room_keys: RoomKeys) -> AsyncIterator[Servers]:
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    made = Servers(request.param, url, tmp_path / "audit.sqlite", room_keys)
    yield made
    await made.stop_all()


async def test_w7_a_pass_given_back_on_one_server_is_refused_on_all_after_their_next_look(servers: Servers) -> None:
    """Before: only the process that took it back refused it."""
    first, second = await servers.start(), await servers.start()
    text = await servers.let_in(first)
    assert second.visits.check_pass(text)
    assert await first.visits.give_back(text)
    with pytest.raises(PassEnded):
        first.visits.check_pass(text)
    await second.loops.tick(EVENT)
    with pytest.raises(PassEnded):
        second.visits.check_pass(text)
    assert not await second.visits.give_back(text)


async def test_w13_a_pass_given_back_stays_refused_after_every_server_restarted(servers: Servers) -> None:
    """Before: a restart forgot it. Embedded, the list comes back from the audit file."""
    room = await servers.start()
    text = await servers.let_in(room)
    assert await room.visits.give_back(text)
    await servers.stop_all()
    room = await servers.start()
    with pytest.raises(PassEnded):
        room.visits.check_pass(text)
    servers.clock.advance(901)
    with pytest.raises(PassExpired):
        room.visits.check_pass(text)
    await room.loops.tick(EVENT)
    assert room.cache.find(EVENT).ended == {}, "nothing is remembered for longer than the pass would have lasted"


async def test_w6_who_is_not_heard_of_makes_room_for_the_next_and_stays_out_after_a_restart(servers: Servers) -> None:
    first, second = await servers.start(), await servers.start()
    sleeper = await servers.let_in(first)
    waiting = await second.joins.join(EVENT)
    await servers.pass_by(118)
    assert second.visits.check_pass(sleeper)
    await servers.pass_by(2)
    for room in (first, second):
        with pytest.raises(PassEnded) as over:
            room.visits.check_pass(sleeper)
        assert over.value.about["idle"]
    await servers.pass_by(1)
    assert await second.visits.claim(waiting.place_jwt)
    for room in (first, second):
        with pytest.raises(PassEnded) as over:
            room.visits.check_pass(sleeper)
        assert over.value.about["passed_on"], "the place went to the next person"
    await servers.stop_all()
    room = await servers.start()
    with pytest.raises(PassEnded):
        room.visits.check_pass(sleeper)


async def test_while_nobody_waits_an_idle_visit_goes_on_at_every_server(servers: Servers) -> None:
    """Before: it ended, and its page said that the place went to the next person, who did not exist."""
    first, second = await servers.start(), await servers.start()
    sleeper = await servers.let_in(first)
    await servers.pass_by(600)
    assert first.visits.check_pass(sleeper)
    assert second.visits.check_pass(sleeper)
    assert (await second.visits.look(sleeper)).ends_s > servers.clock() // 1_000_000


async def test_nobody_is_told_that_the_place_went_on_before_somebody_came_in(servers: Servers) -> None:
    """The queue was empty and fills. The sleeper has a minute; then the place is free, then somebody is admitted."""
    first, second = await servers.start(), await servers.start()
    sleeper = await servers.let_in(first)
    await servers.pass_by(300)
    await second.joins.join(EVENT)
    await servers.pass_by(50)
    told = await first.visits.look(sleeper)
    assert 0 < told.ends_s - servers.clock() // 1_000_000 <= 15
    assert first.control.view(EVENT).state.is_wanted
    servers.clock.advance(15)
    with pytest.raises(PassEnded) as over:
        await first.visits.look(sleeper)
    assert not over.value.about["passed_on"], "nobody has come in yet"
    await servers.pass_by(3)
    with pytest.raises(PassEnded) as over:
        await first.visits.look(sleeper)
    assert over.value.about == {"idle": True, "passed_on": True}


async def test_a_visit_that_was_left_or_given_back_went_to_nobody_because_of_idleness(servers: Servers) -> None:
    room = await servers.start()
    text = await servers.let_in(room)
    await room.joins.join(EVENT)
    await room.visits.leave_shop(text)
    await servers.pass_by(12)
    with pytest.raises(PassEnded) as over:
        await room.visits.heartbeat(text)
    assert over.value.about == {"idle": False, "passed_on": False}


async def test_a_hold_keeps_an_idle_visit_though_others_wait(servers: Servers) -> None:
    room = await servers.start()
    text = await servers.let_in(room)
    await room.joins.join(EVENT)
    await room.visits.keep_pass(text, servers.clock() // 1_000_000 + 600, "bkg_1")
    await servers.pass_by(590)
    assert room.visits.check_pass(text)
    await room.visits.keep(room.visits.read_pass(text).id, 0, "bkg_1")
    await servers.pass_by(115)
    assert room.visits.check_pass(text), "after the hold the idle time begins anew"
    await servers.pass_by(10)
    with pytest.raises(PassEnded):
        room.visits.check_pass(text)


async def test_after_the_store_was_away_nobody_loses_the_visit_that_could_not_be_heard(servers: Servers) -> None:
    room = await servers.start()
    text = await servers.let_in(room)
    await room.joins.join(EVENT)
    servers.clock.advance(400)  # nobody reaches the store: neither heartbeats nor the loops
    await room.loops.tick(EVENT)
    assert room.visits.check_pass(text)
    assert (await room.visits.heartbeat(text)).ends_s == servers.clock() // 1_000_000 + 120


async def test_a_call_at_any_server_is_heard(servers: Servers) -> None:
    first, second = await servers.start(), await servers.start()
    text = await servers.let_in(first)
    for _ in range(4):
        servers.clock.advance(100)
        second.visits.hear(second.visits.check_pass(text).id)
        await second.loops.tick(EVENT)
        await first.loops.tick(EVENT)
        assert first.visits.check_pass(text)
    assert first.control.view(EVENT).state.active == 1


async def test_a_closed_page_frees_the_place_in_seconds_unless_another_page_is_heard(servers: Servers) -> None:
    room = await servers.start()
    text = await servers.let_in(room)
    told = await room.visits.leave_shop(text)
    assert told.ends_s == servers.clock() // 1_000_000 + 10
    servers.clock.advance(5)
    told = await room.visits.heartbeat(text)
    assert told.ends_s == servers.clock() // 1_000_000 + 120
    servers.clock.advance(11)
    await room.loops.tick(EVENT)
    assert room.visits.check_pass(text)
    await room.visits.leave_shop(text)
    servers.clock.advance(11)
    assert await servers.let_in(room), "the next one is let in"
    with pytest.raises(PassEnded):
        await room.visits.heartbeat(text)


async def test_a_live_hold_keeps_visit_and_pass_beyond_fifteen_minutes(servers: Servers) -> None:
    """Before: a hold could outlive the pass, and paying was refused in the middle."""
    room = await servers.start()
    text = await servers.let_in(room)
    until_s = servers.clock() // 1_000_000 + 1_500
    longer = await room.visits.keep_pass(text, until_s, "bkg_1")
    assert longer is not None
    assert longer.expires_s == until_s
    assert await room.visits.keep_pass(longer.pass_jwt, until_s, "bkg_1") is None, "it lasts long enough"
    await room.visits.leave_shop(text)
    servers.clock.advance(1_000)
    await room.loops.tick(EVENT)
    assert room.visits.check_pass(longer.pass_jwt)
    with pytest.raises(PassExpired):
        room.visits.check_pass(text)
    assert room.visits.read_pass(text).id == room.visits.check_pass(longer.pass_jwt).id
    assert (await room.visits.renew(text)).expires_s >= until_s, "programs renew a pass that ran out while a hold lives"
    await room.visits.keep(room.visits.read_pass(text).id, 0, "bkg_1")
    await room.joins.join(EVENT)
    await servers.pass_by(121)
    with pytest.raises(PassEnded):
        room.visits.check_pass(longer.pass_jwt)


async def test_the_box_office_ends_a_visit_it_knows_by_its_id(servers: Servers) -> None:
    first, second = await servers.start(), await servers.start()
    text = await servers.let_in(first)
    visit = first.visits.check_pass(text)
    assert await second.visits.end_visit(visit.id)
    assert not await second.visits.end_visit(visit.id)
    await first.loops.tick(EVENT)
    with pytest.raises(PassEnded):
        first.visits.check_pass(text)
    await second.loops.tick(EVENT)
    assert await servers.let_in(second)


async def test_a_pass_beside_the_line_is_refused_everywhere_once_given_back(servers: Servers) -> None:
    first, second = await servers.start(), await servers.start()
    now_s = servers.clock() // 1_000_000
    beside = Pass(EVENT, "fan", PlaceKey(0, 0, 4_711), now_s, now_s + 900, now_s)
    text = first.passes.mint(beside)
    assert (await first.visits.heartbeat(text)).ends_s == now_s + 900
    assert await first.visits.give_back(text)
    await second.loops.tick(EVENT)
    with pytest.raises(PassEnded):
        second.visits.check_pass(text)
    await servers.stop_all()
    room = await servers.start()
    with pytest.raises(PassEnded):
        room.visits.check_pass(text)
    with pytest.raises(PassForeign):
        room.visits.check_pass(text, "another")


async def test_a_visit_of_an_older_version_is_counted_and_can_go_on(servers: Servers) -> None:
    """A Redis written by the version before: passes are counted by the second they end, and have no other entry."""
    if servers.kind == "memory":
        return  # nothing of it outlives the process
    room = await servers.start()
    store: Any = room.store
    old, older = PlaceKey(0, 1, 1), PlaceKey(0, 1, 2)
    ends_s = servers.clock() // 1_000_000 + 300
    key = f"{{room:{EVENT}}}"
    for place in (old, older):
        packed = ends_s.to_bytes(4, "big") + bytes(4)
        await store._send("SETRANGE", f"{key}:v:0:1:0", place.position * 8, packed)
    await store._send("HSET", f"{key}:ends", str(ends_s), 2)
    await store._send("HSET", key, "active", 2)
    now_s = ends_s - 300
    text = room.passes.mint(Pass(EVENT, "fan", old, now_s, ends_s, now_s))
    assert (await room.visits.heartbeat(text)).ends_s == now_s + 120
    assert await room.visits.give_back(text)
    await room.loops.tick(EVENT)
    assert room.control.view(EVENT).state.active == 1
    servers.clock.advance(301)
    await room.loops.tick(EVENT)
    assert room.control.view(EVENT).state.active == 0
