"""Notices shortly before the turn: once, only to those who asked, over two servers, retried within bounds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.console.postgres_book import PostgresConsole
from frontrow.waitingroom.console.sql_book import ConsoleDatabase
from frontrow.waitingroom.console.sqlite_book import SqliteConsole
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.window import Window
from frontrow.waitingroom.notices.model import (
    CLAIM_US,
    MOST_TRIES,
    Nearness,
    TurnNotice,
    TurnNoticeKind,
    checked_address,
    nearness,
)
from frontrow.waitingroom.notices.sql_notices import SqlNoticeBook
from frontrow.waitingroom.notices.turn_notices import Sent, TurnNotices
from tests.waitingroom.console.console_rig import S, Server

EMAIL = TurnNoticeKind.EMAIL


class Post:
    """Implements `NoticeSender`: keeps what it was given."""

    def __init__(self) -> None:
        self.sent: list[TurnNotice] = []
        self.answer = Sent(True)

    async def send(self, notice: TurnNotice) -> Sent:
        await asyncio.sleep(0)
        self.sent.append(notice)
        return self.answer


def test_a_turn_is_near_five_minutes_before_at_the_rate_of_now() -> None:
    def near(position: int, rate_milli: int = 1_000, phase: Phase = Phase.OPEN) -> Nearness:
        return nearness(phase, Window(10, 100), position, rate_milli)

    assert [near(10), near(11), near(100)] == [Nearness.OVER, Nearness.NEAR, Nearness.NEAR]
    assert [near(400), near(401)] == [Nearness.NEAR, Nearness.FAR]
    assert near(101, rate_milli=0) is Nearness.FAR, "nobody knows when"
    for phase in (Phase.PAUSED, Phase.QUEUE_ALL, Phase.PREQUEUE, Phase.CLOSED):
        assert near(50, phase=phase) is Nearness.FAR


@pytest.mark.parametrize(
    ("kind", "text", "address"),
    [
        (EMAIL, " Ada@Example.org ", "ada@example.org"),
        (EMAIL, "a@b\nbcc: eve@example.org", ""),
        (EMAIL, "ada", ""),
        (TurnNoticeKind.SMS, "+43 (660) 123-4567", "+436601234567"),
        (TurnNoticeKind.SMS, "0660 1234567", ""),
        (TurnNoticeKind.SMS, "+43660x1234567", ""),
    ],
)
def test_an_address_is_one_or_is_refused(kind: TurnNoticeKind, text: str, address: str) -> None:
    if address:
        assert checked_address(kind, text) == address
        return
    with pytest.raises(InvalidInput):
        checked_address(kind, text)


@pytest.fixture(params=["sqlite", "postgres"])
async def databases(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[ConsoleDatabase]]:
    """The database as two servers have it."""
    opened: list[ConsoleDatabase]
    if request.param == "sqlite":
        opened = [SqliteConsole(tmp_path / "notices.sqlite") for _ in range(2)]
    else:
        url = request.getfixturevalue("postgres_url")
        opened = [PostgresConsole(url, 4.0) for _ in range(2)]
    yield opened
    for one in opened:
        await one.aclose()


@pytest.fixture
async def server(tmp_path: Path, room_keys: RoomKeys) -> AsyncIterator[Server]:
    one = Server(tmp_path, room_keys, ManualClock(1_800_000_000 * S))
    await one.room.control.create("aurora", RoomConfig(capacity=10, window_size=1))
    await one.room.control.pause("aurora")
    yield one
    await one.aclose()


async def test_each_who_asked_is_told_once_by_whichever_server(
    server: Server, databases: list[ConsoleDatabase]
) -> None:
    post, room = Post(), server.room
    both = [TurnNotices(SqlNoticeBook(one), room, {EMAIL: post}, server.clock) for one in databases]
    places = [(await room.joins.join("aurora")).place_jwt for _ in range(3)]
    for number, place in enumerate(places[:2]):
        await both[number].ask(place, "aurora", EMAIL, f"a{number}@example.org", "de")
    await both[0].ask(places[0], "aurora", EMAIL, "changed@example.org", "fr")
    assert await both[0].send_due("aurora") == 0, "a paused room calls nobody"
    await room.control.resume("aurora")
    for _ in range(4):
        server.clock.advance(us=S)
        await room.loops.tick("aurora")
    await asyncio.gather(*(one.send_due("aurora") for _ in range(10) for one in both))
    told = sorted((one.address, one.language) for one in post.sent)
    assert told == [("a1@example.org", "de"), ("changed@example.org", "fr")]
    rows = await databases[0].query("SELECT address, state FROM console_notices ORDER BY arrival")
    assert rows == [("", "sent"), ("", "sent")], "an address is erased once it is of no use"


async def test_what_fails_is_tried_again_within_bounds_and_after_a_dead_server(
    server: Server, databases: list[ConsoleDatabase]
) -> None:
    post, room = Post(), server.room
    book = SqlNoticeBook(databases[0])
    notices = TurnNotices(book, room, {EMAIL: post}, server.clock)
    await notices.ask((await room.joins.join("aurora")).place_jwt, "aurora", EMAIL, "ada@example.org", "en")
    await room.control.resume("aurora")
    await room.control.configure("aurora", grace_us=3_600 * S)
    server.clock.advance(us=S)
    await room.loops.tick("aurora")
    (taken,) = await book.waiting("aurora", server.clock(), 10)
    assert await book.claim(taken, server.clock() + CLAIM_US), "a server takes it, and dies"
    assert await notices.send_due("aurora") == 0
    post.answer = Sent(False, final=False)
    for _ in range(20):
        server.clock.advance(us=CLAIM_US)
        await notices.send_due("aurora")
    assert len(post.sent) == MOST_TRIES - 1
    assert await databases[0].query("SELECT state FROM console_notices") == [("failed",)]


async def test_who_asks_for_another_or_too_often_is_refused(server: Server, databases: list[ConsoleDatabase]) -> None:
    room = server.room
    notices = TurnNotices(SqlNoticeBook(databases[0]), room, {EMAIL: Post()}, server.clock)
    places = [(await room.joins.join("aurora")).place_jwt for _ in range(5)]
    for forged in (places[0][:-3] + "abc", "nonsense"):
        with pytest.raises(FrontrowError):
            await notices.ask(forged, "aurora", EMAIL, "ada@example.org", "en")
    with pytest.raises(FrontrowError):
        await notices.ask(places[0], "aurora", TurnNoticeKind.SMS, "+436601234567", "en")
    for place in places[:3]:
        await notices.ask(place, "aurora", EMAIL, "ada@example.org", "en")
    with pytest.raises(FrontrowError, match="too often"):
        await notices.ask(places[3], "aurora", EMAIL, "ada@example.org", "en")
    await notices.withdraw(places[0], "aurora")
    await notices.ask(places[3], "aurora", EMAIL, "ada@example.org", "en")
