"""One embedded server per folder: a second one would not see the first one's queue and claims.

The server writes its address and the number of its process into the file that it locks, so that other commands can make
links to it and name it. Commands that must not run beside a server take the lock themselves.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from frontrow.core.errors import ConfigError, Refused

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
    """Say in the locked file where the server listens, and which process it is."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{address}\n{os.getpid()}\n".encode(), 0)


def find_address(folder: Path) -> str:
    """Where the server of this folder listens; empty if none runs."""
    return next(iter(_read_server(folder)), "")


def name_server(folder: Path) -> str:
    """The server of this folder, as a person would look for it; empty if none runs."""
    address, process, *_ = [*_read_server(folder), "", ""]
    named = f"the server at {address}" if address else ""
    return f"{named} (process {process})" if named and process else named


@contextlib.contextmanager
def no_server(folder: Path) -> Iterator[None]:
    """No server runs in this folder inside. Raises `Refused`, with its name, if one does."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context((folder / FILE).open("rb"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass  # no server was ever here
        except BlockingIOError:
            raise Refused(f"{name_server(folder) or 'a server'} uses {folder}; stop it first") from None
        except OSError as error:
            why = f"{folder / FILE} cannot be read ({error.strerror}), so a server may be running"
            raise Refused(f"{why}; do this as the user of the server") from None
        yield


def _read_server(folder: Path) -> list[str]:
    """The lines that the server of this folder wrote; none if no server runs."""
    try:
        with (folder / FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:  # a server holds it
        return (folder / FILE).read_text("utf-8", "replace").split()
    except OSError:
        return []
    return []
