"""Partitions the big tables of the sale by event, on PostgreSQL (ADR 0169).

Each of `TABLES` becomes one table of N hash partitions. Every unique index gets the event as its first column, because
PostgreSQL can guarantee uniqueness only inside a partition. What that no longer says follows from one small table:
`booking_events` has each booking's id with its event, and its primary key is what makes ids of bookings unique in the
whole ledger. Triggers of `bookings` keep it, so no writer can forget it. It also tells statements that know only a
booking's id which partition to look into.

All of it is one transaction: a command that was interrupted has changed nothing. Nobody can use the ledger meanwhile.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import asyncpg
import msgspec

from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import IS_PARTITIONED
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres
from frontrow.boxoffice.adapters.ledger.ledger_users import LedgerInUse, list_connections
from frontrow.boxoffice.adapters.ledger.schema_versions import compatible_versions, newest_version
from frontrow.core.errors import ConfigError, InvalidInput, Refused
from frontrow.shared.postgres_url import check_direct, connect

TABLES: Final = ("bookings", "booking_seats", "payments", "refunds", "tickets", "scans")
UNNAMED: Final = ("payments", "refunds")  # their rows may have an empty event: it is their booking's
DEFAULT_PARTITIONS: Final = 16
MAX_PARTITIONS: Final = 128
LOCK_WITHIN: Final = "5s"
KEPT: Final = "_before"
SIZES: Final = """
SELECT c.relname, count(p.oid), coalesce(sum(pg_total_relation_size(p.oid)), pg_total_relation_size(c.oid)),
  coalesce(sum(greatest(p.reltuples, 0)), greatest(c.reltuples, 0))
FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhparent = c.oid LEFT JOIN pg_class AS p ON p.oid = i.inhrelid
WHERE c.oid = ANY($1::regclass[]) GROUP BY c.oid, c.relname, c.reltuples ORDER BY c.relname
"""
COLUMNS: Final = """
SELECT attname, attidentity::text FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
CONSTRAINTS: Final = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = $1::text::regclass AND contype IN ('p', 'u') ORDER BY contype, conname
"""
INDEXES: Final = """
SELECT pg_get_indexdef(i.indexrelid), i.indisunique FROM pg_index AS i
WHERE i.indrelid = $1::text::regclass AND NOT EXISTS (SELECT 1 FROM pg_constraint AS c WHERE c.conindid = i.indexrelid)
ORDER BY i.indexrelid::regclass::text
"""
DIRECTORY: Final = """
CREATE TABLE booking_events (booking_id text PRIMARY KEY, event_id text NOT NULL);
INSERT INTO booking_events (booking_id, event_id) SELECT id, event_id FROM bookings;
CREATE FUNCTION name_events_of_bookings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO booking_events (booking_id, event_id) SELECT id, event_id FROM added; RETURN NULL; END $$;
CREATE FUNCTION forget_events_of_bookings() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  DELETE FROM booking_events WHERE booking_id IN (SELECT id FROM gone); RETURN NULL; END $$;
CREATE TRIGGER bookings_added AFTER INSERT ON bookings REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION name_events_of_bookings();
CREATE TRIGGER bookings_gone AFTER DELETE ON bookings REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION forget_events_of_bookings();
"""
# `pg_restore --clean` cannot take partitioned tables away, so they stand here while a backup replaces them.
ASIDE: Final = "frontrow_replaced"
OF_PARTITIONS: Final = """
SELECT 'TABLE ' || c.oid::regclass FROM pg_class AS c WHERE c.oid = to_regclass('booking_events')
  OR (c.relkind = 'p' AND c.oid IN (SELECT to_regclass(name) FROM unnest($1::text[]) AS name))
