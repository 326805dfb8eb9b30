"""Moves past events out of the ledger into files, and back (docs/scaling.md, "Large ledgers").

A file holds one event: a line with what it is, one line per step, and a last line with a checksum. A step is at most
STEP bookings with all their rows, or STEP rows of another table. The file is complete and on disk before anything is
deleted. Each step is deleted, or put back, in one transaction. Both may be repeated after an interruption: steps that
are done already are skipped. A step whose rows have changed since the file was written is refused.

Money decides whether an event may go: everything must be settled. Invoices, the event itself and the audit log stay.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.ledger_users import shared_ledger
from frontrow.boxoffice.events.model.events import Event, EventStatus, over_at_us
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, InvalidInput, NotFound, Refused
from frontrow.shared.postgres_url import check_direct, connect

FORMAT: Final = "frontrow archive 1"
STEP: Final = 200
LEAST_AGE_DAYS: Final = 30  # the provider may still tell us something about younger payments
AGAIN: Final = "restore it, move the file away and archive the event again"
OVER: Final = (EventStatus.COMPLETED, EventStatus.CANCELLED)
# tables whose rows go with their booking, and tables of the event that go by themselves; each with its key. The event
# stands in keys of big tables, so that a partitioned ledger looks into one partition.
OF_BOOKINGS: Final = {
    "booking_seats": ("event_id", "booking_id", "seat_index"),
    "booking_uses": ("booking_id", "counter"),
    "payments": ("id",),
    "refunds": ("id",),
    "offers": ("id",),
    "returns": ("id",),
    "ticket_transfers": ("id",),
    "add_on_redemptions": ("id",),
}
OF_EVENT: Final = {"tickets": ("event_id", "id"), "scans": ("event_id", "id"), "waitlist": ("id",)}
KEYS: Final = {"bookings": ("event_id", "id"), **OF_BOOKINGS, **OF_EVENT}
UNNAMED: Final = ("payments", "refunds", "booking_uses")  # older rows have an empty event
_PAYMENTS_OF: Final = "FROM payments AS p JOIN bookings AS b ON b.id = p.booking_id WHERE b.event_id = $1"
_REFUNDS_OF: Final = "FROM refunds AS f JOIN bookings AS b ON b.id = f.booking_id WHERE b.event_id = $1"
_NEVER_CAPTURED: Final = (
    "NOT EXISTS (SELECT 1 FROM payments AS o WHERE o.booking_id = b.id AND o.payment_state = 'captured')"
)
UNSETTLED: Final = {
    "holds that are not over": "FROM bookings WHERE event_id = $1 AND state IN ('held', 'paying')",
    "payments under way": f"{_PAYMENTS_OF} AND (p.retry_at_us > 0 OR p.payment_state NOT IN "
    "('captured', 'voided', 'declined', 'lapsed'))",
    "bookings that were let in and never paid": f"{_PAYMENTS_OF} AND p.payment_state = 'lapsed' "
    f"AND b.state = 'confirmed' AND {_NEVER_CAPTURED}",
    "refunds that are not paid": f"{_REFUNDS_OF} AND (f.retry_at_us > 0 OR f.refund_state IN "
    "('asked', 'pending', 'failed'))",
    "returned tickets that are still owed": "FROM returns WHERE event_id = $1 "
    "AND return_state IN ('giving', 'listed', 'resold')",
    "open offers of the waitlist": "FROM offers WHERE event_id = $1 AND offer_state = 'open'",
    "a cancellation that still runs": "FROM cancellations WHERE event_id = $1 AND job_state = 'running'",
    "facts that were not published": "FROM outbox WHERE event_id = $1 AND published_at_us IS NULL",
}

TableRows = dict[str, list[dict[str, Any]]]  # by table


class ArchiveFile(msgspec.Struct, frozen=True):
    """A file of one event: how many rows of each table it holds, and its checksum."""

    event_id: str
    path: Path
    rows: dict[str, int]
    sha256: str


class _Database(Protocol):
    """One connection. Parameters are $1, $2 … in both dialects; a list of texts is one of them, as JSON."""

    listed: str  # how a statement reads the texts of $1

    async def fetch(self, sql: str, *given: Any) -> list[dict[str, Any]]: ...

    async def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def transaction(self) -> contextlib.AbstractAsyncContextManager[Any]: ...


class _Sqlite:
    listed = "(SELECT value FROM json_each($1))"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, sql: str, *given: Any) -> list[dict[str, Any]]:
        found = self._connection.execute(sql, _numbered(given))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]

    async def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(sql, map(_numbered, rows))

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


class _Postgres:
    listed = "(SELECT jsonb_array_elements_text($1::text::jsonb))"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch(self, sql: str, *given: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._connection.fetch(sql, *given)]

    async def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        await self._connection.executemany(sql, rows)

    def transaction(self) -> contextlib.AbstractAsyncContextManager[Any]:
        transaction: contextlib.AbstractAsyncContextManager[Any] = self._connection.transaction()
        return transaction


def _numbered(given: Sequence[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(given, start=1)}


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[_Database]:
    check_direct(url, "an archive")
    if is_postgres(url):
        connection = await connect(url)
        try:
            yield _Postgres(connection)
        finally:
            await connection.close()
        return
    with (
        shared_ledger(sqlite_path(url)),
        contextlib.closing(sqlite3.connect(sqlite_path(url), timeout=30, isolation_level=None)) as file,
    ):
        yield _Sqlite(file)


async def find_past_events(url: str, before_us: int, now_us: int) -> list[str]:
    """The events that were over before `before_us` and still have bookings or a waitlist in the ledger."""
    _check_age(before_us, now_us)
    async with _connected(url) as database:
        rows = await database.fetch(
            "SELECT e.document FROM events AS e WHERE e.starts_at_us < $1 "
            "AND e.event_state IN ('completed', 'cancelled') "
            "AND (EXISTS (SELECT 1 FROM bookings AS b WHERE b.event_id = e.id) "
            "OR EXISTS (SELECT 1 FROM waitlist AS w WHERE w.event_id = e.id)) ORDER BY e.starts_at_us, e.id",
            before_us,
        )
    events = [msgspec.json.decode(row["document"], type=Event) for row in rows]
    return [event.id for event in events if over_at_us(event) < before_us]


async def archive_event(url: str, event_id: str, folder: Path, now_us: int) -> ArchiveFile:
    """Write the event's rows to a file in `folder`, then delete them. Refuses while anything is unsettled."""
    async with _connected(url) as database:
        await _check_settled(database, event_id, now_us)
        target = folder / f"{event_id}.jsonl"
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240  # a command, not a server
            await _write(database, event_id, target, now_us)
        archive = read_archive(target)
        for step in _steps(target):
            async with database.transaction():
                await _delete(database, step, target)
        for table in ("bookings", *OF_EVENT):
            if await _page(database, table, event_id, ""):
                raise Refused(f"{table} of {event_id} were added since {target} was written; {AGAIN}")
    return archive


