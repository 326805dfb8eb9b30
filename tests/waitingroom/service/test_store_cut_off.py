"""W5, F1, F8: one server is cut off from the store, the others go on: nobody who asks both sees a worse position."""

import inspect
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.ports import Audit
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from tests.support.eventually import eventually

EVENT = "concert"
CONFIG = RoomConfig(capacity=30, window_size=2, interval_us=1_000_000)


class Cable:
    """One server's way to the store or the audit, which can be cut."""

    def __init__(self, far_end: Any) -> None:
        self._far_end, self.is_cut = far_end, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._far_end, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **more: Any) -> Any:
            if self.is_cut and name != "aclose":
                raise Unavailable("the cable is cut", retry_after_s=1)
            return await found(*args, **more)

        return call


class Servers:
    """Two servers of one room: each with its own way to the shared store and the shared audit."""

    def __init__(self, audit: Audit, keys: RoomKeys) -> None:
        self.clock = ManualClock()
        store = MemoryRoomStore(self.clock)
        self.stores, self.audits = [Cable(store) for _ in range(2)], [Cable(audit) for _ in range(2)]
        self.rooms = [
            WaitingRoom(to_store, to_audit, keys, clock=self.clock, refresh_us=1_000)  # type: ignore[arg-type]
            for to_store, to_audit in zip(self.stores, self.audits, strict=True)
        ]

    def ahead(self, server: int, place: str) -> int:
        ahead = self.rooms[server].statuses.of(place).ahead
        assert ahead is not None
        return ahead


@pytest.fixture
async def servers(room_keys: RoomKeys) -> AsyncIterator[Servers]:
    two = Servers(open_sqlite_audit(":memory:"), room_keys)
    first, second = two.rooms
    await first.control.create(EVENT, CONFIG)
    await second.control.create(EVENT, CONFIG)
    await second.loops.start()  # the one that will be cut off; the test itself lets the first one slide
    yield two
    for room in reversed(two.rooms):
        await room.loops.aclose()
    await first.aclose()


async def slide(servers: Servers) -> None:
    servers.clock.advance(2)
    await servers.rooms[0].loops.tick(EVENT)


async def test_a_server_without_the_store_shows_the_slides_that_the_audit_has(servers: Servers) -> None:
    places = [await servers.rooms[0].joins.join(EVENT) for _ in range(20)]
    last = places[-1].place_jwt
    await eventually(lambda: servers.ahead(1, last) == servers.ahead(0, last))
    servers.stores[1].is_cut = True
    for _ in range(3):
        before = servers.ahead(0, last)
        await slide(servers)
        assert servers.ahead(0, last) < before, "the sale goes on"
        await eventually(lambda: servers.ahead(1, last) == servers.ahead(0, last))
    called = places[3].place_jwt
    assert servers.rooms[1].statuses.of(called).state is PlaceState.ACTIVE
    shown = [json.loads(room.cache.find(EVENT).now_serving().body)["l"][0][:2] for room in servers.rooms]
    assert shown[1] == shown[0], "the document that pages read"


async def test_what_the_store_says_afterwards_replaces_what_the_audit_said(servers: Servers) -> None:
    """A slide that is in the audit may never have been carried out: only the store decides who enters."""
    places = [await servers.rooms[0].joins.join(EVENT) for _ in range(20)]
    last = places[-1].place_jwt
    await eventually(lambda: servers.ahead(1, last) == servers.ahead(0, last))
    servers.stores[1].is_cut = True
    await slide(servers)
    await eventually(lambda: servers.ahead(1, last) == servers.ahead(0, last))
    room = servers.rooms[1].cache.find(EVENT)
    assert room.state.lanes[0].hi < servers.rooms[0].cache.find(EVENT).state.lanes[0].hi, "shown, not believed"
    epoch = room.state.epoch
    servers.stores[1].is_cut = False
    await eventually(lambda: room.state.lanes[0].hi == servers.rooms[0].cache.find(EVENT).state.lanes[0].hi)
    assert room.state.epoch == epoch, "nothing was lost, so nothing is rebuilt"
    assert servers.ahead(1, last) == servers.ahead(0, last)


async def test_a_server_that_is_cut_off_from_both_goes_on_with_the_window_it_saw_last(servers: Servers) -> None:
    place = (await servers.rooms[0].joins.join(EVENT)).place_jwt
    await eventually(lambda: servers.ahead(1, place) == servers.ahead(0, place))
    servers.stores[1].is_cut = servers.audits[1].is_cut = True
    ticks = servers.rooms[1].counts["tick_errors"]
    await eventually(lambda: servers.rooms[1].counts["tick_errors"] > ticks + 2)
    assert servers.ahead(1, place) == servers.ahead(0, place)
