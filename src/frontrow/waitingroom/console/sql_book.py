"""The console's book in SQL: documents with a revision each, the log, figures, pictures. SQLite and PostgreSQL.

The statements are in the common subset. A batch of statements is one transaction; a statement that must change a row
and changes none undoes the batch. One counter row makes writes of followed kinds one after the other, so a server that
has read a number has seen everything below it.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from frontrow.waitingroom.console.model.errors import ConsoleConflict
from frontrow.waitingroom.console.model.figures import Figure
from frontrow.waitingroom.console.ports import FOLLOWED, DocumentKind, Entry, LogLine, Write

MOST_DOCUMENTS: Final = 1_000
MOST_LOG_LINES: Final = 100_000
FOREVER_US: Final = 2**62

SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS console_documents (kind TEXT NOT NULL, id TEXT NOT NULL, revision BIGINT NOT NULL,"
    " ends_at_us BIGINT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, id))",
    "CREATE TABLE IF NOT EXISTS console_changes (one BIGINT PRIMARY KEY, number BIGINT NOT NULL)",
    "INSERT INTO console_changes VALUES (1, 0) ON CONFLICT DO NOTHING",
    "CREATE TABLE IF NOT EXISTS console_log (number BIGINT PRIMARY KEY, at_us BIGINT NOT NULL, who TEXT NOT NULL,"
    " act TEXT NOT NULL, room TEXT NOT NULL, detail TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS console_log_of_room ON console_log (room, number)",
    "CREATE TABLE IF NOT EXISTS console_figures (room TEXT NOT NULL, at_us BIGINT NOT NULL, waiting BIGINT NOT NULL,"
    " joined BIGINT NOT NULL, admitted BIGINT NOT NULL, active BIGINT NOT NULL, no_shows BIGINT NOT NULL,"
    " phase TEXT NOT NULL, PRIMARY KEY (room, at_us))",
    "CREATE TABLE IF NOT EXISTS console_notices (id TEXT PRIMARY KEY, event TEXT NOT NULL, lane BIGINT NOT NULL,"
    " epoch BIGINT NOT NULL, arrival BIGINT NOT NULL, kind TEXT NOT NULL, address TEXT NOT NULL,"
    " address_hash TEXT NOT NULL, language TEXT NOT NULL, asked_at_us BIGINT NOT NULL, tries BIGINT NOT NULL,"
    " next_at_us BIGINT NOT NULL, state TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS console_notices_of_room ON console_notices (event, state, arrival)",
    "CREATE TABLE IF NOT EXISTS console_pictures (hash TEXT PRIMARY KEY, body TEXT NOT NULL)",
)

GET = "SELECT id, revision, text FROM console_documents WHERE kind = ? AND id = ?"
ALL = "SELECT id, revision, text FROM console_documents WHERE kind = ? ORDER BY id LIMIT ?"
ADD = "INSERT INTO console_documents VALUES (?, ?, 1, ?, ?) ON CONFLICT DO NOTHING"
CHANGE = (
    "UPDATE console_documents SET revision = revision + 1, ends_at_us = ?, text = ?"
    " WHERE kind = ? AND id = ? AND revision = ?"
)
DELETE = "DELETE FROM console_documents WHERE kind = ? AND id = ? AND revision = ?"
BUMP = "UPDATE console_changes SET number = number + 1 WHERE one = 1"
CHANGE_NO = "SELECT number FROM console_changes WHERE one = 1"
ADD_LOG = (
    "INSERT INTO console_log SELECT COALESCE(MAX(number), 0) + 1,"
    " CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT) FROM console_log"
)
LOG = "SELECT at_us, who, act, room, detail, number FROM console_log WHERE number < ? ORDER BY number DESC LIMIT ?"
LOG_OF = (
    "SELECT at_us, who, act, room, detail, number FROM console_log WHERE number < ? AND room = ?"
    " ORDER BY number DESC LIMIT ?"
)
PUT_FIGURE = "INSERT INTO console_figures VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
DROP_FIGURES = "DELETE FROM console_figures WHERE room = ? AND at_us < ?"
_FIGURE = "SELECT at_us, waiting, joined, admitted, active, no_shows, phase FROM console_figures WHERE room = ?"
FIGURES = f"{_FIGURE} AND at_us >= ? ORDER BY at_us LIMIT ?"
LAST_FIGURE = f"{_FIGURE} ORDER BY at_us DESC LIMIT 1"
PUT_PICTURE = "INSERT INTO console_pictures VALUES (?, ?) ON CONFLICT DO NOTHING"
PICTURE = "SELECT body FROM console_pictures WHERE hash = ?"
DROP_ENDED = "DELETE FROM console_documents WHERE ends_at_us <= ?"
DROP_LOG = "DELETE FROM console_log WHERE number <= (SELECT MAX(number) FROM console_log) - ?"


class BookStatement(NamedTuple):
    """One statement with its values; `must` change a row."""

    sql: str
    values: tuple[Any, ...] = ()
    must: bool = False


class ConsoleDatabase(Protocol):
    """Runs statements. Values are marked with `?`."""

    async def run(self, statements: Sequence[BookStatement]) -> bool:
        """Run all in one transaction; False, and nothing done, if one that must change a row changes none. Raises
        Unavailable."""
        ...

    async def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a SELECT. Raises Unavailable."""
        ...

    async def aclose(self) -> None: ...