UNION ALL SELECT 'TABLE ' || i.inhrelid::regclass FROM pg_inherits AS i
WHERE i.inhparent IN (SELECT to_regclass(name) FROM unnest($1::text[]) AS name)
UNION ALL SELECT 'FUNCTION ' || p.oid::regprocedure FROM pg_proc AS p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE '%_events_of_bookings'
"""
_KEY: Final = re.compile(r"\(([^()]*)\)")

Say = Callable[[str], None]


class TableSize(msgspec.Struct, frozen=True):
    """One table: its partitions (0: plain), its bytes with its indexes, and about how many rows it has."""

    name: str
    partitions: int
    size_bytes: int
    rows: int


async def read_table_sizes(url: str) -> list[TableSize]:
    """The tables of the sale as they are now."""
    async with _connected(url) as connection:
        await _check_there(connection)
        return [TableSize(row[0], row[1], int(row[2]), int(row[3])) for row in await connection.fetch(SIZES, TABLES)]


async def partition_ledger(url: str, partitions: int, say: Say) -> None:
    """Partition the tables of the sale by event. `say` is told how far it is. Refuses while servers are connected."""
    if not 2 <= partitions <= MAX_PARTITIONS:
        raise InvalidInput(f"a ledger has 2 to {MAX_PARTITIONS} partitions, not {partitions}", param="partitions")
    async with _connected(url) as connection:
        await _check_ready(connection)
        async with connection.transaction():
            await _lock(connection)
            for table in TABLES:
                await _partition(connection, table, partitions, say)
                if table == "bookings":
                    await connection.execute(DIRECTORY)
            served = compatible_versions(newest_version(), partitioned=True)
            await connection.execute("DELETE FROM served_versions WHERE version <> ALL($1::text[])", served)


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Any]:
    if not is_postgres(url):
        raise ConfigError("an SQLite ledger is one file and has no partitions; PostgreSQL has them", param="ledger")
    check_direct(url, "partitioning")
    connection = await connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.contextmanager
def replaced_partitions(url: str) -> Iterator[None]:
    """Put the partitioned tables aside for what is done inside. They are back if it fails, and gone if it does not."""
    moved = asyncio.run(_put_aside(url))
    try:
        yield
    except BaseException:
        asyncio.run(_bring_back(url, moved))
        raise
    asyncio.run(_drop_aside(url))


async def _put_aside(url: str) -> list[str]:
    async with _connected(url) as connection, connection.transaction():
        moved = [str(row[0]) for row in await connection.fetch(OF_PARTITIONS, TABLES)]
        if moved:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {ASIDE}")
        for one in moved:
            await connection.execute(f"ALTER {one} SET SCHEMA {ASIDE}")
        return moved


async def _bring_back(url: str, moved: list[str]) -> None:
    async with _connected(url) as connection, connection.transaction():
        home = await connection.fetchval("SELECT current_schema()")
        for one in moved:
            kind, name = one.split(" ", 1)
            await connection.execute(f"ALTER {kind} {ASIDE}.{name} SET SCHEMA {home}")
        await connection.execute(f"DROP SCHEMA IF EXISTS {ASIDE}")


async def _drop_aside(url: str) -> None:
    async with _connected(url) as connection:
        await connection.execute(f"DROP SCHEMA IF EXISTS {ASIDE} CASCADE")


async def _check_there(connection: Any) -> None:
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        raise ConfigError("there is no ledger yet: run `frontrow ledger migrate`", param="ledger")


async def _check_ready(connection: Any) -> None:
    await _check_there(connection)
    version = await connection.fetchval("SELECT version_num FROM alembic_version")
    if version != newest_version():
        raise ConfigError(
            f"the ledger has schema {version}, {newest_version()} is needed: run `frontrow ledger migrate`",
            param="ledger",
        )
    if await connection.fetchval(IS_PARTITIONED):
        raise Refused("the ledger is partitioned already")
    if users := await list_connections(connection):
        raise LedgerInUse(users)


async def _lock(connection: Any) -> None:
    """Keep everybody else out until the end."""
    await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WITHIN}'")
    try:
        await connection.execute(f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE")
    except asyncpg.LockNotAvailableError:
        raise Refused("somebody else uses the ledger's tables; stop servers, workers and backups first") from None


async def _partition(connection: Any, table: str, partitions: int, say: Say) -> None:
    """Make the table anew with partitions, copy its rows, and make its indexes."""
    began_s = time.monotonic()
    old = table + KEPT
    columns = [(row[0], row[1]) for row in await connection.fetch(COLUMNS, table)]
    constraints = [(row[0], _with_event(row[1])) for row in await connection.fetch(CONSTRAINTS, table)]
    indexes = [_with_event(row[0]) if row[1] else row[0] for row in await connection.fetch(INDEXES, table)]
    await connection.execute(f"ALTER TABLE {table} RENAME TO {old}")
    await connection.execute(
        f"CREATE TABLE {table} (LIKE {old} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY HASH (event_id)"
    )
    for number in range(partitions):
        await connection.execute(
            f"CREATE TABLE {table}_{number:03} PARTITION OF {table} "
            f"FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
        )
    rows = int((await connection.execute(_copy(table, [name for name, _ in columns]))).split()[-1])
    numbered = [name for name, identity in columns if identity]
    for column in numbered:
        await _keep_numbering(connection, table, column)
    await connection.execute(f"DROP TABLE {old}")
    for name, definition in constraints:
        await connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    covered = {_columns_of(definition) for _, definition in constraints}
    for definition in indexes:
        if " WHERE " in definition or _columns_of(definition) not in covered:
            await connection.execute(definition)
    say(f"{table}: {rows:,} rows in {partitions} partitions, {time.monotonic() - began_s:.1f} s")


def _with_event(definition: str) -> str:
    """A key with the event as its first column, unless it has the event already."""
    keys = [key.strip() for key in _columns_of(definition).split(",")]
    if "event_id" in keys:
        return definition
    return _KEY.sub(f"(event_id, {', '.join(keys)})", definition, count=1)


def _columns_of(definition: str) -> str:
    found = _KEY.search(definition)
    assert found is not None, definition
    return found[1]


def _copy(table: str, columns: list[str]) -> str:
    names, shown, source = ", ".join(columns), ", ".join(f"o.{name}" for name in columns), f"{table}{KEPT} AS o"
    if table in UNNAMED:
        shown = shown.replace("o.event_id", "coalesce(nullif(o.event_id, ''), d.event_id, '')")
        source += " LEFT JOIN booking_events AS d ON d.booking_id = o.booking_id"
    return f"INSERT INTO {table} ({names}) SELECT {shown} FROM {source}"  # noqa: S608 - names are our own


async def _keep_numbering(connection: Any, table: str, column: str) -> None:
    """Go on counting where the old table's identity column stands."""
    counter = f"{table}_{column}_counter"
    kept = await connection.fetchval("SELECT pg_get_serial_sequence($1, $2)", table + KEPT, column)
    await connection.execute(f"CREATE SEQUENCE {counter} OWNED BY {table}.{column}")
    await connection.execute(f"SELECT setval('{counter}', last_value, is_called) FROM {kept}")  # noqa: S608
    await connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT nextval('{counter}')")
