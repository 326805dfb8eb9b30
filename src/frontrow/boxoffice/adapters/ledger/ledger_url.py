"""Ledger URLs: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://user@host:5432/name`."""

from pathlib import Path

from frontrow.core.errors import ConfigError
from frontrow.shared.postgres_url import check_postgres_url

SQLITE = "sqlite:///"
EXAMPLES = "sqlite:///frontrow.db or postgresql://frontrow@127.0.0.1:5432/frontrow"


def is_postgres(url: str) -> bool:
    """Whether `url` is a PostgreSQL URL. A ConfigError when it is not a ledger URL."""
    if url.startswith(("postgresql://", "postgres://")):
        check_postgres_url(url)
        return True
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        sqlite_path(url)
        return False
    shown = url.rpartition("@")[2][:60]  # a password is before the @
    raise ConfigError(f"{shown!r} is not a ledger; it must be like {EXAMPLES}", param="ledger")


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///` URL. A ConfigError when it looks absolute and is not.

    `sqlite:///var/lib/frontrow.db` would be made below the current folder, another one for each folder in which a
    command is typed. A path counts as meant if its first folder is here, or if it begins with a dot.
    """
    written = url.removeprefix(SQLITE)
    path = Path(written)
    first = path.parts[0] if len(path.parts) > 1 else ""
    looks_absolute = first and not written.startswith((".", "/")) and (Path("/") / first).is_dir()
    if (looks_absolute or first == "~") and not Path(first).is_dir():
        meant = path.expanduser() if first == "~" else Path("/") / path
        raise ConfigError(
            f"{url!r} has three slashes, so its file is below the current folder ({path.absolute()}). Write "
            f"{SQLITE}{meant} for {meant}, or {SQLITE}./{written} if you mean the current folder",
            param="ledger",
        )
    return path
