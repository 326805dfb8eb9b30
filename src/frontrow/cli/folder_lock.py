"""One embedded server per folder: a second one would not see the first one's queue and claims.

The server writes its address into the file that it locks, so that other commands can make links to it.
"""

import fcntl
import os
from pathlib import Path

from frontrow.core.errors import ConfigError

FILE = "server.lock"


def lock_folder(folder: Path) -> int:
    """Hold the folder as long as this process lives. Raises `ConfigError` if another server has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"server.folder: {folder} cannot be used: {error.strerror}", param="server.folder") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ConfigError(
            f"server.folder: another frontrow serve uses {folder}; stop it, or choose another --folder. "
            "Several servers need redis.url and ledger.url",
            param="server.folder",
        ) from None
    return handle


def write_address(handle: int, address: str) -> None:
    """Say in the locked file where the server listens."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, address.encode(), 0)


def find_address(folder: Path) -> str:
    """Where the server of this folder listens; empty if none runs."""
    try:
        with (folder / FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # a server holds it
        return (folder / FILE).read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return ""