async def restore_event(url: str, path: Path) -> ArchiveFile:
    """Put the rows of a file back. Rows that are there already stay as they are."""
    archive = read_archive(path)
    async with _connected(url) as database:
        if not await database.fetch("SELECT 1 FROM events WHERE id = $1", archive.event_id):
            raise ConfigError(f"this ledger has no event {archive.event_id}: {path} belongs to another", param="ledger")
        for step in _steps(path):
            async with database.transaction():
                for table, rows in step.items():
                    await _insert(database, table, _name_event(table, rows, archive.event_id))
    return archive


def read_archive(path: Path) -> ArchiveFile:
    """Check a file from beginning to end: its form, its length and its checksum."""
    if not path.exists():
        raise ConfigError(f"there is no archive {path}")
    seen, counts, last, head = hashlib.sha256(), dict.fromkeys(KEYS, 0), "", ""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if last:
                seen.update(last.encode())
                if not head:
                    head = last
                else:
                    for table, rows in json.loads(last).items():
                        counts[table] = counts.get(table, 0) + len(rows)
            last = line
    try:
        about, end = json.loads(head), json.loads(last)
        whole = about["format"] == FORMAT and end["sha256"] == seen.hexdigest() and end["rows"] == counts
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path} is no archive of an event, or not a whole one") from None
    if not whole:
        raise ConfigError(f"{path} was changed or cut off: its checksum does not fit")
    return ArchiveFile(about["event_id"], path, counts, end["sha256"])


def _steps(path: Path) -> Iterator[TableRows]:
    """The steps of a file that `read_archive` has found whole."""
    with path.open(encoding="utf-8") as file:
        next(file)
        before = next(file)
        for line in file:  # all but the last line
            yield json.loads(before)
            before = line


def _check_age(before_us: int, now_us: int) -> None:
    if before_us > now_us - LEAST_AGE_DAYS * 86_400 * US_PER_S:
        raise InvalidInput(f"only events that were over {LEAST_AGE_DAYS} days ago or earlier are archived")


