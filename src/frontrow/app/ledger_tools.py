"""The ledger as commands use it: open it by its URL, upgrade it, verify it, copy it, archive past events, partition
it.

Only the ledger's own libraries are loaded here, so the command line starts quickly.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec

from frontrow.boxoffice.adapters.ledger import archives, backups, partitions
from frontrow.boxoffice.adapters.ledger.audit_verification import Heads, verify
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.ledger_users import shared_ledger
from frontrow.boxoffice.adapters.ledger.partitions import Say, TableSize
from frontrow.boxoffice.adapters.ledger.schema_versions import check_served, known_versions, schema_version
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.core.errors import ConfigError
from frontrow.shared.postgres_url import check_direct

PARTITIONS: Final = partitions.DEFAULT_PARTITIONS


@contextlib.asynccontextmanager
async def opened_ledger(url: str, *, auto_migrate: bool | None = False) -> AsyncIterator[SqlLedger]:
    """The ledger at `url`, closed afterwards. Most commands leave the schema as it is and need a ledger that is there;
    None upgrades SQLite and makes its file."""
    if auto_migrate is False:
        _check_there(url)
    else:
        _make_folder(url)
    ledger = await open_ledger(url, auto_migrate=auto_migrate)
    try:
        yield ledger
    finally:
        await ledger.aclose()


async def verify_ledger(url: str, kept: Heads | None = None, *, auto_migrate: bool = False) -> tuple[list[str], int]:
    """The problems, and the number of audit entries read. `kept` are heads that were stored outside earlier."""
    async with opened_ledger(url, auto_migrate=auto_migrate) as ledger:
        return await verify(ledger.store, kept)


def list_proofs(kept: Heads | None = None) -> tuple[list[str], list[str]]:
    """What a ledger without problems has proved, and what it cannot prove by itself."""
    proved = [
        "no seat has two active bookings",
        "every booking has the seats it says",
        "every audit entry follows from the one before it",
    ]
    not_proved = ["that the payment provider has the same payments: `frontrow ledger reconcile` compares them"]
    if kept:
        proved.append(f"the kept heads stand in it: {len(kept)}")
    else:
        lost = "that nothing is missing, as after the restore of a backup; --head compares with heads that were kept"
        not_proved.insert(0, f"{lost} outside (`frontrow ledger status` prints them)")
    return proved, not_proved


async def read_ledger_status(url: str) -> dict[str, Any]:
    """The schema's version, the number of rows per table and the heads of the audit chains."""
    async with opened_ledger(url) as ledger:
        counts = await ledger.operations.row_counts()
        heads = [f"{chain}:{seq}:{head}" for chain, seq, head in await ledger.operations.audit_heads()]
    return {"schema": await asyncio.to_thread(schema_version, url), "counts": counts, "heads": heads}


def migrate_ledger(url: str) -> tuple[str, str]:
    """Bring the schema to the newest version. Returns the version before and after.

    A ledger that a newer program migrated stays as it is, if it still serves this one. Servers may run meanwhile.
    """
    from frontrow.boxoffice.adapters.ledger.migrate import migrate  # half a second to import

    check_direct(url, "a migration")
    _make_folder(url)
    before = schema_version(url)
    if before and before not in known_versions():
        check_served(url, before)
        return before, before
    with contextlib.nullcontext() if is_postgres(url) else shared_ledger(sqlite_path(url)):  # no restore meanwhile
        return before, migrate(url)


def is_there(url: str) -> bool:
    """Whether a ledger can be looked for at `url`: a server, or a file that exists."""
    return is_postgres(url) or sqlite_path(url).exists()


def find_ledger_file(url: str) -> Path | None:
    """The file of an SQLite ledger; None for PostgreSQL."""
    return None if is_postgres(url) else sqlite_path(url)


def _check_there(url: str) -> None:
    """Say that there is no such ledger, rather than make an empty file where nobody looks for it."""
    if not is_there(url):
        raise ConfigError(
            f"there is no ledger at {sqlite_path(url)}; `frontrow serve` or `frontrow ledger migrate` makes it, "
            "--config, --folder or --ledger name another",
            param="ledger",
        )


def _make_folder(url: str) -> None:
    if not is_postgres(url):
        try:
            sqlite_path(url).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"{sqlite_path(url).parent} cannot be made: {error.strerror}", param="ledger") from None


def back_up_ledger(url: str, file: Path) -> int:
    """Copy the ledger into a new file while it is in use. Returns the file's size in bytes."""
    return backups.backup(url, file)


def restore_ledger(file: Path, url: str, *, force: bool) -> str:
    """Make a ledger of a backup. Returns the backup's schema version."""
    return backups.restore(file, url, force=force)


async def find_past_events(url: str, before_us: int, now_us: int) -> list[str]:
    """The events that can be archived, as far as their dates say."""
    _check_there(url)
    return await archives.find_past_events(url, before_us, now_us)


async def archive_event(url: str, event_id: str, folder: Path, now_us: int) -> archives.ArchiveFile:
    """Move a past event into a file in `folder`. The audit log says so, with the file's checksum."""
    _check_there(url)
    archive = await archives.archive_event(url, event_id, folder, now_us)
    await _note(url, "archive_event", archive, now_us)
    return archive


async def restore_event(url: str, file: Path, now_us: int) -> archives.ArchiveFile:
    """Put an archived event back."""
    _check_there(url)
    archive = await archives.restore_event(url, file)
    await _note(url, "restore_event", archive, now_us)
    return archive


async def read_table_sizes(url: str) -> list[TableSize]:
    """The big tables of the sale: their partitions, sizes and rows."""
    return await partitions.read_table_sizes(url)


async def partition_ledger(url: str, count: int, now_us: int, say: Say) -> None:
    """Partition the big tables of the sale by event. The audit log says so."""
    await partitions.partition_ledger(url, count, say)
    await _write_note(url, {"act": "partition_ledger", "partitions": count}, now_us)


async def _note(url: str, act: str, archive: archives.ArchiveFile, now_us: int) -> None:
    about = {"act": act, "event": archive.event_id, "sha256": archive.sha256, "rows": archive.rows}
    await _write_note(url, about, now_us)


async def _write_note(url: str, about: dict[str, Any], now_us: int) -> None:
    async with opened_ledger(url) as ledger:
        await ledger.line.submit(RunStatements((), msgspec.json.encode(about).decode(), now_us))
