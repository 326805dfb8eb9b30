"""Who uses a ledger now. What replaces a ledger or makes its tables anew (a restore, partitions) asks here first.

SQLite: whoever opens the ledger shares a lock on `<file>.lock`; a restore needs it alone. While a restore has it,
nobody can open the ledger. PostgreSQL: servers and workers are seen by the name of their connections, also behind a
pooler.
"""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres, sqlite_path
from frontrow.core.errors import ConfigError, Refused, Unavailable
from frontrow.shared.postgres_url import connect

SUFFIX: Final = ".lock"
CLOSED_WITHIN_S: Final = 2.0  # PostgreSQL shows a connection for a moment after it was closed
LOOK_EVERY_S: Final = 0.05
CONNECTIONS: Final = """
SELECT coalesce(host(client_addr), 'this machine'), count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'frontrow%'
GROUP BY 1 ORDER BY 1
"""


class LedgerInUse(Refused):
    """Servers, workers or commands use the ledger; `users` says which, as far as it is known."""

    code = "ledger_in_use"

    def __init__(self, users: str) -> None:
        super().__init__(f"{users}; stop every server and worker first")
        self.users = users


def share_ledger(path: Path) -> int | None:
    """Be known as a user of this SQLite ledger until the handle is closed. Raises `Unavailable` during a restore.

    None where no lock can be kept, as on a disk that can only be read: nobody can restore there either.
    """
    try:
        handle = os.open(_lock_of(path), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None  # the ledger itself says what is wrong with its folder
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise Unavailable(f"{path} is being restored from a backup; try again later", retry_after_s=5.0) from None
        return None
    return handle


@contextlib.contextmanager
def shared_ledger(path: Path) -> Iterator[None]:
    """Be known as a user of this SQLite ledger inside."""
    handle = share_ledger(path)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def use_alone(url: str) -> Iterator[None]:
    """Nobody else uses the ledger at `url` inside. Raises `LedgerInUse` if somebody does.

    On PostgreSQL a server can still connect meanwhile. Then this raises at the end: it must be started again.
    """
    if is_postgres(url):
        if users := asyncio.run(_find_connections(url)):
            raise LedgerInUse(users)
        yield
        if users := asyncio.run(_find_connections(url)):
            raise Unavailable(f"the ledger was replaced, but {users} meanwhile; stop and start those servers now")
        return
    path = sqlite_path(url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(_lock_of(path), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(f"{path} cannot be replaced: {error.filename}: {error.strerror}", param="ledger") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LedgerInUse(f"another process uses {path}") from None
        yield
    finally:
        os.close(handle)


async def list_connections(connection: Any) -> str:
    """The connections of servers and workers to this database, in words; empty if there is none."""
    ends_s = asyncio.get_running_loop().time() + CLOSED_WITHIN_S
    while True:  # bounded by CLOSED_WITHIN_S
        rows = await connection.fetch(CONNECTIONS)
        if not rows or asyncio.get_running_loop().time() > ends_s:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    found = [f"{count} {'connection' if count == 1 else 'connections'} from {address}" for address, count in rows]
    return f"servers or workers use this ledger ({', '.join(found)})" if found else ""


async def _find_connections(url: str) -> str:
    connection = await connect(url)
    try:
        return await list_connections(connection)
    finally:
        await connection.close()


def _lock_of(path: Path) -> Path:
    """Beside the file itself: whoever opens it by another name must find the same lock."""
    real = path.resolve()
    return real.with_name(real.name + SUFFIX)
