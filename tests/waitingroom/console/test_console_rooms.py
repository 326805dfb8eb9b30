"""Rooms of the console over two servers, restarts, a store that is away, and versions side by side."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Refused
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.console.figures_sampler import SAMPLE_EVERY_US, FigureSampler
from frontrow.waitingroom.console.model.errors import NameTaken
from frontrow.waitingroom.console.model.page_design import PageDesign
from frontrow.waitingroom.console.model.protection import ProtectionRules, ShopRequest, Verdict
from frontrow.waitingroom.console.model.schedules import Schedule
from frontrow.waitingroom.console.ports import DocumentKind, Write
from frontrow.waitingroom.console.rooms import TRY_FOR_US
from frontrow.waitingroom.console.sqlite_book import open_sqlite_book
from frontrow.waitingroom.credentials.room_keys import RoomKeys
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.stores.redis import RedisRoomStore
from tests.support.eventually import eventually
from tests.support.servers import Valkey
from tests.waitingroom.console.console_rig import S, Server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_800_000_000 * S)


@pytest.fixture
async def server(tmp_path: Path, room_keys: RoomKeys, clock: ManualClock) -> AsyncIterator[Server]:
    one = Server(tmp_path, room_keys, clock)
    yield one
    await one.aclose()


async def test_a_room_is_made_changed_run_and_deleted_and_the_log_says_by_whom(server: Server) -> None:
    ada, rooms = await server.owner(), server.rooms
    await rooms.create(
        ada, "spring", title="Spring sale", shop_url="https://shop.example.org", settings={"capacity": 7}
    )
    assert server.opener.open == {"spring"}
    assert server.room.control.view("spring").state.config.capacity == 7
    view = await rooms.configure(ada, "spring", {"min_slide": 5, "active_windows": 2, "catch_up_us": 2 * S})
    assert (view.state.config.min_slide, view.state.config.active_windows) == (5, 2)
    await rooms.act(ada, "spring", "pause")
    await rooms.set_message(ada, "spring", "Back at eight.")
    assert (server.phase("spring"), server.room.control.view("spring").state.config.message) == (
        "paused",
        "Back at eight.",
    )
    await rooms.delete(ada, "spring")
    assert server.opener.open == set()
    with pytest.raises(NotFound):
        rooms.plan("spring")
    with pytest.raises(NameTaken):
        await rooms.create(ada, "spring")
    log = [(line.who, line.act, line.room) for line in await rooms.log_lines("spring", 0, 20)]
    acts = ["delete_room", "set_message", "pause", "change_settings", "create_room"]
    assert log == [("ada@example.org", act, "spring") for act in acts]


async def test_a_wrong_change_changes_nothing(server: Server) -> None:
    ada, rooms = await server.owner(), server.rooms
    await rooms.create(ada, "spring")
    before = (await rooms.log_lines("", 0, 1))[0].number
    for wrong in ({"window_size": 0}, {"draw_salt": 1}, {"capacity": -1}):
        with pytest.raises(InvalidInput):
            await rooms.configure(ada, "spring", wrong)
    with pytest.raises(InvalidInput):
        await rooms.act(ada, "spring", "aclose")
    with pytest.raises(InvalidInput):
        await rooms.create(ada, "a room")
    assert (await rooms.log_lines("", 0, 1))[0].number == before


async def test_a_schedule_opens_and_closes_to_the_quarter_second_and_once(server: Server) -> None:
    ada, rooms, clock = await server.owner(), server.rooms, server.clock
    await rooms.create(ada, "spring")
    now = clock()
    await rooms.set_schedule(ada, "spring", Schedule(now + 10 * S, now + 20 * S, now + 30 * S), "Europe/Vienna")
    assert server.phase("spring") == "closed", "it opens later: until then it is closed"
    for seconds, phase in ((9.999, "closed"), (10, "prequeue"), (19.999, "prequeue"), (20, "open"), (30, "closed")):
        clock.advance(us=int(now + seconds * S) - clock())
        await rooms.turn()
        assert server.phase("spring") == phase, seconds
    made = [line.act for line in await rooms.log_lines("spring", 0, 20) if line.who == "schedule"]
    assert made == ["step_close", "step_open", "step_prequeue"]
    await rooms.act(ada, "spring", "resume")
    await rooms.turn()
    assert server.phase("spring") == "open", "a step that was made is not made again"


async def test_a_room_paused_by_hand_stays_paused_when_its_opening_comes(server: Server) -> None:
    ada, rooms, clock = await server.owner(), server.rooms, server.clock
    await rooms.create(ada, "spring")
    await rooms.set_schedule(ada, "spring", Schedule(0, clock() + 10 * S), "UTC")
    await rooms.act(ada, "spring", "open")
    await rooms.act(ada, "spring", "pause")
    clock.advance(us=10 * S)
    await rooms.turn()
    assert server.phase("spring") == "paused"
    assert rooms.plan("spring").steps[0].why_not


async def test_no_draw_moves_places_that_were_given_out(server: Server) -> None:
    ada, rooms, clock = await server.owner(), server.rooms, server.clock
    await rooms.create(ada, "spring")
    joined = await server.room.joins.join("spring")
    with pytest.raises(Refused):
        await rooms.set_schedule(ada, "spring", Schedule(clock() + S, clock() + 2 * S), "UTC")
    await rooms.act(ada, "spring", "close")
    with pytest.raises(Refused):
        await server.room.control.hold_prequeue("spring")
    await rooms.act(ada, "spring", "resume")
    assert server.room.statuses.of(joined.place_jwt, "spring").position == joined.position


async def test_steps_that_fell_due_while_nobody_ran_are_made_at_the_start_in_order(
    tmp_path: Path, room_keys: RoomKeys, clock: ManualClock
) -> None:
    before = Server(tmp_path, room_keys, clock)
    ada = await before.owner()
    await before.rooms.create(ada, "spring", settings={"capacity": 3})
    now = clock()
    await before.rooms.set_schedule(ada, "spring", Schedule(0, now + 10 * S, now + 20 * S), "UTC")
    await before.aclose()
    clock.advance(us=15 * S)
    after = Server(tmp_path, room_keys, clock)
    await after.rooms.turn()
    assert (after.phase("spring"), after.opener.open) == ("open", {"spring"})
    assert after.room.control.view("spring").state.config.capacity == 3
    await after.aclose()
    clock.advance(us=15 * S)
    last = Server(tmp_path, room_keys, clock)
    await last.rooms.turn()
    assert last.phase("spring") == "closed"
    await last.aclose()


@pytest.fixture
async def two(tmp_path: Path, room_keys: RoomKeys, redis_url: str) -> AsyncIterator[tuple[Server, Server]]:
    """Two servers with one Redis and one book."""
    clock = ManualClock(1_800_000_000 * S)
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    book = tmp_path / "console.sqlite"
    servers = [
        Server(folder, room_keys, clock, RedisRoomStore(redis_url, clock=clock), open_sqlite_book(book))
        for folder in folders
    ]
    yield servers[0], servers[1]
    for server in servers:
        await server.aclose()


async def test_what_one_server_changes_the_other_serves(two: tuple[Server, Server]) -> None:
    one, other = two
    ada = await one.owner()
    await one.rooms.create(ada, "spring", settings={"capacity": 4})
    await other.rooms.turn()
    assert other.opener.open == {"spring"}
    assert other.room.control.view("spring").state.config.capacity == 4
    await one.rooms.act(ada, "spring", "pause")
    await other.rooms.turn()
    assert other.phase("spring") == "paused", "also where nobody has asked about the room"
    await asyncio.gather(
        one.rooms.set_rules(ada, "spring", ProtectionRules(paths=("/buy*",))),
        other.rooms.set_page(ada, "spring", PageDesign("#a3123f"), ""),
    )
    for server in two:
        await server.rooms.turn()
        plan = server.rooms.plan("spring")
        assert (plan.rules.paths, plan.design.colour) == (("/buy*",), "#a3123f"), "two changes at once are both kept"
    assert other.rooms.verdict("spring", ShopRequest("GET", "", "/news")) is Verdict.OPEN
    await other.rooms.delete(ada, "spring")
    await one.rooms.turn()
    assert one.opener.open == set()


async def test_of_two_servers_one_makes_a_step_and_if_it_dies_the_other_does(two: tuple[Server, Server]) -> None:
    one, other = two
    ada = await one.owner()
    await one.rooms.create(ada, "spring")
    await one.rooms.set_schedule(ada, "spring", Schedule(0, one.clock() + 10 * S), "UTC")
    await other.rooms.turn()
    one.clock.advance(us=10 * S)
    dies = one.room.control.open

    class Killed(BaseException):
        """The process ends in the middle."""

    async def die(*_: object) -> object:
        raise Killed

    one.room.control.open = die  # type: ignore[method-assign,assignment]
    with pytest.raises(Killed):
        await one.rooms.turn()
    await other.rooms.turn()
    assert other.phase("spring") == "closed", "the first one may still be at it"
    one.clock.advance(us=TRY_FOR_US)
    await asyncio.gather(*(server.rooms.turn() for server in (other, other)))
    assert other.phase("spring") == "open"
    one.room.control.open = dies  # type: ignore[method-assign]
    await one.rooms.turn()
    assert one.phase("spring") == "open"
    made = [line for line in await one.rooms.log_lines("spring", 0, 20) if line.act == "step_open"]
    assert len(made) == 1


async def test_a_store_that_is_away_delays_a_step_and_loses_none(
    tmp_path: Path, room_keys: RoomKeys, own_valkey: Valkey
) -> None:
    clock = ManualClock(1_800_000_000 * S)
    server = Server(tmp_path, room_keys, clock, RedisRoomStore(own_valkey.url, clock=clock, timeout_s=2))
    ada = await server.owner()
    await server.rooms.create(ada, "spring")
    await server.rooms.set_schedule(ada, "spring", Schedule(0, clock() + 10 * S), "UTC")
    clock.advance(us=10 * S)
    own_valkey.pause()
    with pytest.raises(FrontrowError):
        await server.rooms.make_due_steps()
    assert server.phase("spring") == "closed"
    own_valkey.resume()

    async def is_open() -> bool:
        await server.rooms.turn()
        return server.phase("spring") == "open"

    await eventually(is_open)
    await server.aclose()


async def test_an_older_server_serves_a_newer_room_as_it_is_and_changes_nothing(server: Server) -> None:
    ada, rooms = await server.owner(), server.rooms
    plan = await rooms.create(ada, "spring")
    newer = plan.to_text().replace('"v":1', '"v":2')
    entry = await server.book.get(DocumentKind.ROOM, "spring")
    assert entry is not None
    await server.book.write([Write(DocumentKind.ROOM, "spring", newer, entry.revision)])
    await rooms.turn()
    assert server.opener.open == {"spring"}
    with pytest.raises(FrontrowError) as refused:
        await rooms.set_rules(ada, "spring", ProtectionRules(paths=("/a",)))
    assert refused.value.code == "newer_version"
    left = await server.book.get(DocumentKind.ROOM, "spring")
    assert left is not None
    assert left.text == newer


async def test_rooms_of_the_settings_are_taken_over_and_a_deleted_one_stays_deleted(server: Server) -> None:
    await server.rooms.adopt(["aurora", "borealis"])
    await server.rooms.turn()
    ada = await server.owner()
    await server.rooms.delete(ada, "aurora")
    await server.rooms.adopt(["aurora", "borealis"])
    assert await server.rooms.not_deleted(["aurora", "borealis"]) == ("borealis",)
    assert server.opener.open == {"borealis"}


async def test_figures_count_who_came_and_who_did_not(server: Server) -> None:
    ada, clock, room = await server.owner(), server.clock, server.room
    await server.rooms.create(ada, "spring", settings={"window_size": 2, "grace_us": 5 * S})
    sampler = FigureSampler(server.book, server.rooms, room)
    places = [(await room.joins.join("spring")).place_jwt for _ in range(4)]
    for second in range(20):
        clock.advance(us=S)
        await room.loops.tick("spring")
        if second == 1:
            await room.visits.claim(places[0], "spring", "key-of-the-first")
        await sampler.look("spring")
    clock.advance(us=SAMPLE_EVERY_US)
    await room.loops.tick("spring")
    await sampler.look("spring")
    figures = await server.book.figures("spring", 0, 100)
    last = figures[-1]
    assert (last.joined, last.admitted, last.active, last.no_shows, last.phase) == (4, 4, 1, 3, Phase.OPEN.value)
    assert len({one.at_us for one in figures}) == len(figures)
    again = FigureSampler(server.book, server.rooms, room)
    await again.look("spring")
    assert len(await server.book.figures("spring", 0, 100)) == len(figures), "a quiet room writes nothing"
