"""One embedded server per folder: a second one would not see the first one's queue and claims."""

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
