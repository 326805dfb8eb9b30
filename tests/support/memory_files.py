"""Puts the temporary files of a test session into memory, where the machine has room for them.

A database for each test is hundreds of files, and every SQLite ledger waits for the disk at each commit. On a disk that
was more than half of the time of such a test; nothing here must outlive the machine.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30  # a whole session needs a fourth of it
PREFIX = "frontrow-tests-"


def keep_files_in_memory(environ: MutableMapping[str, str] = os.environ, memory: Path = MEMORY) -> None:
    """From now on temporary files of this process and its children are in memory, until this process ends.

    Nothing changes if `TMPDIR` is set, or if there is too little room (a container has 64 MB by default).
    """
    if "TMPDIR" in environ or not _has_room(memory):
        return
    _remove_folders_of_the_dead(memory)
    folder = memory / f"{PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # PostgreSQL runs as `nobody` if we are root
    environ["TMPDIR"] = tempfile.tempdir = str(folder)
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: Path, made_by: int) -> None:
    if os.getpid() == made_by:  # not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def _has_room(memory: Path) -> bool:
    return os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free >= ROOM_BYTES


def _remove_folders_of_the_dead(memory: Path) -> None:
    """A session that was killed could not remove its own."""
    for folder in memory.glob(f"{PREFIX}*"):
        if not Path("/proc", folder.name.removeprefix(PREFIX)).exists():
            shutil.rmtree(folder, ignore_errors=True)
