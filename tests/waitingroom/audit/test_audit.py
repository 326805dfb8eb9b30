"""W13: the durable trail over SQLite and PostgreSQL: what it must give back after everything else is lost."""

import asyncio
import contextlib
import gc
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontrow.core.errors import Unavailable
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.postgres import open_postgres_audit
from frontrow.waitingroom.audit.sql_audit import SqlAudit
from frontrow.waitingroom.audit.sqlite import _connect, open_sqlite_audit
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import LaneRule, RoomConfig
from frontrow.waitingroom.model.room_state import LaneState
from frontrow.waitingroom.model.window import Slide, Window
from frontrow.waitingroom.ports import (
    Audit,
    ClaimRow,
    CodeRow,
    ImportRow,
    JoinRow,
    PersonAt,
    PlaceKey,
    Recovered,
    RoomRow,
)
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from tests.contracts.room_store import new_room

EVENT = "concert"
NOW_S = 1_763_200_000


@pytest.fixture(params=["sqlite", "postgres"])
async def audit(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Audit]:
    made: Audit
    if request.param == "postgres":
        made = open_postgres_audit(request.getfixturevalue("postgres_url"))
    else:
        made = open_sqlite_audit(tmp_path / "room.sqlite")
    yield made
    await made.aclose()


async def recovered(audit: Audit) -> Recovered:
    found = await audit.recover(EVENT, NOW_S)
    assert found is not None
    return found


