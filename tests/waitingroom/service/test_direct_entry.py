"""Entering without a line: the ordinary place in the ordinary order, and its pass at once only if nobody waits."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.key_binding import thumbprint
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.errors import ProofInvalid, RoomClosed
from frontrow.waitingroom.model.results import Entered
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.support.eventually import eventually
from tests.waitingroom.credentials.bound_browser import Browser

EVENT = "concert"
PATIENCE_S = 60.0  # nobody waits that long unless something is broken
SMALL = RoomConfig(capacity=10, window_size=8)


@pytest.fixture(params=["memory", "redis"])
async def room(request: pytest.FixtureRequest, room_keys: RoomKeys) -> AsyncIterator[WaitingRoom]:
    clock = ManualClock()
    if request.param == "redis":
        store: Any = RedisRoomStore(request.getfixturevalue("redis_url"), timeout_s=20, clock=clock)
    else:
        store = MemoryRoomStore(clock)
    room = WaitingRoom(store, open_sqlite_audit(":memory:"), room_keys, clock=clock, refresh_us=3_600_000_000)
    room.direct_entry.within_s = PATIENCE_S
    await room.control.create(EVENT, SMALL)
    first = await room.joins.join(EVENT)  # is admitted at once, and gone again: the next slide is due in a second
    await room.loops.tick(EVENT)
    await room.visits.give_back((await room.visits.claim(first.place_jwt)).pass_jwt)
    await room.loops.tick(EVENT)
    yield room
    await room.aclose()


async def admit(room: WaitingRoom) -> None:
    """The interval is over, and the window slides."""
    assert isinstance(room.clock, ManualClock)
    room.clock.advance(1)
    await room.loops.tick(EVENT)


async def begin(room: WaitingRoom, people: int, **options: Any) -> "list[asyncio.Task[Entered]]":
    """So many people enter at the same time; returns once all of them have a place."""
    issued = room.cache.find(EVENT).issued[0] + people
    entering = [asyncio.create_task(room.direct_entry.enter(EVENT, **options)) for _ in range(people)]
    await eventually(lambda: room.cache.find(EVENT).issued[0], PATIENCE_S, until=lambda now: now >= issued)
    return entering


async def entered(entering: "list[asyncio.Task[Entered]]") -> list[Entered]:
    async with asyncio.timeout(PATIENCE_S / 2):
        return list(await asyncio.gather(*entering))


def state_of(room: WaitingRoom, one: Entered) -> PlaceState:
    return room.statuses.of(one.joined.place_jwt).state


async def test_who_need_not_wait_gets_a_pass_by_the_next_slide(room: WaitingRoom) -> None:
    entering = await begin(room, 1)
    assert not entering[0].done()
    await admit(room)
    [one] = await entered(entering)
    assert one.claimed is not None
    assert room.visits.check_pass(one.claimed.pass_jwt, EVENT).place == room.statuses.key_of(one.joined.place_jwt)


async def test_where_people_wait_nobody_waits_for_the_answer_and_the_place_is_kept(room: WaitingRoom) -> None:
    """Twelve wait for eight per slide: whoever enters gets the thirteenth place, at once and without a pass."""
    before = [await room.joins.join(EVENT) for _ in range(12)]
    [late] = await entered(await begin(room, 1))
    assert (late.claimed, late.joined.position, state_of(room, late)) == (None, 1 + 13, PlaceState.WAITING)
    await admit(room)
    assert [room.statuses.of(one.place_jwt).state for one in before].count(PlaceState.ACTIVE) == 8
    assert state_of(room, late) is PlaceState.WAITING


async def test_nobody_is_overtaken_by_somebody_who_enters(room: WaitingRoom) -> None:
    """Three wait in the room. Who enters behind them is let in by the same slide, not before them."""
    before = [await room.joins.join(EVENT) for _ in range(3)]
    entering = await begin(room, 1)
    for _ in range(5):
        await room.loops.tick(EVENT)
    assert not entering[0].done()
    assert room.statuses.of(before[0].place_jwt).state is PlaceState.WAITING
    await admit(room)
    [one] = await entered(entering)
    assert (one.joined.position, one.claimed is not None) == (1 + 4, True)
    assert {room.statuses.of(place.place_jwt).state for place in before} == {PlaceState.ACTIVE}


async def test_fifty_who_enter_at_once_are_in_order_and_never_more_than_fit(room: WaitingRoom) -> None:
    few = await begin(room, 6)
    await admit(room)
    inside = await entered(few)
    assert sorted(one.joined.position or 0 for one in inside if one.claimed) == [2, 3, 4, 5, 6, 7]
    crowd = await entered(await begin(room, 50))
    assert sorted(one.joined.position or 0 for one in crowd) == list(range(8, 58))
    assert not any(one.claimed for one in crowd), "four fit, so fifty are a line"
    await admit(room)
    admitted = [one.joined.position or 0 for one in crowd if state_of(room, one) is PlaceState.ACTIVE]
    assert sorted(admitted) == list(range(8, 8 + len(admitted)))
    assert room.control.view(EVENT).state.active == 6


async def test_a_paused_room_keeps_the_place_and_a_closed_one_gives_none(room: WaitingRoom) -> None:
    await room.control.pause(EVENT)
    [one] = await entered([asyncio.create_task(room.direct_entry.enter(EVENT))])
    assert (one.claimed, one.joined.position) == (None, 2)
    await room.control.close(EVENT)
    with pytest.raises(RoomClosed):
        await room.direct_entry.enter(EVENT)


async def test_a_slide_that_does_not_come_leaves_the_place_which_only_its_browser_can_claim(room: WaitingRoom) -> None:
    room.direct_entry.within_s = 0.0
    one = await room.direct_entry.enter(EVENT, cnf=thumbprint(Browser().jwk))
    assert one.claimed is None
    await admit(room)
    with pytest.raises(ProofInvalid):
        await room.visits.claim(one.joined.place_jwt, EVENT)


async def test_the_loop_turns_for_somebody_who_could_be_admitted_at_once(room: WaitingRoom) -> None:
    """Its usual pause is an hour here."""
    await room.loops.start()
    entering = await begin(room, 1)
    assert isinstance(room.clock, ManualClock)
    room.clock.advance(1)
    [one] = await entered(entering)
    assert one.claimed is not None
