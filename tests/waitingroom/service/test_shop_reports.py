"""Signed reports of a shop reach the room at any server, and whoever leads holds the p95 with them."""

import json
from pathlib import Path

import pytest

from frontrow.core.errors import InvalidInput, Unauthorised
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.audit.sqlite import open_sqlite_audit
from frontrow.waitingroom.credentials.report_keys import report_key, sign_report
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.errors import RoomUnknown
from frontrow.waitingroom.ports import RoomStore
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.waitingroom.stores.memory import MemoryRoomStore

EVENT = "aurora"
CONFIG = RoomConfig(capacity=100, window_size=100, max_p95_ms=400)


def server(store: RoomStore, keys: RoomKeys, clock: ManualClock, folder: Path) -> WaitingRoom:
    return WaitingRoom(store, open_sqlite_audit(folder / "audit.sqlite"), keys, clock=clock)


def signed(
    keys: RoomKeys, clock: ManualClock, p95_ms: int = 300, reporter: str = "shop-1", **more: object
) -> tuple[bytes, str]:
    figures = {"reporter": reporter, "number": clock() // 1000, "p95_ms": p95_ms, "requests": 100} | more
    body = json.dumps(figures).encode()
    return body, sign_report(report_key(keys.master_secret, EVENT, reporter), body)


async def test_a_report_at_one_server_moves_the_limit_of_the_leader_and_of_the_next(
    room_keys: RoomKeys, tmp_path: Path
) -> None:
    clock = ManualClock()
    store = MemoryRoomStore(clock)
    first, second = (server(store, room_keys, clock, tmp_path) for _ in range(2))
    for one in (first, second):
        await one.control.create(EVENT, CONFIG)
    await first.loops.tick(EVENT)
    for _ in range(40):
        clock.advance(5)
        await second.shop_reports.take(EVENT, second.shop_reports.read(EVENT, *signed(room_keys, clock, 4_000)))
        await first.loops.tick(EVENT)
    held = first.control.view(EVENT).inflow
    assert held is not None
    assert (held.limit, held.p95_ms, held.reporters) == (CONFIG.min_capacity, 4_000, 1)
    await first.loops.aclose()  # resigns
    clock.advance(1)
    for _ in range(2):
        clock.advance(1)
        await second.loops.tick(EVENT)
    view = second.control.view(EVENT)
    assert view.is_leader
    assert view.inflow is not None
    assert view.inflow.limit == held.limit, "the next leader goes on, also without a new report"
    switched_off = await second.control.configure(EVENT, max_p95_ms=0)
    assert switched_off.inflow is None
    await first.aclose()
    await second.aclose()


@pytest.fixture
def one(room_keys: RoomKeys, tmp_path: Path) -> tuple[WaitingRoom, ManualClock]:
    clock = ManualClock()
    return server(MemoryRoomStore(clock), room_keys, clock, tmp_path), clock


async def test_a_report_repeated_or_overtaken_is_ignored_and_counted(
    one: tuple[WaitingRoom, ManualClock], room_keys: RoomKeys
) -> None:
    room, clock = one
    await room.control.create(EVENT, CONFIG)
    report = room.shop_reports.read(EVENT, *signed(room_keys, clock))
    assert await room.shop_reports.take(EVENT, report)
    assert not await room.shop_reports.take(EVENT, report)
    assert (room.counts["shop_reports"], room.counts["shop_reports_ignored"]) == (1, 1)
    with pytest.raises(RoomUnknown):
        await room.shop_reports.take("elsewhere", report)
    await room.aclose()


async def test_a_report_with_a_wrong_signature_is_refused(
    one: tuple[WaitingRoom, ManualClock], room_keys: RoomKeys
) -> None:
    room, clock = one
    body, signature = signed(room_keys, clock)
    others = report_key(room_keys.master_secret, EVENT, "shop-2"), report_key(room_keys.master_secret, "b", "shop-1")
    forged = ["", "v1=", signature[:-1], "é", *(sign_report(key, body) for key in others)]
    for given in forged:
        with pytest.raises(Unauthorised):
            room.shop_reports.read(EVENT, body, given)
    with pytest.raises(Unauthorised):
        room.shop_reports.read(EVENT, body.replace(b"300", b"301"), signature)
    with pytest.raises(Unauthorised):
        room.shop_reports.read("borealis", body, signature)
    assert room.shop_reports.read(EVENT, body, signature).p95_ms == 300
    await room.aclose()


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"p95_ms": -1}, "p95_ms"),
        ({"p95_ms": 600_001}, "p95_ms"),
        ({"requests": -1}, "requests"),
        ({"errors": 101}, "errors"),
        ({"errors": -1}, "errors"),
        ({"number": 0}, "number"),
        ({"number": 10**18}, "number"),
        ({"p95_ms": 1.5}, "body"),
        ({"colour": "red"}, "body"),
    ],
    ids=str,
)
async def test_figures_that_cannot_be_are_refused_with_their_name(
    one: tuple[WaitingRoom, ManualClock], room_keys: RoomKeys, wrong: dict[str, object], param: str
) -> None:
    room, clock = one
    with pytest.raises(InvalidInput) as refused:
        room.shop_reports.read(EVENT, *signed(room_keys, clock, **wrong))
    assert refused.value.param == param
    await room.aclose()


async def test_a_body_that_is_no_report_is_refused(one: tuple[WaitingRoom, ManualClock]) -> None:
    room, _ = one
    for body in (b"", b"[]", b"\xff", b"{" * 2000, b'{"reporter":"' + b"x" * 2000 + b'"}'):
        with pytest.raises(InvalidInput):
            room.shop_reports.read(EVENT, body, "v1=")
    with pytest.raises(InvalidInput, match="a reporter is named by"):
        room.shop_reports.read(EVENT, b'{"reporter":"a b","number":1,"p95_ms":1,"requests":1}', "v1=")
    await room.aclose()