class TestAudits:
    async def test_w13_a_room_comes_back_as_it_was(self, audit: Audit) -> None:
        assert await audit.recover(EVENT, NOW_S) is None
        config = {"lanes": (LaneRule("general"), LaneRule("fans", 3)), "message": "grüß 'dich'"}
        state = replace(
            new_room(**config),
            epoch=3,
            lanes=(LaneState(90, 50, 10, 40), LaneState(7, 3, 1)),
            slide_no=9,
            ring=(Slide(8, 5, (40, 2), 4), Slide(9, 6, (50, 3), 11)),
            took={8: 4},
            note='{"x":1}',
            beacon="b",
            message_no=2,
            released=17,
        )
        await audit.append(EVENT, [RoomRow(state, 1000)])
        back = (await recovered(audit)).state
        assert replace(back, now_us=0) == replace(state, now_us=0)
        assert await audit.recover("other", NOW_S) is None

    async def test_w13_rooms_that_are_looked_for_at_the_same_time_are_read_together(
        self, audit: SqlAudit, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server that starts looks for hundreds of rooms; most of them never were."""
        for number in range(0, 100, 10):
            await audit.append(f"evt_{number}", [RoomRow(replace(new_room(), slide_no=number), 1)])
        asked: list[str] = []
        query = audit._database.query

        async def counted(statement: str, *values: str) -> list[tuple[Any, ...]]:
            asked.append(statement)
            return await query(statement, *values)

        monkeypatch.setattr(audit._database, "query", counted)
        found = await asyncio.gather(*(audit.recover(f"evt_{number}", NOW_S) for number in range(100)))
        assert [one and one.state.slide_no for one in found] == [
            number if number % 10 == 0 else None for number in range(100)
        ]
        assert sum("room_state" in statement for statement in asked) <= 5

    async def test_w13_counters_come_back_at_the_highest_any_row_saw(self, audit: Audit) -> None:
        state = replace(new_room(), lanes=(LaneState(10, 5, 0),))
        await audit.append(EVENT, [RoomRow(state, 1)])
        await audit.append(EVENT, [JoinRow(1, 0, 11, 40, 2), JoinRow(1, 0, 41, 60, 3)])
        await audit.append(EVENT, [RoomRow(replace(state, slide_no=5, lanes=(LaneState(10, 30, 20),)), 9)])
        await audit.append(EVENT, [RoomRow(replace(state, slide_no=4, lanes=(LaneState(10, 20, 0),)), 8)])
        lane = (await recovered(audit)).state.lanes[0]
        assert (lane.issued, lane.hi, lane.lo) == (60, 30, 20)
        older = replace(state, epoch=0, lanes=(LaneState(),))
        await audit.append(EVENT, [RoomRow(older, 99)])
        assert (await recovered(audit)).state.epoch == 1

    async def test_windows_are_those_of_the_furthest_slide_of_each_lane(self, audit: Audit) -> None:
        assert list(await audit.windows(EVENT)) == []
        state = new_room()
        await audit.append(EVENT, [RoomRow(replace(state, slide_no=5, lanes=(LaneState(40, 30, 20),)), 9)])
        wider = (LaneState(40, 35, 10), LaneState(9, 7, 3))
        await audit.append(EVENT, [RoomRow(replace(state, slide_no=6, lanes=wider), 10)])
        assert list(await audit.windows(EVENT)) == [Window(20, 35), Window(3, 7)]

    async def test_w13_claims_come_back_if_they_still_matter(self, audit: Audit) -> None:
        state = replace(new_room(), lanes=(LaneState(100, 80, 20),))
        key = [PlaceKey(0, 1, position) for position in range(60)]
        rows = [
            ClaimRow(key[10], NOW_S + 50, 1, "lives though its place is over", 1),
            ClaimRow(key[11], NOW_S - 50, 1),
            ClaimRow(key[30], NOW_S + 10, 1, "renewed later", 4_000_000_000),
            ClaimRow(key[30], NOW_S + 90, 2, "renewed later", 4_000_000_000),
            ClaimRow(key[31], NOW_S + 10, 1, "given back"),
            ClaimRow(key[31], 0, 2, "given back"),
            ClaimRow(key[32], NOW_S - 10, 1, "run out, but must not be claimed twice"),
        ]
        await audit.append(EVENT, [RoomRow(state, 1), *rows, CodeRow(77, 1), CodeRow(77, 2), CodeRow(2**40, 3)])
        found = await recovered(audit)
        standing = {row.place.position: (row.expires_s, row.tag) for row in found.claims}
        assert standing == {
            10: (NOW_S + 50, 1),
            30: (NOW_S + 90, 4_000_000_000),
            31: (0, 0),
            32: (NOW_S - 10, 0),
        }
        assert sorted(found.codes) == [77, 2**40]
        assert (await audit.used_codes(EVENT), await audit.used_codes("other")) == (2, 0)

    async def test_w12_imported_codes_are_there_for_every_process(self, audit: Audit) -> None:
        await audit.append(EVENT, [ImportRow({"aa": 1, "bb": 0})])
        await audit.append(EVENT, [ImportRow({"aa": 2})])
        assert [await audit.imported_lane(EVENT, digest) for digest in ("aa", "bb", "cc")] == [2, 0, None]
        assert await audit.imported_lane("other", "aa") is None
        assert await audit.imported_counts(EVENT) == {0: 1, 2: 1}
        assert await audit.imported_counts("other") == {}

    async def test_w8_w13_people_come_back_where_they_stood(self, audit: Audit) -> None:
        state = replace(new_room(), lanes=(LaneState(4, 2, 1),))
        await audit.append(
            EVENT, [RoomRow(state, 1), JoinRow(1, 0, 1, 3, 5, ("ann", "bob", "cleo")), JoinRow(1, 0, 4, 4, 6)]
        )
        assert set((await recovered(audit)).people) == {PersonAt("bob", 0, 1, 2, 5), PersonAt("cleo", 0, 1, 3, 5)}

    async def test_many_writers_share_transactions_and_repeating_a_row_is_harmless(self, audit: Audit) -> None:
        rows = [JoinRow(1, 0, n * 10 + 1, n * 10 + 10, n) for n in range(200)]
        await audit.append(EVENT, [RoomRow(new_room(), 1)])
        await asyncio.gather(*(audit.append(EVENT, [row]) for row in rows))
        await asyncio.gather(*(audit.append(EVENT, [row]) for row in rows))
        assert (await recovered(audit)).state.lanes[0].issued == 2000


async def test_w13_the_file_outlives_the_process_that_wrote_it(tmp_path: Path) -> None:
    first = open_sqlite_audit(tmp_path / "room.sqlite")
    await first.append(EVENT, [RoomRow(new_room(), 1), JoinRow(1, 0, 1, 5, 1)])
    second = open_sqlite_audit(tmp_path / "room.sqlite")  # as after a crash: the first was never closed
    assert (await recovered(second)).state.lanes[0].issued == 5
    await first.aclose()
    await second.aclose()


def test_many_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """The processes of one server do. One of them got "database is locked"."""
    for round_number in range(60):
        path, together, refused = tmp_path / f"{round_number}.sqlite", threading.Barrier(8), list[Exception]()

        def open_it(path: Path = path, together: threading.Barrier = together, refused: Any = refused) -> None:
            together.wait()
            try:
                _connect(str(path)).close()
            except sqlite3.OperationalError as error:
                refused.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused == []


async def test_an_audit_that_cannot_be_reached_says_so() -> None:
    away = open_postgres_audit("postgresql://nobody@127.0.0.1:1/nowhere", timeout_s=2)
    with pytest.raises(Unavailable):
        await away.append(EVENT, [JoinRow(1, 0, 1, 5, 1)])
    with pytest.raises(Unavailable):
        await away.recover(EVENT, NOW_S)
    await away.aclose()


async def test_b20_the_join_of_a_known_person_can_be_found_in_the_audit(tmp_path: Path, room_keys: RoomKeys) -> None:
    """`room_joins` is the audit of queue positions: who got which position, when. Also in an anonymous room."""
    clock = ManualClock()
    path = tmp_path / "room.sqlite"
    room = WaitingRoom(MemoryRoomStore(clock), open_sqlite_audit(path), room_keys, clock=clock)
    await room.control.create(EVENT, RoomConfig())
    joins = [
        room.joins.join(EVENT),
        room.joins.join(EVENT, person="fan_ada"),
        room.joins.join(EVENT),
        room.joins.join(EVENT, person="fan_bob"),
    ]
    ada = (await asyncio.gather(*joins))[1]
    await room.aclose()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT first, at_us, people FROM room_joins WHERE event = ?", (EVENT,)).fetchall()
    found = {
        (person, first + index, at_us)
        for first, at_us, people in rows
        for index, person in enumerate(json.loads(people))
        if person
    }
    assert found == {("fan_ada", ada.position, clock()), ("fan_bob", 4, clock())}


async def test_b20_people_in_the_audit_of_an_anonymous_room_are_not_given_their_old_place(
    tmp_path: Path, room_keys: RoomKeys
) -> None:
    store = MemoryRoomStore(ManualClock())
    room = WaitingRoom(store, open_sqlite_audit(tmp_path / "room.sqlite"), room_keys, durable_joins=True)
    await room.control.create(EVENT, RoomConfig())
    assert (await room.joins.join(EVENT, person="fan_ada")).position == 1
    await store.forget(EVENT, 1)
    again = await room.joins.join(EVENT, person="fan_ada")
    assert (again.position, again.fresh) == (2, True)
    await room.aclose()


def test_a_file_that_is_no_database_leaves_no_connection_and_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    (tmp_path / "room.sqlite").write_text("this is a letter, not a database" * 100)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        open_sqlite_audit(tmp_path / "room.sqlite")
    left = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("room-audit")]
    assert left == []
    gc.collect()  # an unclosed connection would be a warning, and so an error