async def _check_settled(database: _Database, event_id: str, now_us: int) -> None:
    rows = await database.fetch("SELECT document FROM events WHERE id = $1", event_id)
    if not rows:
        raise NotFound(f"there is no event {event_id[:60]!r}", event=event_id[:60])
    event = msgspec.json.decode(rows[0]["document"], type=Event)
    if event.status not in OVER:
        raise Refused(f"{event_id} is {event.status.value}; only completed and cancelled events are archived")
    _check_age(over_at_us(event), now_us)
    found = [what for what, where in UNSETTLED.items() if await database.fetch(f"SELECT 1 {where} LIMIT 1", event_id)]
    if found:
        raise Refused(f"{event_id} stays, because it has {', '.join(found)}")


async def _write(database: _Database, event_id: str, target: Path, now_us: int) -> None:
    """Write the file under another name first: under its own name it is always whole."""
    part, seen, counts = target.with_name(target.name + ".part"), hashlib.sha256(), dict.fromkeys(KEYS, 0)
    with part.open("w", encoding="utf-8") as file:
        part.chmod(0o600)

        def add(line: dict[str, Any]) -> None:
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
            seen.update(text.encode())
            file.write(text)

        add({"format": FORMAT, "event_id": event_id, "archived_at_us": now_us})
        async for step in _read(database, event_id):
            add(step)
            for table, rows in step.items():
                counts[table] += len(rows)
        file.write(json.dumps({"sha256": seen.hexdigest(), "rows": counts}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


async def _read(database: _Database, event_id: str) -> AsyncIterator[TableRows]:
    """The event's rows, step by step."""
    after = ""
    while rows := await _page(database, "bookings", event_id, after):
        after = rows[-1]["id"]
        yield await _with_dependants(database, rows)
    for table in OF_EVENT:
        after = ""
        while rows := await _page(database, table, event_id, after):
            after = rows[-1]["id"]
            yield {table: rows}


async def _page(database: _Database, table: str, event_id: str, after: str) -> list[dict[str, Any]]:
    return await database.fetch(
        f"SELECT * FROM {table} WHERE event_id = $1 AND id > $2 ORDER BY id LIMIT {STEP}",  # noqa: S608
        event_id,
        after,
    )


async def _with_dependants(database: _Database, bookings: list[dict[str, Any]]) -> TableRows:
    ids = json.dumps([row["id"] for row in bookings])
    step: TableRows = {"bookings": bookings}
    for table, key in OF_BOOKINGS.items():
        order = ", ".join(key)
        sql = f"SELECT * FROM {table} WHERE booking_id IN {database.listed} ORDER BY {order}"  # noqa: S608
        rows = await database.fetch(sql, ids)
        if rows:
            step[table] = _name_event(table, rows, bookings[0]["event_id"])
    return step


def _name_event(table: str, rows: list[dict[str, Any]], event_id: str) -> list[dict[str, Any]]:
    """The rows, each with its event: files and rows from before 0038 leave it out of some tables."""
    return [row | {"event_id": event_id} for row in rows] if table in UNNAMED else rows


async def _delete(database: _Database, step: TableRows, path: Path) -> None:
    """Delete the rows of one step, if they are still as the file has them. Without any, the step was done before."""
    (first, *_) = step
    ids = json.dumps([row["id"] for row in step[first]])
    lock = " FOR UPDATE" if isinstance(database, _Postgres) else ""
    sql = f"SELECT * FROM {first} WHERE id IN {database.listed} ORDER BY id{lock}"  # noqa: S608
    there = await database.fetch(sql, ids)
    if not there:
        return
    now = await _with_dependants(database, there) if first == "bookings" else {first: there}
    if now != step:
        raise Refused(f"rows of {path.stem} have changed since {path} was written; {AGAIN}")
    for table, rows in step.items():
        where = " AND ".join(f"{column} = ${number}" for number, column in enumerate(KEYS[table], start=1))
        keys = [tuple(row[column] for column in KEYS[table]) for row in rows]
        await database.run_many(f"DELETE FROM {table} WHERE {where}", keys)  # noqa: S608


async def _insert(database: _Database, table: str, rows: list[dict[str, Any]]) -> None:
    if table not in KEYS or not rows:
        return
    columns = list(rows[0])
    marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
    await database.run_many(sql, [tuple(row[column] for column in columns) for row in rows])
