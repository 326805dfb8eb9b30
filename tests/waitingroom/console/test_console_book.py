"""The console's book: one contract over SQLite and PostgreSQL, with several servers on it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.core.errors import Unavailable
from frontrow.waitingroom.console.model.errors import ConsoleConflict
from frontrow.waitingroom.console.model.figures import Figure
from frontrow.waitingroom.console.ports import ConsoleBook, DocumentKind, LogLine, Write
from frontrow.waitingroom.console.postgres_book import open_postgres_book
from frontrow.waitingroom.console.sqlite_book import open_sqlite_book
from tests.support.servers import free_port

CALLERS = 50


@pytest.fixture(params=["sqlite", "postgres"])
async def books(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[ConsoleBook, ConsoleBook]]:
    """The book as two servers have it."""
    opened: list[ConsoleBook]
    if request.param == "sqlite":
        opened = [open_sqlite_book(tmp_path / "console.sqlite") for _ in range(2)]
    else:
        url = request.getfixturevalue("postgres_url")
        opened = [open_postgres_book(url) for _ in range(2)]
    yield opened[0], opened[1]
    for book in opened:
        await book.aclose()


async def test_a_write_is_seen_by_the_other_server_with_its_revision(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    one, other = books
    assert await one.change_no() == 0
    await one.write([Write(DocumentKind.ROOM, "aurora", "a", 0)], LogLine(5, "ada", "create_room", "aurora", "x"))
    assert await other.change_no() == 1
    found = await other.get(DocumentKind.ROOM, "aurora")
    assert found is not None
    assert (found.text, found.revision) == ("a", 1)
    await other.write([Write(DocumentKind.ROOM, "aurora", "b", 1)])
    assert [entry.text for entry in await one.all(DocumentKind.ROOM)] == ["b"]
    await one.write([Write(DocumentKind.SESSION, "s", "x", 0)])
    assert await one.change_no() == 2, "a session is nothing that others follow"


async def test_of_fifty_callers_who_change_the_same_thing_one_does(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    await books[0].write([Write(DocumentKind.LINK, "one-time", "x", 0)])

    async def use(number: int) -> bool:
        writes = [Write(DocumentKind.LINK, "one-time", None, 1), Write(DocumentKind.OWNER, f"o{number}", "y", 0)]
        try:
            await books[number % 2].write(writes, LogLine(1, str(number), "join_console"))
        except ConsoleConflict:
            return False
        return True

    won = await asyncio.gather(*map(use, range(CALLERS)))
    assert won.count(True) == 1
    assert len(await books[0].all(DocumentKind.OWNER)) == 1, "who lost has written nothing at all"
    assert len(await books[0].log("", 0, 100)) == 1


async def test_what_somebody_else_has_changed_is_not_written_over(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    one, other = books
    await one.write([Write(DocumentKind.ROOM, "aurora", "a", 0)])
    await one.write([Write(DocumentKind.ROOM, "aurora", "b", 1)])
    for text in ("c", None):  # changed, or deleted, by a server that has seen the first revision
        for revision in (1, 3):
            with pytest.raises(ConsoleConflict):
                await other.write([Write(DocumentKind.ROOM, "aurora", text, revision)])
    with pytest.raises(ConsoleConflict):
        await other.write([Write(DocumentKind.ROOM, "aurora", "c", 0)])
    assert [(entry.text, entry.revision) for entry in await other.all(DocumentKind.ROOM)] == [("b", 2)]


async def test_the_log_is_one_sequence_over_both_servers(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    lines = [LogLine(n, "ada", "pause", "aurora" if n % 3 else "") for n in range(CALLERS)]
    await asyncio.gather(*(books[n % 2].write([], line) for n, line in enumerate(lines)))
    found = await books[0].log("", 0, 1_000)
    assert [line.number for line in found] == list(range(CALLERS, 0, -1))
    assert {line.room for line in await books[1].log("aurora", 0, 1_000)} == {"aurora"}
    assert [line.number for line in await books[1].log("", 3, 10)] == [2, 1]


async def test_figures_are_kept_once_and_as_long_as_wanted(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    for at_us in (10, 20, 30):
        for book in books:
            await book.add_figure("aurora", Figure(at_us, 1, 2, 3, 4, 5, "open"), at_us - 15)
    assert [one.at_us for one in await books[1].figures("aurora", 0, 10)] == [20, 30]
    last = await books[0].last_figure("aurora")
    assert last is not None
    assert (last.at_us, last.no_shows) == (30, 5)
    assert await books[0].last_figure("borealis") is None


async def test_pictures_and_what_has_ended(books: tuple[ConsoleBook, ConsoleBook]) -> None:
    await books[0].put_picture("h", b"\x00\xff")
    await books[1].put_picture("h", b"\x00\xff")
    assert await books[1].picture("h") == b"\x00\xff"
    assert await books[1].picture("x") is None
    await books[0].write(
        [Write(DocumentKind.SESSION, "old", "x", 0, 100), Write(DocumentKind.SESSION, "new", "x", 0, 101)]
    )
    await books[0].forget_ended(100)
    assert [entry.id for entry in await books[0].all(DocumentKind.SESSION)] == ["new"]


async def test_a_database_that_is_away_is_said_so() -> None:
    book = open_postgres_book(f"postgresql://x@127.0.0.1:{free_port()}/x", timeout_s=1)
    with pytest.raises(Unavailable):
        await book.change_no()
    with pytest.raises(Unavailable):
        await book.write([], LogLine(1, "a", "b"))
    await book.aclose()


def test_nobody_else_on_the_machine_may_read_the_file(tmp_path: Path) -> None:
    book = open_sqlite_book(tmp_path / "room" / "console.sqlite")
    assert (tmp_path / "room" / "console.sqlite").stat().st_mode & 0o077 == 0
    asyncio.run(book.aclose())