class SqlConsoleBook:
    """Implements `ConsoleBook` over any `ConsoleDatabase`."""

    def __init__(self, database: ConsoleDatabase) -> None:
        self._database = database

    async def get(self, kind: DocumentKind, id: str) -> Entry | None:
        rows = await self._database.query(GET, kind.value, id)
        return Entry(*rows[0]) if rows else None

    async def all(self, kind: DocumentKind) -> list[Entry]:
        return [Entry(*row) for row in await self._database.query(ALL, kind.value, MOST_DOCUMENTS)]

    async def write(self, writes: Sequence[Write], log: LogLine | None = None) -> None:
        statements = [_statement(one) for one in writes]
        if log is not None or any(one.kind in FOLLOWED for one in writes):
            statements.insert(0, BookStatement(BUMP, (), True))  # first: it makes the numbers of the log one sequence
        if log is not None:
            statements.append(BookStatement(ADD_LOG, (log.at_us, log.who, log.act, log.room, log.detail)))
        if not await self._database.run(statements):
            raise ConsoleConflict("somebody else has changed this meanwhile; load it again")

    async def change_no(self) -> int:
        return int((await self._database.query(CHANGE_NO))[0][0])

    async def log(self, room: str, before: int, limit: int) -> list[LogLine]:
        below = before or FOREVER_US
        if room:
            rows = await self._database.query(LOG_OF, below, room, limit)
        else:
            rows = await self._database.query(LOG, below, limit)
        return [LogLine(*row) for row in rows]

    async def add_figure(self, room: str, figure: Figure, forget_before_us: int) -> None:
        one = figure
        values = (room, one.at_us, one.waiting, one.joined, one.admitted, one.active, one.no_shows, one.phase)
        await self._database.run(
            [BookStatement(PUT_FIGURE, values), BookStatement(DROP_FIGURES, (room, forget_before_us))]
        )

    async def figures(self, room: str, after_us: int, limit: int) -> list[Figure]:
        return [Figure(*row) for row in await self._database.query(FIGURES, room, after_us, limit)]

    async def last_figure(self, room: str) -> Figure | None:
        rows = await self._database.query(LAST_FIGURE, room)
        return Figure(*rows[0]) if rows else None

    async def put_picture(self, hash: str, body: bytes) -> None:
        await self._database.run([BookStatement(PUT_PICTURE, (hash, body.hex()))])

    async def picture(self, hash: str) -> bytes | None:
        rows = await self._database.query(PICTURE, hash)
        return bytes.fromhex(rows[0][0]) if rows else None

    async def forget_ended(self, now_us: int) -> None:
        await self._database.run([BookStatement(DROP_ENDED, (now_us,)), BookStatement(DROP_LOG, (MOST_LOG_LINES,))])

    async def aclose(self) -> None:
        await self._database.aclose()


def _statement(one: Write) -> BookStatement:
    if one.text is None:
        return BookStatement(DELETE, (one.kind.value, one.id, one.revision), True)
    if not one.revision:
        return BookStatement(ADD, (one.kind.value, one.id, one.ends_at_us, one.text), True)
    return BookStatement(CHANGE, (one.ends_at_us, one.text, one.kind.value, one.id, one.revision), True)
